// SPDX-License-Identifier: GPL-2.0

//! A plain driver of a device without hardware, whose queues, interrupts and buffers tests choose.

use super::{
    super::{
        ethtool::{
            ringparam::RingparamOps,
            self_test::{
                SelfTest,
                SelfTestOps,
                TestFailure,
                TestResult, //
            }, //
        },
        features::{
            FeaturesChange,
            FeaturesOps, //
        },
        queue_mgmt::{
            QueueMgmtOps,
            RxQueueAlloc, //
        },
        queue_stats::{
            QueueStatsOps,
            RxQueueStats,
            TxQueueStats, //
        },
        Device,
        DmaStopped,
        Driver,
        Feature,
        Features,
        Immediate,
        Info,
        Locks,
        MacAddress,
        MtuChange,
        Opening,
        OpsCell,
        OpsLocked,
        OptionalOps,
        RingRange,
        Rtnl, //
    },
    buffers::BufferKind, //
};

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    irq::IrqRequest,
    net::{
        napi::{
            Attached,
            Napi,
            Poll,
            Polled,
            RxStopped, //
        },
        queue::{
            RingSize,
            TxQueue,
            Xmit, //
        },
        skbuff::{
            SkBuff,
            TxSkBuff, //
        }, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

mod controls;

pub(super) use self::controls::PlainDevice;

/// The number of vectors that a device can have.
const VECTORS: usize = 4;

/// The feature of a device.
pub(super) const FEATURE: Features = Features::NONE.with(Feature::RxHash);

/// The lengths that rings can have, if there were any.
const RINGS: RingRange = RingRange {
    min: RingSize::of::<16>(),
    max: RingSize::of::<128>(),
    default: RingSize::of::<32>(),
};

/// An object that belongs to a vector, and not to its receive queue.
pub(super) struct OfVector;

impl Attached for OfVector {}

/// The lock that a callback was called with.
pub(super) const RTNL: u32 = 1;
pub(super) const INSTANCE: u32 = 2;

/// A callback that takes a device up or down, or tests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Step {
    Open = 1,
    Start,
    Quiesce,
    Reset,
    OnlineTest,
    OfflineTest,
    MakeRx,
    StopRx,
    StartRx,
}

/// Some of them, in their order: four bits each, and those of the last one are the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps(u64);

impl Steps {
    /// These, and others after them.
    pub(super) fn and(self, others: impl Into<Self>) -> Self {
        let Self(others) = others.into();
        let bits = (u64::BITS - others.leading_zeros()).next_multiple_of(4);

        Self(self.0 << bits | others)
    }
}

impl<const N: usize> From<[Step; N]> for Steps {
    fn from(steps: [Step; N]) -> Self {
        Self(steps.iter().fold(0, |all, step| all << 4 | *step as u64))
    }
}

/// The device that a test wants, and what it has seen.
pub(super) struct Plan {
    pub(super) queues: u16,
    /// The vectors that `open()` adds, if not those of the device.
    pub(super) adds: Option<u16>,
    /// The interrupts of the vectors; zero for none.
    pub(super) irqs: [u32; VECTORS],
    /// The only vector has the first two interrupts.
    pub(super) is_split: bool,
    pub(super) ring: Option<BufferKind>,
    pub(super) polls: [Atomic<u32>; VECTORS],
    /// The interrupts that its last poll knew of.
    pub(super) interrupts: [Atomic<u32>; VECTORS],
    /// The queue of received packets, by vector.
    pub(super) mapping: [Atomic<u32>; VECTORS],
    pub(super) sent: [Atomic<u32>; VECTORS],
    pub(super) completed: [Atomic<u32>; VECTORS],
    /// The vectors whose state was taken back.
    pub(super) closed: Atomic<u32>,
    /// Stop the queue with the next packet.
    pub(super) stop: Atomic<u32>,
    /// The locks that were held in the last callback that says so.
    pub(super) locks: Atomic<u32>,
    pub(super) ring_errno: Atomic<i32>,
    pub(super) steps: Atomic<u64>,
    /// The lengths of the rings that were made last.
    pub(super) lens: [Atomic<u32>; 2],
    /// Fail to open, with the vectors added.
    pub(super) fail: Atomic<u32>,
    /// Fail to start, once.
    pub(super) fail_start: Atomic<u32>,
    /// How often a receive queue fails to be made, to stop and to start.
    pub(super) fail_rx: [Atomic<u32>; 3],
    /// Fail to make the second receive queue, once.
    pub(super) fail_second_rx: Atomic<u32>,
    /// How an object was refused that was made while a queue was started alone.
    pub(super) attach_errno: Atomic<i32>,
    /// Fail to stop it the second time.
    pub(super) fail_second_stop: Atomic<u32>,
    /// Start it with the descriptors as they are.
    pub(super) forgets_rewind: Atomic<u32>,
    /// The MTU and the features when other rings were made beside those in use: of the device, and
    /// of what it is to be.
    pub(super) beside: [Atomic<u64>; 4],
    /// The features that the driver was to apply last.
    pub(super) told: Atomic<u64>,
    /// The features with which the last queue was started alone.
    pub(super) started_rx_with: Atomic<u64>,
    /// The receive queues alone have to be restarted for other features.
    pub(super) restart_rx: Atomic<u32>,
    /// The device cannot have the feature that it has.
    pub(super) no_feature: Atomic<u32>,
    /// The codes of the tests, zero for those that do not fail.
    pub(super) codes: [Atomic<u32>; 2],
}

impl Plan {
    /// A device with as many vectors, without interrupts.
    pub(super) fn new(queues: u16) -> Self {
        Self {
            queues,
            adds: None,
            irqs: [0; VECTORS],
            is_split: false,
            ring: None,
            polls: [const { Atomic::new(0) }; VECTORS],
            interrupts: [const { Atomic::new(0) }; VECTORS],
            mapping: [const { Atomic::new(u32::MAX) }; VECTORS],
            sent: [const { Atomic::new(0) }; VECTORS],
            completed: [const { Atomic::new(0) }; VECTORS],
            closed: Atomic::new(0),
            stop: Atomic::new(0),
            locks: Atomic::new(0),
            ring_errno: Atomic::new(0),
            steps: Atomic::new(0),
            lens: [const { Atomic::new(0) }; 2],
            fail: Atomic::new(0),
            fail_start: Atomic::new(0),
            fail_rx: [const { Atomic::new(0) }; 3],
            fail_second_rx: Atomic::new(0),
            attach_errno: Atomic::new(0),
            fail_second_stop: Atomic::new(0),
            forgets_rewind: Atomic::new(0),
            beside: [const { Atomic::new(0) }; 4],
            told: Atomic::new(0),
            started_rx_with: Atomic::new(0),
            restart_rx: Atomic::new(0),
            no_feature: Atomic::new(0),
            codes: [const { Atomic::new(0) }; 2],
        }
    }

    /// The steps since this was called last.
    pub(super) fn steps(&self) -> Steps {
        Steps(self.steps.xchg(0, Relaxed))
    }

    fn step(&self, step: Step) {
        let steps = self.steps.load(Relaxed);
        self.steps.store(steps << 4 | step as u64, Relaxed);
    }

    /// Fails as often as a test wants.
    fn may_fail(&self, which: usize, error: Error) -> Result {
        match self.fail_rx[which].load(Relaxed) {
            0 => Ok(()),
            times => {
                self.fail_rx[which].store(times - 1, Relaxed);
                Err(error)
            }
        }
    }

    fn test(&self, step: Step, index: usize) -> TestResult {
        self.step(step);
        match self.codes[index].load(Relaxed) {
            0 => Ok(()),
            code => Err(TestFailure::with_code(code)),
        }
    }

    /// The lengths of the rings that were made last.
    pub(super) fn lens(&self) -> (u32, u32) {
        (self.lens[0].load(Relaxed), self.lens[1].load(Relaxed))
    }

    /// How often each vector was polled.
    pub(super) fn polls(&self) -> [u32; VECTORS] {
        self.polls.each_ref().map(|polls| polls.load(Relaxed))
    }

    /// How many interrupts each vector has had, as far as it was polled since.
    pub(super) fn interrupts(&self) -> [u32; VECTORS] {
        self.interrupts.each_ref().map(|count| count.load(Relaxed))
    }

    fn note_locks(&self, dev: &Device) {
        // SAFETY: There are no requirements; the device is valid.
        let (rtnl, instance) = unsafe {
            (
                bindings::rtnl_is_locked() != 0,
                bindings::netdev_is_locked(dev.as_raw()),
            )
        };
        let locks = if rtnl { RTNL } else { 0 } | if instance { INSTANCE } else { 0 };
        self.locks.store(locks, Relaxed);
    }
}

/// The driver.
pub(super) struct Plain<const OPS_LOCK: bool>;

pub(super) struct Data<'bound> {
    pub(super) plan: Arc<Plan>,
    parent: &'bound device::Device<Bound>,
    /// How often the device was opened.
    opened: OpsCell<'bound, u32>,
}

/// Packets that were sent by a queue, and not completed.
struct Wire {
    queue: usize,
    packets: Atomic<usize>,
    bytes: Atomic<usize>,
}

pub(super) struct Poller {
    wire: Arc<Wire>,
    ring: super::buffers::Rings,
}

pub(super) struct Tx {
    wire: Arc<Wire>,
}

#[vtable]
impl<const OPS_LOCK: bool> Driver for Plain<OPS_LOCK> {
    type Bus = device::Device<Bound>;
    type Setup = Arc<Plan>;
    type Data<'bound> = Data<'bound>;
    type Poller<'bound> = Poller;
    type Tx<'bound> = Tx;
    type Doorbell = Immediate;

    const OPS_LOCK: bool = OPS_LOCK;

    fn probe<'bound>(
        bus: &'bound Self::Bus,
        plan: Arc<Plan>,
    ) -> Result<(Info, impl PinInit<Data<'bound>, Error>)> {
        let info = Info {
            queues: plan.queues,
            features: FEATURE,
            ..Info::new(MacAddress::from([2, 0, 0, 0, 0, 2]))
        };

        Ok((
            info,
            Ok(Data {
                plan,
                parent: bus,
                opened: OpsCell::new(0),
            }),
        ))
    }

    fn open<'bound>(cx: &mut Opening<'_, 'bound, Self>) -> Result {
        let data = cx.data().get_ref();
        let plan = &data.plan;

        plan.note_locks(cx.device());
        plan.step(Step::Open);
        let sizes = cx.ring_sizes();
        plan.lens[0].store(sizes.rx.get() as u32, Relaxed);
        plan.lens[1].store(sizes.tx.get() as u32, Relaxed);
        *data.opened.get_mut(cx.ops_lock()) += 1;
        if cx.is_up() {
            let (dev, features) = (cx.device(), cx.features());
            let beside = [
                dev.mtu().into(),
                dev.features().0,
                cx.mtu().into(),
                features.0,
            ];

            for (seen, value) in plan.beside.iter().zip(beside) {
                seen.store(value, Relaxed);
            }
        }

        let mut index = 0;
        let mut irqs = || {
            let irq = plan.irqs[index];
            index += 1;
            // SAFETY: Tests set interrupts that exist until the device is gone.
            let request = unsafe { IrqRequest::new(data.parent, irq) };
            // SAFETY: As above.
            let tx = unsafe { IrqRequest::new(data.parent, plan.irqs[1]) };
            (irq, request, tx)
        };
        let pair = |napi: &Napi, queue| -> Result<(Poller, Tx)> {
            let wire = Arc::new(
                Wire {
                    queue,
                    packets: Atomic::new(0),
                    bytes: Atomic::new(0),
                },
                GFP_KERNEL,
            )?;
            let mut poller = Poller {
                wire: wire.clone(),
                ring: super::buffers::Rings::new(plan.ring, data.parent, napi)?,
            };
            poller.ring.tell(napi)?;
            Ok((poller, Tx { wire }))
        };

        for queue in 0..usize::from(plan.adds.unwrap_or(cx.queues())) {
            let make = |napi: &Napi| pair(napi, queue);

            match irqs() {
                (_, rx, tx) if plan.is_split => cx.add_split_queue_vector(rx, tx, make)?,
                (0, ..) => cx.add_virtual_queue_vector(make)?,
                (_, irq, _) => cx.add_queue_vector(irq, c"plain", make)?,
            };
        }
        if plan.fail.load(Relaxed) != 0 {
            return Err(ENOMEM);
        }
        Ok(())
    }

    const OPEN_WHILE_UP: bool = true;

    fn start<'bound>(data: Pin<&Data<'bound>>, dev: &Device, _locks: &mut Locks<'bound>) -> Result {
        data.plan.step(Step::Start);
        if data.plan.fail_start.xchg(0, Relaxed) != 0 {
            return Err(EIO);
        }
        dev.carrier_on();
        Ok(())
    }

    fn quiesce<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        _locks: &mut Locks<'bound>,
    ) -> Result {
        data.plan.step(Step::Quiesce);
        Ok(())
    }

    fn reset<'bound>(data: Pin<&Data<'bound>>, dev: &Device, _rtnl: &mut Rtnl) -> Result {
        data.plan.step(Step::Reset);
        data.plan.note_locks(dev);
        Ok(())
    }

    fn change_mtu<'bound>(
        _data: Pin<&Data<'bound>>,
        _dev: &Device,
        _mtu: u32,
        _locks: &mut Locks<'bound>,
    ) -> Result<MtuChange> {
        Ok(MtuChange::Restart)
    }

    fn poll<'bound>(data: Pin<&Data<'bound>>, poller: &mut Poller, cx: &Poll<'_>) -> Polled {
        let plan = &data.plan;
        let vector = usize::from(cx.rx_mapping()) - 1;

        plan.polls[vector].fetch_add(1, Relaxed);
        plan.interrupts[vector].store(cx.interrupts(), Relaxed);
        plan.mapping[vector].store(cx.rx_mapping().into(), Relaxed);
        if let Err(error) = poller.ring.check(cx) {
            plan.ring_errno.store(error.to_errno(), Relaxed);
        }

        let wire = &poller.wire;
        let packets = wire.packets.xchg(0, Relaxed);
        cx.tx_queue()
            .completed(packets, wire.bytes.xchg(0, Relaxed), || 64, 1);
        plan.completed[wire.queue].fetch_add(packets as u32, Relaxed);
        Polled::Idle { received: 0 }
    }

    fn closed<'bound>(data: Pin<&Data<'bound>>, _poller: Poller, _stopped: &DmaStopped<'_>) {
        data.plan.closed.fetch_add(1, Relaxed);
    }

    fn rearm<'bound>(_data: Pin<&Data<'bound>>, _vector: u16) {}

    fn start_xmit<'bound, 'call>(
        data: Pin<&Data<'bound>>,
        tx: &mut Tx,
        queue: &TxQueue<'_>,
        skb: TxSkBuff<'call>,
        more: bool,
    ) -> Xmit<'call> {
        let wire = &tx.wire;

        assert_eq!(queue.index(), wire.queue);
        if data.plan.stop.xchg(0, Relaxed) != 0 {
            assert!(queue.stop_if_low(|| 0, 1, 1));
        }
        wire.packets.fetch_add(1, Relaxed);
        wire.bytes.fetch_add(skb.len() as usize, Relaxed);
        data.plan.sent[wire.queue].fetch_add(1, Relaxed);
        let _ = queue.sent(skb.len(), more);
        SkBuff::from(skb).consume();
        Xmit::Taken
    }

    const OPS: OptionalOps<Self> = {
        let ops = OptionalOps::NONE
            .features()
            .queue_stats()
            .ringparam()
            .self_test();

        if OPS_LOCK {
            ops.queue_mgmt()
        } else {
            ops
        }
    };
}

impl<const OPS_LOCK: bool> RingparamOps for Plain<OPS_LOCK> {
    const RINGS: RingRange = RINGS;
}

impl<const OPS_LOCK: bool> QueueMgmtOps for Plain<OPS_LOCK> {
    type Rx<'bound> = super::buffers::Rings;

    fn rx<'a, 'bound: 'a>(poller: &'a mut Poller) -> &'a mut super::buffers::Rings {
        &mut poller.ring
    }

    fn alloc_rx<'bound>(cx: &mut RxQueueAlloc<'_, 'bound, Self>) -> Result<super::buffers::Rings> {
        let data = cx.data().get_ref();

        data.plan.step(Step::MakeRx);
        data.plan.lens[0].store(cx.ring_sizes().rx.get() as u32, Relaxed);
        data.plan.note_locks(cx.device());
        let mut rings = super::buffers::Rings::new(data.plan.ring, data.parent, cx.napi())?;
        data.plan.may_fail(0, ENOMEM)?;
        if cx.queue() == 1 && data.plan.fail_second_rx.xchg(0, Relaxed) != 0 {
            return Err(ENOMEM);
        }
        // There is no address yet: the memory is freed if the queue does not get it.
        if data.plan.ring.is_some() && rings.tell(cx.napi()) != Err(EINVAL) {
            return Err(EBADFD);
        }
        Ok(rings)
    }

    fn stop_rx<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        _queue: u16,
        _rx: &mut super::buffers::Rings,
        _lock: &mut OpsLocked<'bound>,
    ) -> Result {
        data.plan.step(Step::StopRx);
        match data.plan.fail_second_stop.load(Relaxed) {
            0 => data.plan.may_fail(1, EIO),
            1 => {
                data.plan.fail_second_stop.store(2, Relaxed);
                Ok(())
            }
            _ => {
                data.plan.fail_second_stop.store(0, Relaxed);
                Err(EBUSY)
            }
        }
    }

    fn start_rx<'bound>(
        data: Pin<&Data<'bound>>,
        dev: &Device,
        stopped: RxStopped<'_>,
        _queue: u16,
        rx: &mut super::buffers::Rings,
        _lock: &mut OpsLocked<'bound>,
    ) -> Result {
        data.plan.step(Step::StartRx);
        let attached = stopped.napi().attach(Arc::new(OfVector, GFP_KERNEL)?);
        let errno = attached.map_or_else(Error::to_errno, |()| 0);
        data.plan.attach_errno.store(errno, Relaxed);
        data.plan.started_rx_with.store(dev.features().0, Relaxed);
        if data.plan.forgets_rewind.load(Relaxed) == 0 {
            rx.rewind(stopped)?;
        } else {
            // Drivers cannot do that.
            rx.tell(stopped.napi())?;
        }
        data.plan.may_fail(2, EIO)
    }
}

impl<const OPS_LOCK: bool> FeaturesOps for Plain<OPS_LOCK> {
    fn fix_features<'bound>(data: Pin<&Data<'bound>>, _dev: &Device, wanted: Features) -> Features {
        match data.plan.no_feature.load(Relaxed) {
            0 => wanted.with(Feature::RxHash),
            _ => wanted.without(Feature::RxHash),
        }
    }

    fn set_features<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        features: Features,
        _locks: &mut Locks<'bound>,
    ) -> Result<FeaturesChange> {
        data.plan.told.store(features.0, Relaxed);
        Ok(match data.plan.restart_rx.load(Relaxed) {
            0 => FeaturesChange::Restart,
            _ => FeaturesChange::RestartRx,
        })
    }
}

impl<const OPS_LOCK: bool> SelfTestOps for Plain<OPS_LOCK> {
    const SELF_TESTS: &'static [SelfTest<Self>] = &[
        SelfTest::offline("Second", |data, _dev, _lock| {
            data.plan.test(Step::OfflineTest, 0)
        }),
        SelfTest::online("First", |data, _dev, _lock| {
            data.plan.test(Step::OnlineTest, 1)
        }),
    ];
}

impl<const OPS_LOCK: bool> QueueStatsOps for Plain<OPS_LOCK> {
    fn rx_queue_stats<'bound>(
        data: Pin<&Data<'bound>>,
        queue: u16,
        lock: &mut OpsLocked<'bound>,
    ) -> RxQueueStats {
        RxQueueStats {
            packets: (*data.opened.get(lock)).into(),
            bytes: queue.into(),
            ..RxQueueStats::default()
        }
    }

    fn tx_queue_stats<'bound>(
        data: Pin<&Data<'bound>>,
        queue: u16,
        _lock: &mut OpsLocked<'bound>,
    ) -> TxQueueStats {
        TxQueueStats {
            packets: data.plan.sent[usize::from(queue)].load(Relaxed).into(),
            bytes: queue.into(),
            ..TxQueueStats::default()
        }
    }
}
