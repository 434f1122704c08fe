// SPDX-License-Identifier: GPL-2.0

//! A driver of a device without hardware, whose frames programs see.

use super::{
    super::{
        super::{
            queue_mgmt::{
                QueueMgmtOps,
                RxQueueAlloc, //
            },
            xdp::{
                xsk::XskOps,
                XdpOps,
                XdpXmitOps, //
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
            Opening,
            OpsLocked,
            OptionalOps, //
        },
        registered::Registered, //
    },
    formats::Narrow,
    program::Program, //
};

pub(super) use super::formats::{
    done,
    Wide,
    DONE,
    MORE, //
};

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    error::to_result,
    net::{
        napi::{
            Napi,
            Poll,
            Polled,
            RxClosed,
            RxStopped, //
        },
        page_pool::{
            AnyRxRing,
            RxRing, //
        },
        queue::{
            RingSize,
            TxQueue,
            Xmit, //
        },
        skbuff::{
            SkBuff,
            TxSkBuff, //
        },
        xdp::{
            xsk::{
                XskPool,
                XskRing,
                XskRoom, //
            },
            Attachment,
            XdpFormat,
            XdpRing,
            XdpTxCounts, //
        }, //
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
    }, //
};

use core::{
    ops::Deref,
    ptr, //
};

const QUEUES: usize = 2;
pub(super) const MAX_MTU: u32 = 3000;
/// That of users' memory, with frames in one buffer, and in several ones.
pub(super) const MAX_MTU_OF_MEMORY: u32 = 2000;
pub(super) const MAX_MTU_OF_PARTS: u32 = 5000;
const LEN: RingSize = RingSize::of::<16>();
/// That of rings for frames in several buffers of a user, and of those that are too short for it.
const LEN_OF_PARTS: RingSize = RingSize::of::<32>();
const SHORT_LEN: RingSize = RingSize::of::<8>();

#[expect(clippy::large_enum_variant, reason = "there are few of them")]
pub(super) enum Ring {
    Plain(RxRing<Narrow>),
    /// With a second one of the same instance.
    Xdp(XdpRing<Wide>, XdpRing<Wide>),
    Xsk(XskRing<Wide>),
}

impl Ring {
    /// Returns the number of frames that were not sent.
    fn rewind(&mut self, stopped: RxStopped<'_>) -> Result<usize> {
        match self {
            Self::Plain(ring) => ring.rewind(stopped).map(|_| 0),
            Self::Xdp(ring, _) => {
                let (_, lost) = ring.rewind_tx(&stopped)?;

                ring.rewind(stopped).map(|_| lost)
            }
            Self::Xsk(ring) => ring.rewind(stopped).map(|_| 0),
        }
    }

    fn unsent(&self, closed: &RxClosed<'_>) -> usize {
        match self {
            Self::Xdp(ring, _) => ring.unsent(closed),
            Self::Plain(_) | Self::Xsk(_) => 0,
        }
    }

    /// Whether the address of the transmit ring is there once, or not at all if the ring is for
    /// later.
    fn is_told_once(&mut self, napi: &Napi, is_for_later: bool) -> bool {
        let told = match self {
            Self::Plain(_) => return true,
            Self::Xdp(ring, _) => [(); 2].map(|()| ring.tx_dma_address(napi).map(drop)),
            Self::Xsk(ring) => [(); 2].map(|()| ring.dma_addresses(napi).map(drop)),
        };

        if is_for_later {
            told == [Err(EINVAL); 2]
        } else {
            told == [Ok(()), Err(EBUSY)]
        }
    }
}

/// A part of a test in the poll function of the first queue.
pub(super) type Job = fn(&mut XdpRing<Wide>, &mut XdpRing<Wide>, &Attachment, &Poll<'_>) -> Result;

/// The same, of a queue with memory of a user.
pub(super) type XskJob = fn(&mut XskRing<Wide>, &Attachment, &Poll<'_>) -> Result;

/// The device that a test wants, and what it has seen.
#[pin_data]
pub(super) struct Plan {
    #[pin]
    job: SpinLock<Option<Job>>,
    #[pin]
    xsk_job: SpinLock<Option<XskJob>>,
    errno: Atomic<i32>,
    /// The number of rings that each queue had.
    made: [Atomic<u32>; QUEUES],
    /// The queue that gets no other memory.
    pub(super) fails: Atomic<usize>,
    /// The queue that does not start with other memory.
    pub(super) fails_to_start: Atomic<usize>,
    /// The number of doorbells for redirected frames, and the last tail.
    pub(super) doorbells: [Atomic<usize>; 2],
    /// Redirected frames that were sent, bytes in them, and those that were refused and lost.
    pub(super) counts: [Atomic<u64>; 4],
    /// Frames that programs have sent back, and that were lost.
    pub(super) unsent: Atomic<usize>,
    /// So often, the device does not open.
    pub(super) fails_to_open: Atomic<usize>,
    /// The queue that does not stop, once.
    pub(super) fails_to_stop: Atomic<usize>,
    /// Queues get no memory before a restart of the device.
    pub(super) wants_restart: Atomic<bool>,
    /// All rings are short.
    pub(super) is_short: Atomic<bool>,
    /// The NIC does not stop.
    pub(super) hangs: Atomic<bool>,
    /// The driver makes rings of any queue with the pool of the first one.
    pub(super) steals: Atomic<bool>,
    #[pin]
    stolen: SpinLock<Option<Arc<XskPool>>>,
}

impl Plan {
    /// The number of rings of each queue since this was called last.
    pub(super) fn made(&self) -> [u32; QUEUES] {
        self.made.each_ref().map(|made| made.xchg(0, Relaxed))
    }

    fn ran(&self, result: Result) {
        let errno = result.map_or_else(Error::to_errno, |()| 0);

        self.errno.store(errno, Relaxed);
    }
}

pub(super) struct Nic;

pub(super) struct Data<'bound> {
    plan: Arc<Plan>,
    parent: &'bound device::Device<Bound>,
    program: Attachment,
}

impl Data<'_> {
    fn ring(&self, napi: &Napi, queue: usize, is_for_later: bool) -> Result<Ring> {
        self.plan.made[queue].fetch_add(1, Relaxed);
        let mut pool = napi.xsk_pool();
        if self.plan.steals.load(Relaxed) {
            let mut stolen = self.plan.stolen.lock();

            pool = pool.or(stolen.take());
            stolen.clone_from(&pool);
        }
        if let Some(pool) = pool {
            let len = if self.plan.is_short.load(Relaxed) {
                SHORT_LEN
            } else if pool.sent_parts(Wide::MAX_PARTS) > 1 {
                LEN_OF_PARTS
            } else {
                LEN
            };
            let mut ring = Ring::Xsk(XskRing::new(self.parent, napi, len, &pool)?);

            if !ring.is_told_once(napi, is_for_later) {
                return Err(EBADFD);
            }
            return Ok(ring);
        }
        let mut ring = if self.program.is_in_use() {
            Ring::Xdp(
                XdpRing::new(self.parent, napi, LEN, 16)?,
                XdpRing::new(self.parent, napi, LEN, 16)?,
            )
        } else {
            Ring::Plain(RxRing::new(self.parent, napi, LEN, 16)?)
        };

        if !ring.is_told_once(napi, is_for_later) {
            return Err(EBADFD);
        }
        Ok(ring)
    }
}

#[vtable]
impl Driver for Nic {
    type Bus = device::Device<Bound>;
    type Setup = Arc<Plan>;
    type Data<'bound> = Data<'bound>;
    type Poller<'bound> = Ring;
    type Tx<'bound> = ();
    type Doorbell = Immediate;

    const OPS_LOCK: bool = true;

    fn probe<'bound>(
        bus: &'bound Self::Bus,
        plan: Arc<Plan>,
    ) -> Result<(Info, impl PinInit<Data<'bound>, Error>)> {
        let info = Info {
            queues: QUEUES as u16,
            default_queues: QUEUES as u16,
            max_mtu: 9000,
            features: Features::NONE.with(Feature::RxChecksum),
            ..Info::new(MacAddress::from([2, 0, 0, 0, 0, 4]))
        };

        Ok((
            info,
            Ok(Data {
                plan,
                parent: bus,
                program: Attachment::new(),
            }),
        ))
    }

    fn open<'bound>(cx: &mut Opening<'_, 'bound, Self>) -> Result {
        let data = cx.data().get_ref();

        let fails = data.plan.fails_to_open.load(Relaxed);
        if fails != 0 {
            data.plan.fails_to_open.store(fails - 1, Relaxed);
            return Err(ENOMEM);
        }
        for queue in 0..QUEUES {
            cx.add_virtual_queue_vector(|napi| Ok((data.ring(napi, queue, false)?, ())))?;
            cx.add_xdp_ring(data.parent, LEN)?;
            // A vector has one.
            if cx.add_xdp_ring(data.parent, LEN).err() != Some(EINVAL) {
                return Err(EBADFD);
            }
        }
        Ok(())
    }

    fn start<'bound>(_: Pin<&Data<'bound>>, _: &Device, _: &mut Locks<'bound>) -> Result {
        Ok(())
    }

    fn quiesce<'bound>(data: Pin<&Data<'bound>>, _: &Device, _: &mut Locks<'bound>) -> Result {
        if data.plan.hangs.load(Relaxed) {
            return Err(EIO);
        }
        Ok(())
    }

    fn poll<'bound>(data: Pin<&Data<'bound>>, ring: &mut Ring, cx: &Poll<'_>) -> Polled {
        if cx.rx_mapping() == 1 {
            // Elsewhere the lock is taken with bottom halves enabled.
            let job = data.plan.job.try_lock().and_then(|mut job| job.take());

            if let Some(job) = job {
                let result = match ring {
                    Ring::Xdp(ring, other) => job(ring, other, &data.program, cx),
                    Ring::Plain(_) | Ring::Xsk(_) => Err(ENXIO),
                };
                data.plan.ran(result);
            }
            let job = data.plan.xsk_job.try_lock().and_then(|mut job| job.take());

            if let Some(job) = job {
                let result = match ring {
                    Ring::Xsk(ring) => job(ring, &data.program, cx),
                    Ring::Plain(_) | Ring::Xdp(..) => Err(ENXIO),
                };
                data.plan.ran(result);
            }
        }
        Polled::Idle { received: 0 }
    }

    fn closed<'bound>(data: Pin<&Data<'bound>>, ring: Ring, stopped: &DmaStopped<'_>) {
        data.plan
            .unsent
            .fetch_add(ring.unsent(stopped.rx()), Relaxed);
    }

    fn rearm<'bound>(_: Pin<&Data<'bound>>, _: u16) {}

    fn start_xmit<'bound, 'call>(
        _: Pin<&Data<'bound>>,
        (): &mut (),
        _: &TxQueue<'_>,
        skb: TxSkBuff<'call>,
        _: bool,
    ) -> Xmit<'call> {
        SkBuff::from(skb).consume();
        Xmit::Taken
    }

    const OPS: OptionalOps<Self> = OptionalOps::NONE
        .queue_mgmt()
        .xdp()
        .xdp_xmit()
        .xdp_hints::<Wide>()
        .xsk();
}

impl QueueMgmtOps for Nic {
    type Rx<'bound> = Ring;

    fn rx<'a, 'bound: 'a>(poller: &'a mut Ring) -> &'a mut Ring {
        poller
    }

    fn alloc_rx<'bound>(cx: &mut RxQueueAlloc<'_, 'bound, Self>) -> Result<Ring> {
        let (data, queue) = (cx.data().get_ref(), usize::from(cx.queue()));

        if data.plan.fails.load(Relaxed) == queue {
            return Err(ENOMEM);
        }
        if data.plan.wants_restart.load(Relaxed) {
            return Err(EAGAIN);
        }
        data.ring(cx.napi(), queue, true)
    }

    fn stop_rx<'bound>(
        data: Pin<&Data<'bound>>,
        _: &Device,
        queue: u16,
        _: &mut Ring,
        _: &mut OpsLocked<'bound>,
    ) -> Result {
        fails_once(&data.plan.fails_to_stop, queue)
    }

    fn start_rx<'bound>(
        data: Pin<&Data<'bound>>,
        _: &Device,
        stopped: RxStopped<'_>,
        queue: u16,
        ring: &mut Ring,
        _: &mut OpsLocked<'bound>,
    ) -> Result {
        data.plan.unsent.fetch_add(ring.rewind(stopped)?, Relaxed);
        fails_once(&data.plan.fails_to_start, queue)
    }

    fn closed_rx<'bound>(data: Pin<&Data<'bound>>, _: u16, ring: Ring, closed: &RxClosed<'_>) {
        data.plan.unsent.fetch_add(ring.unsent(closed), Relaxed);
    }
}

/// Fails if it is the turn of this queue.
fn fails_once(which: &Atomic<usize>, queue: u16) -> Result {
    which
        .cmpxchg(queue.into(), usize::MAX, Relaxed)
        .map_or(Ok(()), |_| Err(EIO))
}

impl XdpOps for Nic {
    const MAX_MTU: u32 = MAX_MTU;

    fn attachment<'a>(data: &'a Data<'_>) -> &'a Attachment {
        &data.program
    }
}

impl XdpXmitOps for Nic {
    type Format = Wide;

    fn xdp_doorbell<'bound>(data: Pin<&Data<'bound>>, _: u16, tail: usize) {
        data.plan.doorbells[0].fetch_add(1, Relaxed);
        data.plan.doorbells[1].store(tail, Relaxed);
    }

    fn xdp_count<'bound>(data: Pin<&Data<'bound>>, _: u16, counts: XdpTxCounts) {
        let counts = [counts.packets, counts.bytes, counts.refused, counts.lost];

        for (place, count) in data.plan.counts.iter().zip(counts) {
            place.fetch_add(count, Relaxed);
        }
    }
}

impl XskOps for Nic {
    type Format = Wide;

    const TX_CHECKSUM: bool = true;

    fn max_mtu(room: XskRoom) -> u32 {
        if room.part.is_some() {
            MAX_MTU_OF_PARTS
        } else if room.whole >= 1500 {
            MAX_MTU_OF_MEMORY
        } else {
            0
        }
    }
}

/// A registered device.
pub(super) struct XdpDevice {
    pub(super) device: Registered<Nic>,
    pub(super) plan: Arc<Plan>,
}

impl Deref for XdpDevice {
    type Target = Registered<Nic>;

    fn deref(&self) -> &Self::Target {
        &self.device
    }
}

impl XdpDevice {
    pub(super) fn new() -> Result<Self> {
        let plan = Arc::pin_init(
            pin_init!(Plan {
                job <- new_spinlock!(None),
                xsk_job <- new_spinlock!(None),
                errno: Atomic::new(0),
                made: [const { Atomic::new(0) }; QUEUES],
                fails: Atomic::new(usize::MAX),
                fails_to_start: Atomic::new(usize::MAX),
                doorbells: [const { Atomic::new(0) }; 2],
                counts: [const { Atomic::new(0) }; 4],
                unsent: Atomic::new(0),
                fails_to_open: Atomic::new(0),
                fails_to_stop: Atomic::new(usize::MAX),
                wants_restart: Atomic::new(false),
                is_short: Atomic::new(false),
                hangs: Atomic::new(false),
                steals: Atomic::new(false),
                stolen <- new_spinlock!(None),
            }),
            GFP_KERNEL,
        )?;

        Ok(Self {
            device: Registered::new("rust_net_xdp", plan.clone())?,
            plan,
        })
    }

    /// Attaches a program, or none, as the core does. Returns whether a refusal had a reason, too.
    pub(super) fn attach(&self, program: Option<&Program>) -> (Result, bool) {
        let program = program.map_or(ptr::null_mut(), |program| program.as_raw());
        let mut extack = bindings::netlink_ext_ack::default();
        let mut request = bindings::netdev_bpf {
            command: bindings::bpf_netdev_command_XDP_SETUP_PROG,
            __bindgen_anon_1: bindings::netdev_bpf__bindgen_ty_1 {
                __bindgen_anon_1: bindings::netdev_bpf__bindgen_ty_1__bindgen_ty_1 {
                    flags: 0,
                    prog: program,
                    extack: &mut extack,
                },
            },
        };
        let result = self.with_rtnl(|dev| {
            // SAFETY: The device is registered, and both locks are held. The program is valid.
            unsafe {
                if !program.is_null() {
                    bindings::bpf_prog_inc(program);
                }
                bindings::netdev_lock_ops(dev);
                let bpf = (*(*dev).netdev_ops).ndo_bpf;
                let result = bpf.map_or(EOPNOTSUPP.to_errno(), |bpf| bpf(dev, &mut request));
                bindings::netdev_unlock_ops(dev);
                if result != 0 && !program.is_null() {
                    bindings::bpf_prog_put(program);
                }
                to_result(result)
            }
        });
        (result, !extack._msg.is_null())
    }

    /// Runs a part of a test in the poll function of the first queue.
    pub(super) fn run(&self, job: Job) -> Result {
        *self.plan.job.lock() = Some(job);
        self.poll()
    }

    /// As [`Self::run`], of a queue with memory of a user.
    pub(super) fn run_xsk(&self, job: XskJob) -> Result {
        *self.plan.xsk_job.lock() = Some(job);
        self.poll()
    }

    /// Has the first queue polled.
    fn poll(&self) -> Result {
        let inner = self.registration.as_ref().ok_or(ENODEV)?.inner();

        self.plan.errno.store(EINPROGRESS.to_errno(), Relaxed);
        Locks::with(inner.dev(), |locks| {
            let vector = inner.rx_vector(0, locks.ops()).ok_or(ENODEV)?;

            // SAFETY: It exists while the device is up, which does not change with the locks held.
            unsafe {
                bindings::local_bh_disable();
                bindings::napi_schedule(vector.as_ref().napi().as_raw());
                bindings::local_bh_enable();
            }
            Ok::<_, Error>(())
        })?;
        self.wait_for_polls();
        to_result(self.plan.errno.load(Relaxed))
    }

    /// Whether there is a program that limits the MTU.
    pub(super) fn is_for_one_buffer(&self) -> Result<bool> {
        let inner = self.registration.as_ref().ok_or(ENODEV)?.inner();

        Ok(inner.data().get_ref().program.is_for_one_buffer())
    }

    /// Whether the device has page pools.
    pub(super) fn has_pools(&self) -> bool {
        // SAFETY: The device is registered, and tests alone change this.
        unsafe { !(*self.dev()).page_pools.first.is_null() }
    }
}
