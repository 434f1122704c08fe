// SPDX-License-Identifier: GPL-2.0

//! A port as a network device.

use kernel::{
    device::Bound,
    net::{
        device::{
            controls::Message,
            deferring::Deferring,
            CardStopped,
            CheckUp,
            Device,
            Driver,
            ExtAck,
            Feature,
            Features,
            FeaturesChange,
            Flow,
            FlowHash,
            Info,
            Locks,
            MacAddress,
            MtuChange,
            Opening,
            OpsLocked,
            OptionalOps,
            Rings,
            Rtnl,
            RxMode,
            Statistics,
            Stats64, //
        },
        napi::{
            Poll,
            Polled, //
        },
        queue::Xmit,
        skbuff::{
            SkBuff,
            TxSkBuff, //
        }, //
    },
    pci,
    prelude::*,
    sync::{
        atomic::Relaxed,
        Arc, //
    }, //
};

use crate::{
    desc,
    filter,
    hw,
    irq,
    media::Media,
    moderation::{
        self,
        PairModeration, //
    },
    offload,
    regs::queue::Pair,
    rx::{
        FrameLimit,
        Offloads,
        RxRing, //
    },
    stats::PairStats,
    tx::{
        self,
        TxCompletion,
        TxQueue,
        TxRing, //
    },
    vlan, //
};

mod cage;
mod checkup;
mod module;
mod queues;
mod state;
mod wake_up;

use self::state::{
    PairRegisters,
    FLAG_BULK_FREE,
    FLAG_NAMES, //
};
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
        let (lens, is_up) = (cx.ring_lens(), cx.is_up());
        let (limit, offloads) = (FrameLimit::of_mtu(cx.mtu()), Offloads::of(cx.features()));
        let mut rings = KVec::with_capacity(cx.queues().into(), GFP_KERNEL)?;

        for number in 0..cx.queues() {
            let pair = Pair::new(number).ok_or(EINVAL)?;
            let stats = data.stats.pair(number)?;

            cx.add_queue_vector(data.vectors.index(number.into())?, c"TxRx", |napi| {
                let poll = &stats.poll;
                let rx = RxRing::new(dev, napi, pair, lens.rx, limit, offloads, is_up, poll)?;
                let (ring, tx) = tx::ring(dev, napi, pair, lens.tx)?;

                rings.push(
                    PairRegisters {
                        rx: rx.registers(napi)?,
                        tx: ring.registers(),
                    },
                    GFP_KERNEL,
                )?;
                let sender = Sender {
                    ring,
                    stats: stats.clone(),
                };
                let poller = Poller {
                    tx,
                    rx,
                    moderation: PairModeration::new(pair)?,
                    stats,
                };
                Ok((poller, sender))
            })?;
        }
        let event = data.event_vector();
        cx.add_event_vector(data.vectors.index(event.into())?, c"event")?;

        *data.opened.get_mut(cx.ops_lock()) = rings;
        Ok(())
    }

    const OPEN_WHILE_UP: bool = true;
    const OPS_LOCK: bool = true;
    const RINGS: Option<Rings> = Some(desc::RINGS);

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
        let bulk = port.flags.load(Relaxed) & FLAG_BULK_FREE != 0;
        let completed = poller.tx.poll(cx.tx_queue(), cx, &poller.stats, bulk);

        if cx.is_netpoll() {
            return Polled::Idle { received: 0 };
        }
        let (received, drained) = poller.rx.poll(&port.bar, cx, &poller.stats.poll);
        if !(completed && drained) {
            return Polled::Busy;
        }
        let counters = &poller.stats.poll;
        poller
            .moderation
            .polled(&port.bar, &port.moderation, counters, cx);
        Polled::Idle { received }
    }

    fn closed<'bound>(_port: Pin<&Port<'bound>>, poller: Poller<'bound>, card: &CardStopped<'_>) {
        poller.tx.finish(card, &poller.stats.poll);
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

    #[inline]
    fn features_check<'bound>(
        _port: Pin<&Port<'bound>>,
        skb: &SkBuff,
        features: Features,
    ) -> Features {
        offload::features(skb, features)
    }

    fn event<'bound>(port: Pin<&Port<'bound>>, netdev: &Device) {
        port.handle_events(netdev);
    }

    fn check_up<'bound>(port: Pin<&Port<'bound>>, netdev: &Device) -> CheckUp {
        port.check_up(netdev)
    }

    fn set_vlan<'bound>(
        port: Pin<&Port<'bound>>,
        id: u16,
        member: bool,
        live: bool,
        rtnl: &mut Rtnl,
    ) -> Result {
        port.vlans
            .get_mut(rtnl)
            .set(id, member, live.then_some(&port.bar))
    }

    fn fix_features<'bound>(
        port: Pin<&Port<'bound>>,
        netdev: &Device,
        wanted: Features,
    ) -> Features {
        if !wanted.contains(Feature::Lro) || port.moderation.allows_joining() {
            return wanted;
        }
        dev_notice!(
            netdev,
            "lro needs interrupts that are {} us apart (rx-usecs)\n",
            moderation::MIN_JOINING_USECS
        );
        wanted.without(Feature::Lro)
    }

    fn set_features<'bound>(
        port: Pin<&Port<'bound>>,
        netdev: &Device,
        features: Features,
        _locks: &mut Locks<'bound>,
    ) -> Result<FeaturesChange> {
        let before = netdev.features();
        let changes = |feature: Feature| before.contains(feature) != features.contains(feature);
        // Rings are of another sort; the flow director can be set up before reception only; frames
        // of the stack that are still to be sent would come back, and others would leave.
        if changes(Feature::Lro) || changes(Feature::Ntuple) || changes(Feature::Loopback) {
            return Ok(FeaturesChange::Restart);
        }
        vlan::filter(&port.bar, features.contains(Feature::VlanFilter));
        // A frame does not tell whether it had a tag, so the queues are told between two frames.
        if changes(Feature::VlanStrip) {
            return Ok(FeaturesChange::RestartRx);
        }
        // The others are read for each packet or poll.
        Ok(FeaturesChange::Live)
    }

    fn set_rx_mode<'bound>(
        port: Pin<&Port<'bound>>,
        netdev: &Device,
        mode: &RxMode<'_>,
        rtnl: &mut Rtnl,
    ) -> Result {
        let entries = port.unicast_entries.get_mut(rtnl);

        *entries = filter::select(
            &port.bar,
            filter::Selection {
                promiscuous: mode.is_promiscuous(),
                all_multicast: mode.is_all_multicast(),
                unicast: mode.unicast(),
                multicast: mode.multicast(),
            },
            *entries,
        );
        vlan::filter(&port.bar, netdev.features().contains(Feature::VlanFilter));
        Ok(())
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
        _rtnl: &mut Rtnl,
    ) -> Result<MtuChange> {
        let (old, new) = (FrameLimit::of_mtu(netdev.mtu()), FrameLimit::of_mtu(mtu));
        if old.fits_half() != new.fits_half() {
            return Ok(MtuChange::Restart);
        }
        // The buffers stay as they are: if a frame does not fit, it takes several.
        if netdev.is_running() {
            hw::set_frame_limit(&port.bar, new);
        }
        Ok(MtuChange::Live)
    }

    fn get_stats64<'bound>(port: Pin<&Port<'bound>>, stats: &mut Stats64<'_>) {
        port.stats.fill(&port.bar, stats);
    }

    fn tx_timeout<'bound>(port: Pin<&Port<'bound>>, _netdev: &Device, queue: u16) {
        if port.messages.have(Message::TxError) {
            tx::report_hang(port.pdev.as_ref(), &port.bar, queue);
        }
    }

    fn ethtool_statistics<'bound>(
        port: Pin<&Port<'bound>>,
        _netdev: &Device,
        statistics: &mut Statistics<'_>,
        _lock: &mut OpsLocked<'bound>,
    ) {
        port.stats.list(&port.bar, statistics);
    }

    const TX_TIMESTAMPS: bool = true;

    const PRIVATE_FLAGS: &'static [&'static str] = FLAG_NAMES;

    fn private_flags<'bound>(port: Pin<&Port<'bound>>, _lock: &mut OpsLocked<'bound>) -> u32 {
        port.flags.load(Relaxed)
    }

    fn set_private_flags<'bound>(
        port: Pin<&Port<'bound>>,
        flags: u32,
        _lock: &mut OpsLocked<'bound>,
    ) -> Result {
        // Takes effect with the next poll.
        port.flags.store(flags, Relaxed);
        Ok(())
    }

    fn flow_hash<'bound>(
        port: Pin<&Port<'bound>>,
        flow: Flow,
        _lock: &mut OpsLocked<'bound>,
    ) -> FlowHash {
        port.hashing.get(flow)
    }

    fn set_flow_hash<'bound>(
        port: Pin<&Port<'bound>>,
        netdev: &Device,
        flow: Flow,
        hash: FlowHash,
        lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result {
        port.hashing.set(flow, hash).map_err(|error| {
            extack.refuse(
                error,
                c"the ports of TCP and UDP are hashed, of no other protocol",
            )
        })?;
        // If the device is down, `start()` passes it to the card.
        if netdev.is_running() {
            port.hashing.apply(&port.bar, port.pairs(lock));
        }
        Ok(())
    }

    const OPS: OptionalOps<Self> = OptionalOps::NONE.with_controls().with_queue_management();
}
