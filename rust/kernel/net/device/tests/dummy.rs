// SPDX-License-Identifier: GPL-2.0

//! A network device without hardware, for tests: it receives what it transmits, and writes down
//! what happens to it.

use super::{
    super::{
        ops,
        Driver,
        Flow,
        FlowHash,
        Info,
        MacAddress,
        MtuChange,
        Opening,
        RxMode,
        Statistics,
        Stats64, //
    },
    fixture,
    pool::Kept, //
};

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
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
        skbuff::SkBuff, //
    },
    new_spinlock,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SpinLock, //
    },
    time::{
        delay::udelay,
        Delta, //
    }, //
};

/// What the log can hold.
const LOG: usize = 64;

/// Something that happened to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Event {
    Open,
    Start,
    Xmit,
    Told,
    Kick,
    QueueTaken,
    Poll,
    PollNetpoll,
    PoolUsable,
    PoolRefused,
    Rearm,
    Quiesce,
    TxDropped,
    PollerDropped,
    DataDropped,
    ThreadRan,
    Timeout,
}

/// The stage at which the device fails to go up.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Fail {
    No,
    Open,
    SecondVector,
    Start,
}

/// What a packet meets.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum OnXmit {
    Take,
    Busy,
    BusyAndStop,
    /// Stop, be woken by another CPU, and return the packet.
    BusyAndWoken,
    /// Stop, and return another packet.
    BusyWithAnother,
    /// Take it as the last for which there is room.
    TakeAndStop,
}

/// What tests look at and turn.
pub(super) struct Log {
    len: Atomic<usize>,
    events: [Atomic<u32>; LOG],
    pub(super) fail: Atomic<u32>,
    pub(super) on_xmit: Atomic<u32>,
    /// Do not go idle.
    pub(super) busy: Atomic<u32>,
    /// Poll once more from within.
    pub(super) reenter: Atomic<u32>,
    /// How many statistics there are.
    pub(super) statistics: Atomic<u32>,
    pub(super) irq: [Atomic<u32>; 2],
    pub(super) event_irq: Atomic<u32>,
    pub(super) queues: Atomic<u32>,
    /// Write down when the card is told of packets.
    pub(super) doorbells: Atomic<u32>,
    /// Transmit that many packets from within the poll function.
    pub(super) forward: Atomic<u32>,
    /// Take the queue from the stack within the poll function, after that.
    pub(super) take_queue: Atomic<u32>,
    /// Complete that many bytes more than there were.
    pub(super) overcount: Atomic<usize>,
    /// Make a page pool, and keep it.
    pub(super) page_pool: Atomic<u32>,
    pub(super) received: Atomic<u64>,
    pub(super) addresses: Atomic<u32>,
    pub(super) restart_mtu: Atomic<u32>,
    pub(super) flags: Atomic<u32>,
    /// Whether the device is one that combines, and whether it does so now.
    pub(super) combining: Atomic<u32>,
    pub(super) combines: Atomic<u32>,
    /// For how many packets there is room, if not zero.
    pub(super) room: Atomic<usize>,
    /// Complete packets when the queue has been stopped by somebody else.
    pub(super) complete_late: Atomic<u32>,
    /// Packets that were taken, and how often the card was told of some.
    pub(super) taken: Atomic<u32>,
    pub(super) told: Atomic<u32>,
    /// The last one of each sender, see [`fixture::numbered`], and how many were out of order.
    last: [Atomic<u32>; 8],
    pub(super) disorder: Atomic<u32>,
    /// UDP over IPv4 is hashed with its ports.
    pub(super) udp_ports: Atomic<u32>,
    /// How often the queue was not stopped when the device was down.
    pub(super) awake: Atomic<u32>,
}

impl Log {
    pub(super) fn new() -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                len: Atomic::new(0),
                events: [const { Atomic::new(0) }; LOG],
                fail: Atomic::new(Fail::No as u32),
                on_xmit: Atomic::new(OnXmit::Take as u32),
                busy: Atomic::new(0),
                reenter: Atomic::new(0),
                statistics: Atomic::new(2),
                irq: [const { Atomic::new(0) }; 2],
                event_irq: Atomic::new(0),
                queues: Atomic::new(1),
                doorbells: Atomic::new(0),
                forward: Atomic::new(0),
                take_queue: Atomic::new(0),
                overcount: Atomic::new(0),
                page_pool: Atomic::new(0),
                received: Atomic::new(0),
                addresses: Atomic::new(0),
                restart_mtu: Atomic::new(0),
                flags: Atomic::new(0),
                combining: Atomic::new(0),
                combines: Atomic::new(1),
                room: Atomic::new(0),
                complete_late: Atomic::new(0),
                taken: Atomic::new(0),
                told: Atomic::new(0),
                last: [const { Atomic::new(0) }; 8],
                disorder: Atomic::new(0),
                udp_ports: Atomic::new(0),
                awake: Atomic::new(0),
            },
            GFP_KERNEL,
        )?)
    }

    pub(super) fn add(&self, event: Event) {
        let index = self.len.fetch_add(1, Relaxed);
        if let Some(slot) = self.events.get(index) {
            slot.store(event as u32, Relaxed);
        }
    }

    /// Notes that a packet was put into the ring. Each one of a sender follows the one before.
    fn note(&self, skb: &SkBuff) {
        self.taken.fetch_add(1, Relaxed);
        if let Some((sender, number)) = fixture::number_of(skb) {
            if let Some(last) = self.last.get(sender) {
                if last.xchg(number, Relaxed).wrapping_add(1) != number {
                    self.disorder.fetch_add(1, Relaxed);
                }
            }
        }
    }

    /// Whether exactly these events have happened since the last call.
    pub(super) fn take(&self, expected: &[Event]) -> bool {
        let len = self.len.xchg(0, Relaxed).min(LOG);
        let same = len == expected.len()
            && expected
                .iter()
                .zip(&self.events)
                .all(|(expected, event)| event.load(Relaxed) == *expected as u32);

        if !same {
            pr_err!("expected {expected:?}, got:\n");
            for event in self.events.iter().take(len) {
                pr_err!("  event {}\n", event.load(Relaxed));
            }
        }
        same
    }

    /// Removes all of one kind from the log. Returns whether there was any.
    pub(super) fn forget(&self, event: Event) -> bool {
        let len = self.len.load(Relaxed).min(LOG);
        let mut kept = 0;

        for index in 0..len {
            let value = self.events[index].load(Relaxed);
            if value != event as u32 {
                self.events[kept].store(value, Relaxed);
                kept += 1;
            }
        }
        self.len.store(kept, Relaxed);
        kept != len
    }

    pub(super) fn count(&self, event: Event) -> usize {
        let len = self.len.load(Relaxed).min(LOG);
        self.events
            .iter()
            .take(len)
            .filter(|slot| slot.load(Relaxed) == event as u32)
            .count()
    }
}

/// The driver.
pub(super) struct Dummy;

pub(super) type Wire = Arc<SpinLockWire>;

#[pin_data]
pub(super) struct SpinLockWire {
    #[pin]
    packets: SpinLock<KVec<SkBuff>>,
}

#[pin_data(PinnedDrop)]
pub(super) struct Data<'bound> {
    pub(super) log: Arc<Log>,
    parent: &'bound device::Device<Bound>,
    #[pin]
    pub(super) kept: Kept,
}

#[pinned_drop]
impl PinnedDrop for Data<'_> {
    fn drop(self: Pin<&mut Self>) {
        self.log.add(Event::DataDropped);
    }
}

pub(super) struct Poller<'bound> {
    wire: Wire,
    log: Arc<Log>,
    _parent: &'bound device::Device<Bound>,
}

impl Drop for Poller<'_> {
    fn drop(&mut self) {
        self.log.add(Event::PollerDropped);
    }
}

pub(super) struct Tx {
    wire: Wire,
    log: Arc<Log>,
}

impl Drop for Tx {
    fn drop(&mut self) {
        self.log.add(Event::TxDropped);
    }
}

#[vtable]
impl Driver for Dummy {
    type Bus = device::Device<Bound>;
    type Setup = Arc<Log>;
    type Data<'bound> = Data<'bound>;
    type Poller<'bound> = Poller<'bound>;
    type Tx<'bound> = Tx;

    fn probe<'bound>(
        bus: &'bound Self::Bus,
        log: Arc<Log>,
    ) -> Result<(Info, impl PinInit<Data<'bound>, Error>)> {
        let info = Info {
            queues: log.queues.load(Relaxed) as u16,
            max_mtu: 9000,
            combining: log.combining.load(Relaxed) != 0,
            ..Info::new(MacAddress::from([2, 0, 0, 0, 0, 1]))
        };

        Ok((
            info,
            try_pin_init!(Data {
                log,
                parent: bus,
                kept <- Kept::new(),
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
                if log.page_pool.load(Relaxed) != 0 {
                    data.kept.make(data.parent, napi)?;
                }
                if index == 1 && log.fail.load(Relaxed) == Fail::SecondVector as u32 {
                    return Err(ENOMEM);
                }

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
                        _parent: data.get_ref().parent,
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

    fn start<'bound>(data: Pin<&Data<'bound>>, dev: &Device) -> Result {
        data.log.add(Event::Start);
        if data.log.fail.load(Relaxed) == Fail::Start as u32 {
            return Err(EIO);
        }
        dev.carrier_on();
        Ok(())
    }

    fn quiesce<'bound>(data: Pin<&Data<'bound>>, dev: &Device) {
        assert!(!dev.is_carrier_ok());
        // SAFETY: The device has this queue.
        let is_stopped = unsafe {
            bindings::netif_tx_queue_stopped(bindings::netdev_get_tx_queue(dev.as_raw(), 0))
        };
        if !is_stopped {
            data.log.awake.fetch_add(1, Relaxed);
        }
        data.log.add(Event::Quiesce);
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

        match data.kept.is_usable(cx) {
            None => (),
            Some(true) => data.log.add(Event::PoolUsable),
            Some(false) => data.log.add(Event::PoolRefused),
        }

        if data.log.complete_late.xchg(0, Relaxed) != 0 {
            wait_for_stop(cx.device());
        }
        let received = core::mem::take(&mut *poller.wire.packets.lock());
        for skb in received {
            packets += 1;
            bytes += skb.len() as usize;
            cx.receive(skb);
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

    fn start_xmit<'bound>(
        data: Pin<&Data<'bound>>,
        tx: &mut Tx,
        queue: &TxQueue<'_>,
        skb: SkBuff,
        more: bool,
    ) -> Xmit {
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
                let index = c_uint::from(queue.index());
                bindings::netif_tx_start_queue(bindings::netdev_get_tx_queue(dev, index));
            }
            return Xmit::Busy(skb);
        }
        if what == OnXmit::TakeAndStop as u32 {
            assert!(queue.stop_if_low(|| 0, 1, 1));
        }
        if what == OnXmit::BusyWithAnother as u32 {
            assert!(queue.stop_if_low(|| 0, 1, 1));
            if let Ok(another) = SkBuff::alloc(64, GFP_ATOMIC) {
                return Xmit::Busy(another);
            }
        }

        let len = skb.len();
        data.log.note(&skb);
        let _ = tx.wire.packets.lock().push(skb, GFP_ATOMIC);
        let room = data.log.room.load(Relaxed);
        if room != 0 {
            let free = || room.saturating_sub(tx.wire.packets.lock().len());
            queue.stop_if_low(free, 1, 2);
        }
        if queue.sent(len, more) {
            data.log.told.fetch_add(1, Relaxed);
            if data.log.doorbells.load(Relaxed) != 0 {
                data.log.add(Event::Told);
            }
        }
        Xmit::Taken
    }

    fn combines<'bound>(data: Pin<&Data<'bound>>) -> bool {
        data.log.combines.load(Relaxed) != 0
    }

    fn kick<'bound>(data: Pin<&Data<'bound>>, _tx: &mut Tx) {
        data.log.add(Event::Kick);
    }

    fn event<'bound>(data: Pin<&Data<'bound>>, dev: &Device) {
        data.log.add(Event::ThreadRan);
        dev.carrier_on();
    }

    fn set_rx_mode<'bound>(data: Pin<&Data<'bound>>, _dev: &Device, mode: &RxMode<'_>) -> Result {
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
    ) -> Result {
        if address.octets()[5] == 0xff {
            return Err(EBUSY);
        }
        Ok(())
    }

    fn change_mtu<'bound>(data: Pin<&Data<'bound>>, _dev: &Device, _mtu: u32) -> Result<MtuChange> {
        if data.log.restart_mtu.load(Relaxed) != 0 {
            Ok(MtuChange::Restart)
        } else {
            Ok(MtuChange::Live)
        }
    }

    fn get_stats64<'bound>(data: Pin<&Data<'bound>>, stats: &mut Stats64<'_>) {
        stats.rx_packets(data.log.received.load(Relaxed));
    }

    fn tx_timeout<'bound>(data: Pin<&Data<'bound>>, _dev: &Device, _queue: u16) {
        data.log.add(Event::Timeout);
    }

    const PRIVATE_FLAGS: &'static [&'static str] = &["first", "second"];

    fn private_flags<'bound>(data: Pin<&Data<'bound>>) -> u32 {
        data.log.flags.load(Relaxed)
    }

    fn set_private_flags<'bound>(data: Pin<&Data<'bound>>, flags: u32) -> Result {
        // The second one cannot be set.
        if flags & 2 != 0 {
            return Err(EBUSY);
        }
        data.log.flags.store(flags, Relaxed);
        Ok(())
    }

    fn flow_hash<'bound>(data: Pin<&Data<'bound>>, flow: Flow) -> FlowHash {
        if flow == Flow::UdpIpv4 && data.log.udp_ports.load(Relaxed) != 0 {
            FlowHash::AddressesAndPorts
        } else {
            FlowHash::Addresses
        }
    }

    fn set_flow_hash<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        flow: Flow,
        hash: FlowHash,
    ) -> Result {
        if flow != Flow::UdpIpv4 {
            return Err(EBUSY);
        }
        let ports = u32::from(hash == FlowHash::AddressesAndPorts);
        data.log.udp_ports.store(ports, Relaxed);
        Ok(())
    }

    fn ethtool_statistics<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        statistics: &mut Statistics<'_>,
    ) {
        for index in 0..data.log.statistics.load(Relaxed) {
            statistics.add(fmt!("statistic_{index}"), u64::from(index) + 1);
        }
    }
}

/// Waits until somebody has stopped queue 0, for a second at most.
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

/// Transmits packets from within a poll function, as the stack of a router does.
fn forward(log: &Log, dev: &Device) {
    for _ in 0..log.forward.xchg(0, Relaxed) {
        if let Ok(skb) = fixture::packet(GFP_ATOMIC) {
            fixture::transmit(skb, dev.as_raw());
        }
    }
    if log.take_queue.xchg(0, Relaxed) != 0 {
        // SAFETY: The device is registered.
        let inner = unsafe { ops::inner::<Dummy>(dev.as_raw()) };
        let mut tx = None;
        inner.exchange_tx(0, &mut tx);
        log.add(Event::QueueTaken);
        // And gives it back.
        inner.exchange_tx(0, &mut tx);
    }
}

/// An interrupt without hardware, which tests raise.
pub(super) struct Irq(pub(super) u32);

impl Irq {
    pub(super) fn new() -> Result<Self> {
        // SAFETY: Any interrupt number will do, on any node.
        let irq = unsafe {
            bindings::__irq_alloc_descs(-1, 1, 1, -1, core::ptr::null_mut(), core::ptr::null())
        };
        let irq = Self(u32::try_from(irq).map_err(|_| Error::from_errno(irq))?);

        // SAFETY: We own the interrupt, and nobody has requested it yet.
        unsafe {
            bindings::irq_set_chip_and_handler_name(
                irq.0,
                &raw const bindings::dummy_irq_chip,
                Some(bindings::handle_simple_irq),
                core::ptr::null(),
            );
            bindings::irq_modify_status(
                irq.0,
                (bindings::IRQ_NOREQUEST | bindings::IRQ_NOPROBE) as usize,
                0,
            );
        }
        Ok(irq)
    }

    /// Raises the interrupt. Softirqs have to be let run after that.
    pub(super) fn raise(&self) {
        // SAFETY: The interrupt is valid.
        unsafe { bindings::generic_handle_irq_safe(self.0) };
    }
}

impl Irq {
    /// Waits for handlers and threads.
    pub(super) fn synchronize(&self) {
        // SAFETY: The interrupt is valid, and this is process context.
        unsafe { bindings::synchronize_irq(self.0) };
    }
}

impl Drop for Irq {
    fn drop(&mut self) {
        // SAFETY: We own the interrupt; tests free their handlers before.
        unsafe { bindings::irq_free_descs(self.0, 1) };
    }
}
