// SPDX-License-Identifier: GPL-2.0

//! A port as a network device.

use kernel::{
    device::Bound,
    net::{
        device::{
            deferring::Deferring,
            ethtool::msglevel::MsgClass,
            Device,
            DmaStopped,
            Driver,
            Feature,
            Info,
            Locks,
            MacAddress,
            MtuChange,
            Opening,
            OptionalOps,
            Rtnl,
            RxMode,
            Stats64, //
            WatchdogAction,
        },
        napi::{
            Poll,
            Polled, //
        },
        queue::Xmit,
        skbuff::TxSkBuff, //
    },
    pci,
    prelude::*,
    sync::Arc, //
};

use crate::{
    filter,
    hw,
    irq,
    media::Media,
    moderation::PairModeration,
    ptp::RxStamps,
    regs::queue::Pair,
    rx::{
        FrameLimit,
        Offloads,
        RxRing,
        Xdp, //
    },
    stats::PairStats,
    tx::{
        self,
        TxCompletion,
        TxQueue,
        TxRegisters,
        TxRing, //
    },
    vlan, //
};

mod cage;
mod features;
mod module;
mod ptp;
mod queues;
mod state;
mod wake_up;
mod watchdog;
mod xdp;
mod xsk;

use self::state::PairRegisters;
pub(crate) use self::state::{
    Port,
    NO_LIGHTS, //
};

/// The network device driver.
pub(crate) struct PortDriver;

/// State of the poll function of a queue pair: the receive ring and the completing side of the
/// transmit ring.
pub(crate) struct Poller<'bound> {
    tx: TxCompletion<'bound>,
    rx: RxRing,
    moderation: PairModeration,
    stats: Arc<PairStats>,
}

/// State of the transmit path of a queue pair: the filling side of the transmit ring.
pub(crate) struct Sender<'bound> {
    ring: TxRing<'bound>,
    stats: Arc<PairStats>,
}

#[vtable]
impl Driver for PortDriver {
    type Bus = pci::Device<Bound>;
    /// The medium, if it is known.
    type Setup = Option<Media>;
    type Data<'bound> = Port<'bound>;
    type Poller<'bound> = Poller<'bound>;
    type Tx<'bound> = Sender<'bound>;
    type Doorbell = Deferring;

    fn probe<'bound>(
        pdev: &'bound pci::Device<Bound>,
        media: Option<Media>,
    ) -> Result<(Info, impl PinInit<Port<'bound>, Error>)> {
        Port::new(pdev, media)
    }

    fn open<'bound>(cx: &mut Opening<'_, 'bound, Self>) -> Result {
        let data = cx.data().get_ref();
        let dev = data.pdev.as_ref();
        let (sizes, is_up) = (cx.ring_sizes(), cx.is_up());
        let (limit, offloads) = (FrameLimit::of_mtu(cx.mtu()), Offloads::of(cx.features()));
        let program = &data.program;
        let mut rings = KVec::with_capacity(cx.queues().into(), GFP_KERNEL)?;

        for number in 0..cx.queues() {
            let pair = Pair::new(number).ok_or(EINVAL)?;
            let stats = data.stats.pair(number)?;
            let mut registers = None;

            cx.add_queue_vector(data.vectors.index(number.into())?, c"TxRx", |napi| {
                let poll = &stats.poll;
                let mut rx = RxRing::new(
                    dev, napi, pair, sizes.rx, limit, offloads, program, is_up, poll,
                )?;
                let (ring, tx) = tx::ring(dev, napi, pair, sizes.tx)?;

                registers = Some((rx.registers(napi)?, ring.registers()));
                let sender = Sender {
                    ring,
                    stats: stats.clone(),
                };
                let poller = Poller {
                    tx,
                    rx,
                    moderation: PairModeration::new(napi, pair)?,
                    stats,
                };
                Ok((poller, sender))
            })?;
            let (rx, tx) = registers.ok_or(EINVAL)?;
            let xmit = TxRegisters::of_xdp(pair, cx.add_xdp_ring(dev, sizes.tx)?);
            rings.push(PairRegisters { rx, tx, xmit }, GFP_KERNEL)?;
        }
        let event = data.event_vector();
        cx.add_event_vector(data.vectors.index(event.into())?, c"event")?;

        *data.opened.get_mut(cx.ops_lock()) = rings;
        Ok(())
    }

    const OPEN_WHILE_UP: bool = true;
    const OPS_LOCK: bool = true;

    fn start<'bound>(
        port: Pin<&Port<'bound>>,
        netdev: &Device,
        locks: &mut Locks<'bound>,
    ) -> Result {
        port.start(netdev, locks)
    }

    fn quiesce<'bound>(
        port: Pin<&Port<'bound>>,
        _netdev: &Device,
        locks: &mut Locks<'bound>,
    ) -> Result {
        port.quiesce(locks)
    }

    fn reset<'bound>(port: Pin<&Port<'bound>>, _netdev: &Device, _rtnl: &mut Rtnl) -> Result {
        port.ptp.was_reset();
        hw::reset(port.pdev.as_ref(), &port.bar)?;
        // The rest is `start()`'s, if the port is up.
        port.stop_link();
        Ok(())
    }

    // Inlined into the poll callback.
    #[inline(always)]
    fn poll<'bound>(
        port: Pin<&Port<'bound>>,
        poller: &mut Poller<'bound>,
        cx: &Poll<'_>,
    ) -> Polled {
        // Free sent SKBs first, so that reception can reuse them.
        let completed = poller.tx.poll(cx.tx_queue(), cx, &poller.stats);

        if cx.is_netpoll() {
            return Polled::Idle { received: 0 };
        }
        let stamps = RxStamps {
            ptp: &port.ptp,
            bar: &port.bar,
        };
        let (received, drained) = poller.rx.poll(stamps, cx, &poller.stats.poll);
        if !(completed && drained) {
            return Polled::Busy;
        }
        let counters = &poller.stats.poll;
        poller
            .moderation
            .polled(&port.bar, &port.moderation, counters, cx);
        Polled::Idle { received }
    }

    fn closed<'bound>(_port: Pin<&Port<'bound>>, poller: Poller<'bound>, stopped: &DmaStopped<'_>) {
        let counters = &poller.stats.poll;

        poller.rx.count_lost(stopped.rx(), counters);
        poller.tx.finish(stopped, counters);
    }

    #[inline]
    fn rearm<'bound>(port: Pin<&Port<'bound>>, vector: u16) {
        irq::rearm_queue(&port.bar, vector);
    }

    // Inlined into `ndo_start_xmit()`, although what sends packets of other queues calls it, too.
    #[inline(always)]
    fn start_xmit<'bound, 'call>(
        port: Pin<&Port<'bound>>,
        tx: &mut Sender<'bound>,
        queue: &TxQueue<'_>,
        skb: TxSkBuff<'call>,
        more: bool,
    ) -> Xmit<'call> {
        tx.ring.xmit(&port, queue, &tx.stats.xmit, skb, more)
    }

    #[inline]
    fn kick<'bound>(port: Pin<&Port<'bound>>, tx: &mut Sender<'bound>) {
        tx.ring.doorbell(&port.bar, &tx.stats.xmit);
    }

    fn event<'bound>(port: Pin<&Port<'bound>>, netdev: &Device) {
        port.handle_events(netdev);
    }

    fn watchdog<'bound>(port: Pin<&Port<'bound>>, netdev: &Device) -> WatchdogAction {
        port.watchdog(netdev)
    }

    fn set_rx_mode<'bound>(
        port: Pin<&Port<'bound>>,
        netdev: &Device,
        mode: &RxMode<'_>,
        rtnl: &mut Rtnl,
    ) -> Result {
        filter::select(
            &port.bar,
            filter::Selection {
                promiscuous: mode.is_promiscuous(),
                all_multicast: mode.is_all_multicast(),
                unicast: mode.unicast(),
                multicast: mode.multicast(),
            },
            port.unicast_entries.get_mut(rtnl),
        )?;
        vlan::filter(&port.bar, netdev.features().contains(Feature::VlanFilter))
    }

    fn set_mac_address<'bound>(
        port: Pin<&Port<'bound>>,
        netdev: &Device,
        address: MacAddress,
        _rtnl: &mut Rtnl,
    ) -> Result {
        // If the device is down, `start()` sets it.
        if netdev.is_running() {
            filter::set_own_address(&port.bar, &address);
        }
        Ok(())
    }

    fn change_mtu<'bound>(
        port: Pin<&Port<'bound>>,
        netdev: &Device,
        mtu: u32,
        locks: &mut Locks<'bound>,
    ) -> Result<MtuChange> {
        let new = FrameLimit::of_mtu(mtu);
        if !netdev.is_running() {
            return Ok(MtuChange::Live);
        }
        let running = port.running.get_mut(locks.ops_mut());
        let has_plain_buffers = !running.lro && !port.program.is_in_use();

        if has_plain_buffers && running.limit.fits_halves() != new.fits_halves() {
            return Ok(MtuChange::Restart);
        }
        // Memory of users in which each frame has been in one buffer.
        if running
            .longest
            .iter()
            .any(|longest| new.longest() > *longest)
        {
            return Ok(MtuChange::Restart);
        }
        // The buffers stay as they are: if a frame does not fit, it takes several.
        running.limit = running.limit.max(new);
        hw::set_frame_limit(&port.bar, new)?;
        Ok(MtuChange::Live)
    }

    fn get_stats64<'bound>(port: Pin<&Port<'bound>>, stats: &mut Stats64<'_>, is_reachable: bool) {
        port.stats.fill(&port.bar, stats, is_reachable);
    }

    fn tx_timeout<'bound>(port: Pin<&Port<'bound>>, _netdev: &Device, queue: u16) {
        if port.msglevel.has(MsgClass::TxError) {
            tx::report_hang(port.pdev.as_ref(), &port.bar, queue);
        }
    }

    const OPS: OptionalOps<Self> = OptionalOps::NONE
        .features()
        .features_check()
        .vlan_filter()
        .queue_stats()
        .queue_mgmt()
        .coalesce()
        .drvinfo()
        .eeprom()
        .hwtstamp()
        .link()
        .mac_stats()
        .module_eeprom()
        .msglevel()
        .pause()
        .phys_id()
        .ptp_clock()
        .regs()
        .ringparam()
        .rmon_stats()
        .rxfh()
        .rxnfc()
        .self_test()
        .statistics()
        .wol()
        .xdp()
        .xdp_xmit()
        .xdp_hints::<Xdp>()
        .xsk();
}
