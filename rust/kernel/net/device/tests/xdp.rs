// SPDX-License-Identifier: GPL-2.0

//! Tests of programs that see received frames. Functions take the place of the programs, and tests
//! that of the NIC.

use super::{
    super::{
        queue_mgmt::{
            QueueMgmtOps,
            RxQueueAlloc, //
        },
        registration::Registration,
        xdp::XdpOps,
        Device,
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
    fixture, //
};

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    error::to_result,
    faux,
    net::{
        napi::{
            Napi,
            Poll,
            Polled,
            RxStopped, //
        },
        page_pool::{
            CpuBuffer,
            Layout,
            RxFormat,
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
            Attachment,
            Verdict,
            XdpBuff,
            XdpPolling,
            XdpRing, //
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
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use core::ptr::{
    self,
    NonNull, //
};

const DONE: u64 = 1;
const QUEUES: usize = 2;
const MAX_MTU: u32 = 3000;
const LEN: RingSize = RingSize::of::<16>();

const fn done(len: u16) -> u64 {
    (len as u64) << 32 | DONE
}

macro_rules! format {
    ($name:ident, $headroom:expr) => {
        struct $name;

        impl RxFormat for $name {
            const LAYOUT: Layout = match Layout::new($headroom, 3072) {
                Some(layout) => layout,
                None => panic!("the buffer does not fit"),
            };
            const DONE: u64 = DONE;

            fn len(status: u64) -> u16 {
                (status >> 32) as u16
            }
        }
    };
}

format!(Narrow, 64);
format!(Wide, 256);

enum Ring {
    Plain(RxRing<Narrow>),
    /// With a second one of the same instance.
    Xdp(XdpRing<Wide>, XdpRing<Wide>),
}

impl Ring {
    fn rewind(&mut self, stopped: RxStopped<'_>) -> Result {
        match self {
            Self::Plain(ring) => ring.rewind(stopped),
            Self::Xdp(ring, _) => ring.rewind(stopped),
        }
        .map(drop)
    }
}

/// A part of a test in the poll function of the first queue.
type Job = fn(&mut XdpRing<Wide>, &mut XdpRing<Wide>, &Attachment, &Poll<'_>) -> Result;

/// The device that a test wants, and what it has seen.
#[pin_data]
struct Plan {
    #[pin]
    job: SpinLock<Option<Job>>,
    errno: Atomic<i32>,
    /// The number of rings that each queue had.
    made: [Atomic<u32>; QUEUES],
    /// The queue that gets no other memory.
    fails: Atomic<usize>,
}

impl Plan {
    /// The number of rings of each queue since this was called last.
    fn made(&self) -> [u32; QUEUES] {
        self.made.each_ref().map(|made| made.xchg(0, Relaxed))
    }
}

struct Nic;

struct Data<'bound> {
    plan: Arc<Plan>,
    parent: &'bound device::Device<Bound>,
    program: Attachment,
}

impl Data<'_> {
    fn ring(&self, napi: &Napi, queue: usize) -> Result<Ring> {
        self.plan.made[queue].fetch_add(1, Relaxed);
        if self.program.is_in_use() {
            Ok(Ring::Xdp(
                XdpRing::new(self.parent, napi, LEN, 16)?,
                XdpRing::new(self.parent, napi, LEN, 16)?,
            ))
        } else {
            Ok(Ring::Plain(RxRing::new(self.parent, napi, LEN, 16)?))
        }
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

        for queue in 0..QUEUES {
            cx.add_virtual_queue_vector(|napi| Ok((data.ring(napi, queue)?, ())))?;
        }
        Ok(())
    }

    fn start<'bound>(_: Pin<&Data<'bound>>, _: &Device, _: &mut Locks<'bound>) -> Result {
        Ok(())
    }

    fn quiesce<'bound>(_: Pin<&Data<'bound>>, _: &Device, _: &mut Locks<'bound>) -> Result {
        Ok(())
    }

    fn poll<'bound>(data: Pin<&Data<'bound>>, ring: &mut Ring, cx: &Poll<'_>) -> Polled {
        if cx.rx_mapping() == 1 {
            // Elsewhere the lock is taken with bottom halves enabled.
            let job = data.plan.job.try_lock().and_then(|mut job| job.take());

            if let Some(job) = job {
                let result = match ring {
                    Ring::Xdp(ring, other) => job(ring, other, &data.program, cx),
                    Ring::Plain(_) => Err(ENXIO),
                };
                let errno = result.map_or_else(Error::to_errno, |()| 0);
                data.plan.errno.store(errno, Relaxed);
            }
        }
        Polled::Idle { received: 0 }
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

    const OPS: OptionalOps<Self> = OptionalOps::NONE.queue_mgmt().xdp();
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
        data.ring(cx.napi(), queue)
    }

    fn stop_rx<'bound>(
        _: Pin<&Data<'bound>>,
        _: &Device,
        _: u16,
        _: &mut Ring,
        _: &mut OpsLocked<'bound>,
    ) -> Result {
        Ok(())
    }

    fn start_rx<'bound>(
        _: Pin<&Data<'bound>>,
        _: &Device,
        stopped: RxStopped<'_>,
        _: u16,
        ring: &mut Ring,
        _: &mut OpsLocked<'bound>,
    ) -> Result {
        ring.rewind(stopped)
    }
}

impl XdpOps for Nic {
    const MAX_MTU: u32 = MAX_MTU;

    fn attachment<'a>(data: &'a Data<'_>) -> &'a Attachment {
        &data.program
    }
}

/// The result of a program, and by how many bytes it moves the start, the end, and the start of the
/// metadata before that.
static ACTION: Atomic<u32> = Atomic::new(0);
static MOVES: [Atomic<i32>; 3] = [const { Atomic::new(0) }; 3];
/// How often it ran.
static RUNS: Atomic<u32> = Atomic::new(0);
/// Headroom, length, metadata and tailroom of the last frame, and its queue and sort of memory.
static SEEN: [Atomic<u32>; 6] = [const { Atomic::new(0) }; 6];

/// # Safety
///
/// It must be run as a program of XDP, for a frame.
unsafe extern "C" fn act(context: *const c_void, _: *const bindings::bpf_insn) -> c_uint {
    // SAFETY: It is run for a frame, which is exclusively its own.
    let buff = unsafe { &mut *context.cast_mut().cast::<bindings::xdp_buff>() };
    // SAFETY: It is that of a ring in use.
    let rxq = unsafe { &*buff.rxq };
    let info =
        size_of::<bindings::skb_shared_info>().next_multiple_of(1 << bindings::L1_CACHE_SHIFT);
    // SAFETY: All `struct xdp_buff` have this one.
    let size = unsafe { buff.__bindgen_anon_1.__bindgen_anon_1.frame_sz } as usize;
    let seen = [
        buff.data.addr() - buff.data_hard_start.addr(),
        buff.data_end.addr() - buff.data.addr(),
        buff.data.addr() - buff.data_meta.addr(),
        buff.data_hard_start.addr() + size - info - buff.data_end.addr(),
        rxq.queue_index as usize,
        rxq.mem.type_ as usize,
    ];
    for (place, value) in SEEN.iter().zip(seen) {
        place.store(value as u32, Relaxed);
    }
    RUNS.fetch_add(1, Relaxed);

    let by = |index: usize| MOVES[index].load(Relaxed) as isize;
    buff.data = buff.data.wrapping_byte_offset(by(0));
    buff.data_end = buff.data_end.wrapping_byte_offset(by(1));
    buff.data_meta = buff.data.wrapping_byte_offset(by(2));
    ACTION.load(Relaxed)
}

/// # Safety
///
/// None.
unsafe extern "C" fn drop_it(_: *const c_void, _: *const bindings::bpf_insn) -> c_uint {
    bindings::xdp_action_XDP_DROP
}

unsafe extern "C" {
    /// The helper of programs.
    fn bpf_xdp_redirect(index: u64, flags: u64, _: u64, _: u64, _: u64) -> u64;
}

/// The index of the device that frames are redirected to.
static TARGET: Atomic<u32> = Atomic::new(0);
/// The number of frames that it has taken.
static TAKEN: Atomic<u32> = Atomic::new(0);

/// # Safety
///
/// It must be run as a program of XDP, for a frame.
unsafe extern "C" fn redirect(_: *const c_void, _: *const bindings::bpf_insn) -> c_uint {
    // SAFETY: It is run as a program of XDP, in a poll function.
    let action = unsafe { bpf_xdp_redirect(TARGET.load(Relaxed).into(), 0, 0, 0, 0) };

    action as c_uint
}

/// # Safety
///
/// Must only be called by the core, for a device of ours.
unsafe extern "C" fn take_frames(
    _: *mut bindings::net_device,
    count: c_int,
    frames: *mut *mut bindings::xdp_frame,
    _: u32,
) -> c_int {
    for index in 0..count as usize {
        // SAFETY: The core gives us so many frames, in the poll function that has received them.
        unsafe { bindings::xdp_return_frame_rx_napi(*frames.add(index)) };
    }
    TAKEN.fetch_add(count as u32, Relaxed);
    count
}

/// # Safety
///
/// Must only be called by the core, for a device of ours.
unsafe extern "C" fn take_packet(
    skb: *mut bindings::sk_buff,
    _: *mut bindings::net_device,
) -> bindings::netdev_tx_t {
    if let Some(skb) = NonNull::new(skb) {
        // SAFETY: The core gives us the packet.
        drop(unsafe { SkBuff::from_raw(skb) });
    }
    bindings::netdev_tx::NETDEV_TX_OK
}

/// A device that takes redirected frames.
struct Target(NonNull<bindings::net_device>);

impl Target {
    const OPS: &'static bindings::net_device_ops = &bindings::net_device_ops {
        ndo_start_xmit: Some(take_packet),
        ndo_xdp_xmit: Some(take_frames),
        ..pin_init::zeroed()
    };

    fn new() -> Result<Self> {
        // SAFETY: There are no requirements.
        let dev = NonNull::new(unsafe { bindings::alloc_etherdev_mqs(0, 1, 1) }).ok_or(ENOMEM)?;

        // SAFETY: The device is ours, and not registered yet.
        let registered = unsafe {
            (*dev.as_ptr()).netdev_ops = Self::OPS;
            (*dev.as_ptr()).xdp_features = bindings::netdev_xdp_act_NETDEV_XDP_ACT_NDO_XMIT;
            bindings::eth_hw_addr_random(dev.as_ptr());
            bindings::netdev_add_priv_flags(
                dev.as_ptr(),
                bindings::netdev_priv_flags_IFF_NO_ADDRCONF,
            );
            to_result(bindings::register_netdev(dev.as_ptr()))
        };
        registered.inspect_err(|_| {
            // SAFETY: The device is ours.
            unsafe { bindings::free_netdev(dev.as_ptr()) };
        })?;
        let this = Self(dev);

        // SAFETY: Tests run in process context, and the device is registered.
        unsafe {
            TARGET.store((*dev.as_ptr()).ifindex as u32, Relaxed);
            TAKEN.store(0, Relaxed);
            bindings::rtnl_lock();
            let opened = bindings::dev_open(dev.as_ptr(), ptr::null_mut());
            bindings::rtnl_unlock();
            to_result(opened)?;
        }
        Ok(this)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // SAFETY: The device is ours, and registered.
        unsafe {
            bindings::unregister_netdev(self.0.as_ptr());
            bindings::free_netdev(self.0.as_ptr());
        }
    }
}

type Function = unsafe extern "C" fn(*const c_void, *const bindings::bpf_insn) -> c_uint;

/// A function as a program, of which this is the first reference.
struct Program(NonNull<bindings::bpf_prog>);

impl Program {
    fn new(function: Function) -> Result<Self> {
        // SAFETY: This is process context. A program of one page has room for no instruction.
        let program = unsafe { bindings::bpf_prog_alloc(64, GFP_KERNEL.as_raw()) };
        let program = NonNull::new(program).ok_or(ENOMEM)?;

        // SAFETY: It is ours.
        unsafe {
            (*program.as_ptr()).bpf_func = Some(function);
            (*(*program.as_ptr()).aux).refcnt.counter = 1;
        }
        Ok(Self(program))
    }

    /// The number of references.
    fn references(&self) -> i64 {
        // SAFETY: It is valid.
        unsafe { (&raw const (*(*self.0.as_ptr()).aux).refcnt.counter).read_volatile() }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The rest of it would use memory that was freed.
        if self.references() != 1 {
            return;
        }
        // SAFETY: This is the last reference. RCU readers are waited for.
        unsafe {
            bindings::synchronize_net();
            bindings::bpf_prog_free(self.0.as_ptr());
        }
    }
}

/// A registered device.
struct XdpDevice {
    registration: Option<Registration<Nic>>,
    plan: Arc<Plan>,
    _parent: faux::Registration,
}

impl XdpDevice {
    fn new() -> Result<Self> {
        let parent = faux::Registration::new(&fixture::own_name("rust_net_xdp")?, None)?;
        let plan = Arc::pin_init(
            pin_init!(Plan {
                job <- new_spinlock!(None),
                errno: Atomic::new(0),
                made: [const { Atomic::new(0) }; QUEUES],
                fails: Atomic::new(usize::MAX),
            }),
            GFP_KERNEL,
        )?;

        // SAFETY: The parent exists until the registration has been dropped.
        let bus = unsafe { &*ptr::from_ref::<device::Device<Bound>>(parent.as_ref().as_ref()) };
        // SAFETY: The parent is valid, and has no mappings yet. The mask is part of it.
        to_result(unsafe {
            let raw = bus.as_raw();
            (*raw).dma_mask = &raw mut (*raw).coherent_dma_mask;
            bindings::dma_set_mask_and_coherent(raw, u64::MAX)
        })?;
        let (info, data) = Nic::probe(bus, plan.clone())?;
        let mut registration = Registration::<Nic>::new(bus, &info, data)?;
        // IPv6 would send packets of its own.
        let no_addrconf = bindings::netdev_priv_flags_IFF_NO_ADDRCONF;
        // SAFETY: The device is valid, and not registered yet.
        unsafe { bindings::netdev_add_priv_flags(registration.0.as_raw(), no_addrconf) };
        registration.register(&info)?;
        Ok(Self {
            registration: Some(registration),
            plan,
            _parent: parent,
        })
    }

    fn dev(&self) -> *mut bindings::net_device {
        match &self.registration {
            Some(registration) => registration.0.as_raw(),
            None => ptr::null_mut(),
        }
    }

    /// Runs `f` with RTNL held.
    fn with_rtnl<R>(&self, f: impl FnOnce(*mut bindings::net_device) -> R) -> R {
        // SAFETY: Tests run in process context.
        unsafe { bindings::rtnl_lock() };
        let result = f(self.dev());
        // SAFETY: Locked above.
        unsafe { bindings::rtnl_unlock() };
        result
    }

    fn up(&self) -> Result {
        // SAFETY: The device is registered and RTNL is held.
        self.with_rtnl(|dev| to_result(unsafe { bindings::dev_open(dev, ptr::null_mut()) }))
    }

    fn down(&self) {
        // SAFETY: As in `up()`.
        self.with_rtnl(|dev| unsafe { bindings::dev_close(dev) });
    }

    /// Attaches a program, or none, as the core does. Returns whether a refusal had a reason, too.
    fn attach(&self, program: Option<&Program>) -> (Result, bool) {
        let program = program.map_or(ptr::null_mut(), |program| program.0.as_ptr());
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
    fn run(&self, job: Job) -> Result {
        let inner = self.registration.as_ref().ok_or(ENODEV)?.inner();

        self.plan.errno.store(EINPROGRESS.to_errno(), Relaxed);
        *self.plan.job.lock() = Some(job);
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
        fsleep(Delta::from_millis(20));
        // SAFETY: Tests run in process context.
        unsafe { bindings::synchronize_net() };
        to_result(self.plan.errno.load(Relaxed))
    }

    /// Whether the device has page pools.
    fn has_pools(&self) -> bool {
        // SAFETY: The device is registered, and tests alone change this.
        unsafe { !(*self.dev()).page_pools.first.is_null() }
    }
}

/// Lets programs act so from now on.
fn program_acts(action: bindings::xdp_action, moves: [i32; 3]) {
    ACTION.store(action, Relaxed);
    for (place, by) in MOVES.iter().zip(moves) {
        place.store(by, Relaxed);
    }
}

/// Completes a descriptor, and takes its frame.
fn receive<'p>(ring: &mut XdpRing<Wide>, index: usize, cx: &'p Poll<'_>) -> Result<XdpBuff<'p>> {
    ring.write_back(cx, index, [0, done(60)]);
    ring.poll(cx)?.next().ok_or(ENODATA)?.buff.ok_or(EMSGSIZE)
}

/// Runs the program on a frame.
fn run<'p>(
    polling: &mut XdpPolling<'_, 'p, Wide>,
    program: &Attachment,
    buff: XdpBuff<'p>,
    cx: &'p Poll<'_>,
) -> Result<Verdict<'p>> {
    Ok(polling.run(program.program(cx).ok_or(ENOENT)?, buff))
}

/// A frame that passes.
fn pass<'p>(
    ring: &mut XdpRing<Wide>,
    program: &Attachment,
    buff: XdpBuff<'p>,
    cx: &'p Poll<'_>,
) -> Result<XdpBuff<'p>> {
    match run(&mut ring.poll(cx)?, program, buff, cx)? {
        Verdict::Pass(buff) => Ok(buff),
        _ => Err(EACCES),
    }
}

/// For poll functions, in which no test runs.
fn check(is_right: bool) -> Result {
    is_right.then_some(()).ok_or(EDOM)
}

#[macros::kunit_tests(rust_net_xdp)]
mod cases {
    use super::*;

    /// A device that is up, with a program.
    fn device(function: Function) -> Result<(XdpDevice, Program)> {
        let device = XdpDevice::new()?;
        let program = Program::new(function)?;

        device.up()?;
        device.attach(Some(&program)).0?;
        device.plan.made();
        Ok((device, program))
    }

    #[test]
    fn programs_see_frames_as_they_were_received() -> Result {
        let (device, _program) = device(act)?;

        program_acts(bindings::xdp_action_XDP_PASS, [0; 3]);
        device.run(|ring, _, program, cx| {
            let buff = receive(ring, 0, cx)?;
            let buff = pass(ring, program, buff, cx)?;

            check(buff.len() == 60)?;
            Ok(())
        })?;
        let info =
            size_of::<bindings::skb_shared_info>().next_multiple_of(1 << bindings::L1_CACHE_SHIFT);
        let tailroom = bindings::PAGE_SIZE - info - 256 - 60;
        let memory = bindings::xdp_mem_type_MEM_TYPE_PAGE_POOL;
        assert_eq!(
            SEEN.each_ref().map(|seen| seen.load(Relaxed)),
            [256, 60, 0, tailroom as u32, 0, memory]
        );
        Ok(())
    }

    #[test]
    fn frames_pass_where_programs_have_left_them() -> Result {
        let (device, _program) = device(act)?;

        program_acts(bindings::xdp_action_XDP_PASS, [-32, 10, -8]);
        device.run(|ring, _, program, cx| {
            let buff = receive(ring, 0, cx)?;
            let buff = pass(ring, program, buff, cx)?;
            // Another program would see that.
            program_acts(bindings::xdp_action_XDP_PASS, [4, 0, -12]);
            let frame = pass(ring, program, buff, cx)?.into_frame();

            check((frame.headroom, frame.len) == (256 - 28, 60 + 28 + 10))?;
            check(frame.metasize == 12)?;
            check(u32::from(frame.flags) == bindings::NAPI_BUILD_METADATA)?;
            // SAFETY: It has been given up.
            drop(unsafe { CpuBuffer::device_buffer_of(&frame) });
            Ok(())
        })?;
        let seen = SEEN.each_ref().map(|seen| seen.load(Relaxed));
        assert_eq!(seen[..3], [256 - 32, 60 + 32 + 10, 8]);
        Ok(())
    }

    #[test]
    fn buffers_of_dropped_frames_stay_in_the_ring() -> Result {
        let (device, _program) = device(drop_it)?;

        device.run(|ring, _, program, cx| {
            for round in 0..3 {
                for number in 0..15 {
                    let index = (round * 15 + number) % 16;
                    let address = ring.write_buffer(cx, index, 0).ok_or(ENOENT)?;
                    let buff = receive(ring, index, cx)?;
                    let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;

                    check(matches!(verdict, Verdict::Dropped))?;
                    check(ring.write_buffer(cx, index + 15, 0) == Some(address))?;
                    check((ring.in_use(), ring.missing()) == (15, 0))?;
                    check(ring.recycled() == number + 1)?;
                }
                // The NIC is told of them, once.
                check(ring.refill(cx)? == 15)?;
                check(ring.refill(cx)? == 0)?;
            }
            Ok(())
        })
    }

    #[test]
    fn programs_that_fail_drop_the_frame() -> Result {
        let (device, _program) = device(act)?;

        device.run(|ring, _, program, cx| {
            for (index, action) in [bindings::xdp_action_XDP_ABORTED, 77, u32::MAX]
                .into_iter()
                .enumerate()
            {
                program_acts(action, [0; 3]);
                let buff = receive(ring, index, cx)?;
                let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;

                check(matches!(verdict, Verdict::Aborted))?;
                check((ring.in_use(), ring.recycled()) == (15, index + 1))?;
            }
            Ok(())
        })
    }

    #[test]
    fn redirected_frames_are_flushed() -> Result {
        let _target = Target::new()?;
        let (device, _program) = device(redirect)?;

        device.run(|ring, _, program, cx| {
            for index in 0..3 {
                let buff = receive(ring, index, cx)?;
                let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;

                check(matches!(verdict, Verdict::Redirected))?;
            }
            // The driver does nothing for them.
            check((TAKEN.load(Relaxed), ring.in_use(), ring.recycled()) == (0, 12, 0))?;
            Ok(())
        })?;
        assert_eq!(TAKEN.load(Relaxed), 3);
        // The core takes as many at a time.
        device.run(|ring, _, program, cx| {
            check(ring.refill(cx)? == 3)?;
            for index in 3..23 {
                let buff = receive(ring, index % 16, cx)?;
                let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;

                check(matches!(verdict, Verdict::Redirected))?;
                ring.refill(cx)?;
            }
            check(TAKEN.load(Relaxed) == 3 + 16)?;
            Ok(())
        })?;
        assert_eq!(TAKEN.load(Relaxed), 3 + 20);
        device.down();
        assert!(!device.has_pools());
        Ok(())
    }

    #[test]
    fn a_frame_that_cannot_be_redirected_is_dropped() -> Result {
        let (device, _program) = device(redirect)?;

        TARGET.store(i32::MAX as u32, Relaxed);
        device.run(|ring, _, program, cx| {
            let buff = receive(ring, 0, cx)?;
            let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;

            check(matches!(verdict, Verdict::Aborted))?;
            check((ring.in_use(), ring.recycled()) == (15, 1))?;
            Ok(())
        })
    }

    #[test]
    fn a_ring_takes_no_buffer_of_another_one() -> Result {
        let (device, _program) = device(drop_it)?;

        device.run(|ring, other, program, cx| {
            receive(ring, 0, cx)?;
            let buff = receive(other, 0, cx)?;
            let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;

            check(matches!(verdict, Verdict::Dropped))?;
            check((ring.in_use(), ring.recycled()) == (14, 0))?;
            Ok(())
        })
    }

    #[test]
    fn a_full_ring_takes_no_buffer() -> Result {
        let (device, _program) = device(drop_it)?;

        device.run(|ring, _, program, cx| {
            let buff = receive(ring, 0, cx)?;
            check(ring.refill(cx)? == 1)?;
            let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;

            check(matches!(verdict, Verdict::Dropped))?;
            check((ring.in_use(), ring.recycled()) == (15, 0))?;
            Ok(())
        })
    }

    #[test]
    fn queues_are_restarted_once() -> Result {
        let (device, first) = (XdpDevice::new()?, Program::new(act)?);
        let second = Program::new(drop_it)?;

        device.up()?;
        assert_eq!(device.plan.made(), [1, 1]);
        device.attach(Some(&first)).0?;
        assert_eq!(device.plan.made(), [1, 1]);
        assert_eq!((first.references(), second.references()), (2, 1));

        // A pointer is all that changes.
        device.attach(Some(&second)).0?;
        assert_eq!((first.references(), second.references()), (1, 2));
        device.attach(None).0?;
        assert_eq!(second.references(), 1);
        device.run(|_, _, program, cx| {
            check(program.program(cx).is_none())?;
            Ok(())
        })?;
        device.attach(Some(&first)).0?;
        assert_eq!(device.plan.made(), [0, 0]);
        device.run(|_, _, program, cx| program.program(cx).map(|_| ()).ok_or(ENOENT))
    }

    #[test]
    fn without_memory_there_is_no_program() -> Result {
        let (device, program) = (XdpDevice::new()?, Program::new(act)?);

        device.up()?;
        device.plan.made();
        device.plan.fails.store(1, Relaxed);
        assert_eq!(device.attach(Some(&program)), (Err(ENOMEM), true));
        assert_eq!((program.references(), device.plan.made()), (1, [1, 0]));
        // The first queue goes on with its buffers, and needs no others.
        device.run(|_, _, program, cx| {
            check(!program.is_in_use() && program.program(cx).is_none())?;
            Ok(())
        })?;
        device.plan.fails.store(usize::MAX, Relaxed);
        device.attach(Some(&program)).0?;
        assert_eq!((program.references(), device.plan.made()), (2, [0, 1]));
        Ok(())
    }

    #[test]
    fn what_excludes_programs_is_a_reason() -> Result {
        let (device, program) = (XdpDevice::new()?, Program::new(act)?);
        let set_mtu = |mtu: u32| {
            // SAFETY: The device is registered and RTNL is held.
            device.with_rtnl(|dev| to_result(unsafe { bindings::dev_set_mtu(dev, mtu as c_int) }))
        };

        set_mtu(MAX_MTU + 1)?;
        assert_eq!(device.attach(Some(&program)), (Err(EINVAL), true));
        set_mtu(MAX_MTU)?;
        device.with_rtnl(|dev| {
            // SAFETY: The device is registered, and tests alone change this.
            unsafe { (*dev).features |= 1 << Feature::Lro as u32 };
        });
        assert_eq!(device.attach(Some(&program)), (Err(EINVAL), true));
        device.with_rtnl(|dev| {
            // SAFETY: As above.
            unsafe { (*dev).features &= !(1 << Feature::Lro as u32) };
        });
        assert_eq!(program.references(), 1);
        device.attach(Some(&program)).0?;
        assert_eq!(program.references(), 2);
        Ok(())
    }

    #[test]
    fn a_device_goes_up_with_its_program() -> Result {
        let (device, program) = (XdpDevice::new()?, Program::new(act)?);

        device.attach(Some(&program)).0?;
        assert_eq!(device.plan.made(), [0, 0]);
        for _ in 0..2 {
            device.up()?;
            assert_eq!(device.plan.made(), [1, 1]);
            device.run(|_, _, program, cx| program.program(cx).map(|_| ()).ok_or(ENOENT))?;
            device.down();
        }
        Ok(())
    }

    #[test]
    fn pools_go_with_their_rings() -> Result {
        let (device, _program) = device(act)?;

        assert!(device.has_pools());
        device.down();
        assert!(!device.has_pools());
        Ok(())
    }

    #[test]
    fn a_device_goes_away_with_its_program() -> Result {
        let (mut device, program) = device(act)?;

        device.registration = None;
        assert_eq!(program.references(), 1);
        Ok(())
    }
}
