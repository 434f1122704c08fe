// SPDX-License-Identifier: GPL-2.0

//! A driver of a network device without hardware, for tests: the device receives what it transmits,
//! and logs what happens to it.

mod log;
mod optional;
mod packets;

use self::packets::{
    forward,
    receive, //
};

pub(in crate::net::device) use self::log::{
    Event,
    Fail,
    Log,
    OnXmit,
    Reception, //
};

use super::{
    super::{
        bus::{
            BusDevice,
            Parent, //
        },
        deferring::Deferring,
        ethtool::{
            rxnfc::FlowRules,
            wol::{
                WakePacket,
                WakePackets, //
            }, //
        },
        Driver,
        Feature,
        Features,
        Info,
        Locks,
        MacAddress,
        MtuChange,
        Opening,
        OptionalOps,
        Rtnl,
        RxMode,
        Stats64,
        WatchdogAction, //
    },
    fixture,
    irq::Irq,
    pool::Kept,
    tx_rings, //
};

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    devres::Devres,
    irq::IrqRequest,
    net::{
        device::Device,
        napi::{
            Poll,
            Polled, //
        },
        queue::{
            TxQueue,
            Xmit, //
        },
        skbuff::{
            SkBuff,
            TxSkBuff, //
        }, //
    },
    new_spinlock,
    prelude::*,
    softirq::BhGuard,
    sync::{
        atomic::Relaxed,
        Arc,
        SpinLock, //
    },
    time::{
        delay::{
            fsleep,
            udelay, //
        },
        Delta, //
    }, //
};

use core::mem::ManuallyDrop;

// SAFETY: `device::Device` is a transparent wrapper of `struct device`, which is not freed while it
// is bound. The registration ends before it is unbound: see `register()`.
unsafe impl Parent for device::Device<Bound> {
    fn as_device(&self) -> Option<&device::Device<Bound>> {
        Some(self)
    }
}

// SAFETY: It is a transparent wrapper.
unsafe impl BusDevice for device::Device<Bound> {
    type Core<'a> = device::Device<device::Core<'a>>;

    fn as_core<'r, 'a>(bus: &'r Self::Core<'a>) -> &'r device::Device<device::Core<'a>> {
        bus
    }
}

/// The driver.
pub(in crate::net::device) struct Dummy;

pub(in crate::net::device) type Wire = Arc<SpinLockWire>;

#[pin_data]
pub(in crate::net::device) struct SpinLockWire {
    #[pin]
    packets: SpinLock<KVec<SkBuff>>,
}

#[pin_data(PinnedDrop)]
pub(in crate::net::device) struct Data<'bound> {
    pub(in crate::net::device) log: Arc<Log>,
    parent: &'bound device::Device<Bound>,
    rules: FlowRules<'bound>,
    #[pin]
    pub(in crate::net::device) kept: Kept,
    #[pin]
    kept_tx: tx_rings::Kept<'bound>,
}

#[pinned_drop]
impl PinnedDrop for Data<'_> {
    fn drop(self: Pin<&mut Self>) {
        self.log.add(Event::DataDropped);
    }
}

pub(in crate::net::device) struct Poller<'bound> {
    wire: Wire,
    log: Arc<Log>,
    resource: Option<Devres<Resource>>,
    parent: &'bound device::Device<Bound>,
}

/// A resource of the bus device.
struct Resource {
    log: Arc<Log>,
}

impl Drop for Resource {
    fn drop(&mut self) {
        self.log.add(Event::ResourceGone);
    }
}

impl Drop for Poller<'_> {
    fn drop(&mut self) {
        self.log.add(Event::PollerDropped);
    }
}

pub(in crate::net::device) struct Tx {
    wire: Wire,
    log: Arc<Log>,
}

impl Drop for Tx {
    fn drop(&mut self) {
        self.log.add(Event::TxDropped);
    }
}

/// Does what the test has asked for with the ring.
fn work_with_ring(data: &Data<'_>, cx: &Poll<'_>) {
    let log = &data.log;

    if log.use_ring.xchg(0, Relaxed) != 0 && data.kept.receive(cx).is_err() {
        log.ring_errors.fetch_add(1, Relaxed);
    }
    if log.drop_ring.xchg(0, Relaxed) != 0 {
        match data.kept.drop_ring(cx) {
            Ok((before, after)) => {
                log.lacking[0].store(before, Relaxed);
                log.lacking[1].store(after, Relaxed);
            }
            Err(_) => {
                log.ring_errors.fetch_add(1, Relaxed);
            }
        }
    }
}

#[vtable]
impl Driver for Dummy {
    type Bus = device::Device<Bound>;
    type Setup = Arc<Log>;
    type Data<'bound> = Data<'bound>;
    type Poller<'bound> = Poller<'bound>;
    type Tx<'bound> = Tx;
    type Doorbell = Deferring;

    fn probe<'bound>(
        bus: &'bound Self::Bus,
        log: Arc<Log>,
    ) -> Result<(Info, impl PinInit<Data<'bound>, Error>)> {
        let info = Info {
            queues: log.queues.load(Relaxed) as u16,
            max_mtu: 9000,
            features: Features::NONE.with(Feature::RxHash),
            tunnels: Features::NONE.with(Feature::TunnelUdp),
            features_off: Features::NONE.with(Feature::Ntuple),
            wake: WAKE
                .iter()
                .fold(WakePackets::NONE, |all, one| all.with(*one)),
            ..Info::new(MacAddress::from([2, 0, 0, 0, 0, 1]))
        };

        Ok((
            info,
            try_pin_init!(Data {
                log,
                parent: bus,
                rules: FlowRules::new(),
                kept <- Kept::new(),
                kept_tx <- tx_rings::Kept::new(),
            }? Error),
        ))
    }

    fn open<'bound>(cx: &mut Opening<'_, 'bound, Self>) -> Result {
        let data = cx.data();
        let log = &data.get_ref().log;

        log.add(Event::Open);
        if log.fail.load(Relaxed) == Fail::Open as u32 {
            return Err(EIO);
        }

        for index in 0..usize::from(cx.queues()) {
            // SAFETY: Tests set interrupts that exist until the device is gone.
            let irq =
                unsafe { IrqRequest::new(data.get_ref().parent, log.irq[index].load(Relaxed)) };

            cx.add_queue_vector(irq, c"dummy", |napi| {
                // One that was kept, of another vector.
                if data.kept.has_address(napi) == Some(true) {
                    log.ring_errors.fetch_add(1, Relaxed);
                }
                if log.rx_ring.load(Relaxed) != 0 {
                    data.kept.make(data.parent, napi)?;
                }
                match log.tx_ring.load(Relaxed) {
                    tx_rings::DROP => drop(tx_rings::make(data.get_ref().parent, napi)?),
                    tx_rings::KEEP => data.get_ref().kept_tx.make(data.parent, napi)?,
                    _ => (),
                }
                if let Some(on_napi) = log.on_napi.as_ref() {
                    on_napi(napi)?;
                }
                if index == 1 && log.fail.load(Relaxed) == Fail::SecondVector as u32 {
                    return Err(ENOMEM);
                }

                let resource = if log.resource.load(Relaxed) != 0 {
                    let log = log.clone();
                    Some(Devres::new(data.parent, Resource { log })?)
                } else {
                    None
                };
                let wire = Arc::pin_init(
                    pin_init!(SpinLockWire {
                        packets <- new_spinlock!(KVec::new()),
                    }),
                    GFP_KERNEL,
                )?;
                Ok((
                    Poller {
                        wire: wire.clone(),
                        log: log.clone(),
                        resource,
                        parent: data.get_ref().parent,
                    },
                    Tx {
                        wire,
                        log: log.clone(),
                    },
                ))
            })?;
        }

        let irq = log.event_irq.load(Relaxed);
        if irq != 0 {
            // SAFETY: As above.
            let irq = unsafe { IrqRequest::new(data.get_ref().parent, irq) };
            cx.add_event_vector(irq, c"dummy-event")?;
        }
        Ok(())
    }

    fn start<'bound>(data: Pin<&Data<'bound>>, dev: &Device, _locks: &mut Locks<'bound>) -> Result {
        data.log.add(Event::Start);
        data.log.started_with.store(dev.features().0, Relaxed);
        if data.log.fail.load(Relaxed) == Fail::Start as u32 {
            return Err(EIO);
        }
        if data.log.early.load(Relaxed) != 0 {
            interrupt_early(&data.log);
            data.log.add(Event::Started);
        }
        if data.log.fail.load(Relaxed) == Fail::StartLate as u32 {
            return Err(EIO);
        }
        dev.carrier_on();
        Ok(())
    }

    fn quiesce<'bound>(
        data: Pin<&Data<'bound>>,
        dev: &Device,
        _locks: &mut Locks<'bound>,
    ) -> Result {
        assert!(!dev.is_carrier_ok());
        // SAFETY: The device has this queue.
        let is_stopped = unsafe {
            bindings::netif_tx_queue_stopped(bindings::netdev_get_tx_queue(dev.as_raw(), 0))
        };
        if !is_stopped {
            data.log.awake.fetch_add(1, Relaxed);
        }
        data.log.add(Event::Quiesce);
        data.log
            .references
            .store(tx_rings::references(data.get_ref().parent), Relaxed);
        if data.log.fail.load(Relaxed) == Fail::Quiesce as u32 {
            return Err(ETIMEDOUT);
        }
        Ok(())
    }

    fn reset<'bound>(data: Pin<&Data<'bound>>, _dev: &Device, _rtnl: &mut Rtnl) -> Result {
        data.log.add(Event::Reset);
        if data.log.fail.load(Relaxed) == Fail::Reset as u32 {
            return Err(EIO);
        }
        Ok(())
    }

    fn poll<'bound>(
        data: Pin<&Data<'bound>>,
        poller: &mut Poller<'bound>,
        cx: &Poll<'_>,
    ) -> Polled {
        let (mut packets, mut bytes) = (0, 0);

        data.log.add(if cx.is_netpoll() {
            Event::PollNetpoll
        } else {
            Event::Poll
        });

        // As netpoll may.
        if cfg!(CONFIG_NETPOLL) && data.log.reenter.xchg(0, Relaxed) != 0 {
            // SAFETY: The instance is valid, and is being polled.
            let done = unsafe {
                let napi = cx.napi().as_raw();
                (*napi).poll.map(|poll| poll(napi, 0))
            };
            assert_eq!(done, Some(0));
        }

        if let Some(resource) = &poller.resource {
            if let Ok(resource) = resource.access(poller.parent) {
                resource.log.add(Event::ResourceUsed);
            }
        }

        match data.kept.is_usable(cx) {
            None => (),
            Some(true) => data.log.add(Event::PoolUsable),
            Some(false) => data.log.add(Event::PoolRefused),
        }
        work_with_ring(data.get_ref(), cx);
        if data.log.drop_tx_ring.xchg(0, Relaxed) != 0 && !data.kept_tx.drop_handle() {
            data.log.ring_errors.fetch_add(1, Relaxed);
        }

        if data.log.complete_late.xchg(0, Relaxed) != 0 {
            wait_for_stop(cx.device());
        }
        let received = core::mem::take(&mut *poller.wire.packets.lock());
        for skb in received {
            packets += 1;
            bytes += skb.len() as usize;
            receive(&data.log, cx, skb);
        }
        bytes += data.log.overcount.load(Relaxed);
        cx.tx_queue().completed(packets, bytes, || 64, 8);
        data.log.received.fetch_add(packets as u64, Relaxed);

        forward(&data.log, cx.device());

        if data.log.busy.load(Relaxed) != 0 {
            data.log.busy.store(0, Relaxed);
            Polled::Busy
        } else {
            Polled::Idle { received: packets }
        }
    }

    fn rearm<'bound>(data: Pin<&Data<'bound>>, _vector: u16) {
        data.log.add(Event::Rearm);
    }

    fn start_xmit<'bound, 'call>(
        data: Pin<&Data<'bound>>,
        tx: &mut Tx,
        queue: &TxQueue<'_, Self::Doorbell>,
        skb: TxSkBuff<'call>,
        more: bool,
    ) -> Xmit<'call> {
        let what = data.log.on_xmit.load(Relaxed);

        data.log.add(Event::Xmit);
        if what == OnXmit::Busy as u32 {
            return Xmit::Busy(skb);
        }
        if what == OnXmit::BusyAndStop as u32 {
            assert!(queue.stop_if_low(|| 0, 1, 1));
            return Xmit::Busy(skb);
        }

        if what == OnXmit::BusyAndWoken as u32 {
            assert!(queue.stop_if_low(|| 0, 1, 1));
            // SAFETY: The packet is one of a device, and this queue is locked.
            unsafe {
                let dev = (*skb.as_raw())
                    .__bindgen_anon_1
                    .__bindgen_anon_1
                    .__bindgen_anon_1
                    .dev;
                let index = queue.index() as c_uint;
                bindings::netif_tx_start_queue(bindings::netdev_get_tx_queue(dev, index));
            }
            return Xmit::Busy(skb);
        }
        if what == OnXmit::TakeAndStop as u32 {
            assert!(queue.stop_if_low(|| 0, 1, 1));
        }
        if data.log.nested.xchg(0, Relaxed) != 0 {
            // SAFETY: The packet is one of a device.
            let dev = unsafe {
                (*skb.as_raw())
                    .__bindgen_anon_1
                    .__bindgen_anon_1
                    .__bindgen_anon_1
                    .dev
            };
            let nested = fixture::transmit_nested(dev);
            if nested == Some(bindings::netdev_tx::NETDEV_TX_BUSY) {
                data.log.refused.store(1, Relaxed);
            }
        }

        let len = skb.len();
        let _ = tx.wire.packets.lock().push(skb.into(), GFP_ATOMIC);
        if queue.sent(data.log.claimed(len), more) {
            data.log.told.fetch_add(1, Relaxed);
            if data.log.doorbells.load(Relaxed) != 0 {
                data.log.add(Event::Told);
            }
        }
        Xmit::Taken
    }

    fn kick<'bound>(data: Pin<&Data<'bound>>, _tx: &mut Tx) {
        data.log.add(Event::Kick);
    }

    fn event<'bound>(data: Pin<&Data<'bound>>, dev: &Device) {
        data.log.add(Event::ThreadRan);
        dev.carrier_on();
    }

    fn set_rx_mode<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        mode: &RxMode<'_>,
        _rtnl: &mut Rtnl,
    ) -> Result {
        let groups = mode
            .multicast()
            .filter(|address| address.is_multicast())
            .count();

        data.log.addresses.store(groups as u32, Relaxed);
        Ok(())
    }

    fn set_mac_address<'bound>(
        _data: Pin<&Data<'bound>>,
        _dev: &Device,
        address: MacAddress,
        _rtnl: &mut Rtnl,
    ) -> Result {
        if address.octets()[5] == 0xff {
            return Err(EBUSY);
        }
        Ok(())
    }

    fn change_mtu<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        _mtu: u32,
        _locks: &mut Locks<'bound>,
    ) -> Result<MtuChange> {
        if data.log.restart_mtu.load(Relaxed) != 0 {
            Ok(MtuChange::Restart)
        } else {
            Ok(MtuChange::Live)
        }
    }

    fn get_stats64<'bound>(data: Pin<&Data<'bound>>, stats: &mut Stats64<'_>, is_reachable: bool) {
        if !is_reachable {
            data.log.unreachable.fetch_add(1, Relaxed);
        }
        stats.rx_packets(data.log.received.load(Relaxed));
    }

    fn watchdog<'bound>(data: Pin<&Data<'bound>>, _dev: &Device) -> WatchdogAction {
        data.log.watchdog.fetch_add(1, Relaxed);
        if data.log.unwell.xchg(0, Relaxed) != 0 {
            WatchdogAction::Restart
        } else {
            WatchdogAction::Continue
        }
    }

    fn tx_timeout<'bound>(data: Pin<&Data<'bound>>, _dev: &Device, _queue: u16) {
        data.log.add(Event::Timeout);
    }

    const OPS: OptionalOps<Self> = OptionalOps::NONE
        .features()
        .features_check()
        .rxfh()
        .rxnfc()
        .statistics()
        .wol();
}

/// The packets by which the NIC can wake the machine.
const WAKE: [WakePacket; 4] = [
    WakePacket::Unicast,
    WakePacket::Multicast,
    WakePacket::Broadcast,
    WakePacket::Magic,
];

/// Raises the interrupts of the queue and of events, and lets both handlers end.
fn interrupt_early(log: &Log) {
    // The interrupts belong to the fixture.
    let queue = ManuallyDrop::new(Irq(log.irq[0].load(Relaxed)));
    let event = ManuallyDrop::new(Irq(log.event_irq.load(Relaxed)));

    if let Some(guard) = BhGuard::new() {
        queue.raise();
        event.raise();
        // Polls.
        drop(guard);
    }
    event.synchronize();
    fsleep(Delta::from_millis(20));
}

/// Waits until another CPU has stopped queue 0, for a second at most.
fn wait_for_stop(dev: &Device) {
    // SAFETY: The device has this queue.
    let queue = unsafe { bindings::netdev_get_tx_queue(dev.as_raw(), 0) };

    for _ in 0..1000 {
        // SAFETY: As above.
        if unsafe { bindings::netif_tx_queue_stopped(queue) } {
            break;
        }
        udelay(Delta::from_millis(1));
    }
}
