// SPDX-License-Identifier: GPL-2.0

//! Tests of the test in loopback, with a NIC that can have faults.

use super::{
    super::{
        ethtool::self_test::{
            SelfTest,
            SelfTestOps, //
        },
        registration::Registration,
        Device,
        Driver,
        Immediate,
        Info,
        Locks,
        MacAddress,
        Opening,
        OptionalOps,
        Parent,
        Rtnl, //
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
    net::{
        napi::{
            Poll,
            Polled,
            Scheduler, //
        },
        queue::{
            TxQueue,
            Xmit, //
        },
        skbuff::{
            SkBuff,
            TxSkBuff,
            UniqueSkBuff, //
        }, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        new_spinlock,
        Arc,
        SpinLock, //
    },
    time::{
        Delta,
        Instant,
        Monotonic, //
    }, //
};

use core::mem;

const OFFLINE: u32 = bindings::ethtool_test_flags_ETH_TEST_FL_OFFLINE;
const FAILED: u32 = bindings::ethtool_test_flags_ETH_TEST_FL_FAILED;

const QUEUES: u16 = 2;

/// The faults of a NIC, which concern a frame of its last queue.
const LOSES: u32 = 1;
const DAMAGES: u32 = 2;
const DUPLICATES: u32 = 3;
const CUTS: u32 = 4;
const IS_DEAF: u32 = 5;
const CANNOT_LOOP: u32 = 6;
/// Of its last frame, which comes again after a while.
const REPEATS: u32 = 7;
/// A bit of the frame is never set.
const IS_STUCK: u32 = 8;

/// The length of that frame.
const UNLUCKY: u32 = 513;

/// That while.
const LATE: Delta = Delta::from_millis(5);

/// A bus device of a NIC that accesses no memory.
pub(super) struct Bus;

static BUS: Bus = Bus;

// SAFETY: There is one, which is static.
unsafe impl Parent for Bus {
    fn as_device(&self) -> Option<&device::Device<Bound>> {
        None
    }

    unsafe fn reset(&self) -> bool {
        true
    }
}

/// The NIC, and what has become of it.
#[pin_data]
pub(super) struct Nic {
    fault: Atomic<u32>,
    loops: Atomic<u32>,
    /// How often it was switched on, and off.
    switched: [Atomic<u32>; 2],
    /// Frames that have left it, and those that have come back.
    left: Atomic<u32>,
    came: Atomic<u32>,
    resets: Atomic<u32>,
    receivers: [Arc<Scheduler>; QUEUES as usize],
    /// The frames on their way back, by queue. Locked with bottom halves disabled.
    #[pin]
    looped: SpinLock<[KVec<UniqueSkBuff>; QUEUES as usize]>,
    /// A frame that comes again, and since when it is on its way. Locked likewise.
    #[pin]
    late: SpinLock<Option<(UniqueSkBuff, Instant<Monotonic>)>>,
}

impl Nic {
    fn new() -> Result<Arc<Self>> {
        let receivers = [Scheduler::new()?, Scheduler::new()?];

        Arc::pin_init(
            pin_init!(Self {
                fault: Atomic::new(0),
                loops: Atomic::new(0),
                switched: [const { Atomic::new(0) }; 2],
                left: Atomic::new(0),
                came: Atomic::new(0),
                resets: Atomic::new(0),
                receivers,
                looped <- new_spinlock!([const { KVec::new() }; QUEUES as usize]),
                late <- new_spinlock!(None),
            }),
            GFP_KERNEL,
        )
    }

    fn switch(&self, on: bool) -> Result {
        self.switched[usize::from(!on)].fetch_add(1, Relaxed);
        self.loops.store(on.into(), Relaxed);
        if on && self.fault.load(Relaxed) == CANNOT_LOOP {
            return Err(ETIMEDOUT);
        }
        Ok(())
    }

    /// Sends a frame back.
    fn send_back(&self, queue: usize, mut skb: UniqueSkBuff) -> Result {
        let len = skb.len();
        let is_unlucky = queue + 1 == usize::from(QUEUES) && len == UNLUCKY;
        let mut copies = 1;

        match self.fault.load(Relaxed) {
            IS_DEAF => copies = 0,
            LOSES if is_unlucky => copies = 0,
            DUPLICATES if is_unlucky => copies = 2,
            DAMAGES if is_unlucky => {
                if let Some(last) = skb.data_mut().last_mut() {
                    *last ^= 0x10;
                }
            }
            IS_STUCK if is_unlucky => {
                for byte in skb.data_mut().iter_mut().skip(64) {
                    *byte &= !0x10;
                }
            }
            CUTS if is_unlucky => {
                let whole = skb;
                skb = UniqueSkBuff::alloc(len, GFP_ATOMIC)?;
                skb.put(&whole.data()[..whole.data().len() - 1])?;
            }
            REPEATS if queue + 1 == usize::from(QUEUES) && len > 1024 => {
                let mut other = UniqueSkBuff::alloc(len, GFP_ATOMIC)?;

                other.put(skb.data())?;
                *self.late.lock() = Some((other, Instant::now()));
            }
            _ => (),
        }
        let mut looped = self.looped.lock();
        if copies == 2 {
            let mut other = UniqueSkBuff::alloc(len, GFP_ATOMIC)?;

            other.put(skb.data())?;
            looped[queue].push(other, GFP_ATOMIC)?;
        }
        if copies != 0 {
            looped[queue].push(skb, GFP_ATOMIC)?;
        }
        Ok(())
    }

    fn switched(&self) -> (u32, u32) {
        let [on, off] = self.switched.each_ref().map(|count| count.load(Relaxed));
        (on, off)
    }
}

/// The driver.
pub(super) struct Looping;

#[vtable]
impl Driver for Looping {
    type Bus = Bus;
    type Setup = Arc<Nic>;
    type Data<'bound> = Arc<Nic>;
    type Poller<'bound> = usize;
    type Tx<'bound> = usize;
    type Doorbell = Immediate;

    fn probe<'bound>(
        _bus: &'bound Bus,
        nic: Arc<Nic>,
    ) -> Result<(Info, impl PinInit<Arc<Nic>, Error>)> {
        let info = Info {
            queues: QUEUES,
            max_mtu: 9000,
            ..Info::new(MacAddress::from([2, 0, 0, 0, 0, 4]))
        };
        Ok((info, Ok(nic)))
    }

    fn open<'bound>(cx: &mut Opening<'_, 'bound, Self>) -> Result {
        let nic = cx.data().get_ref();

        for (index, receiver) in nic.receivers.iter().enumerate() {
            cx.add_virtual_queue_vector(|napi| napi.bind(receiver).map(|()| (index, index)))?;
        }
        Ok(())
    }

    fn start<'bound>(_nic: Pin<&Arc<Nic>>, dev: &Device, _: &mut Locks<'bound>) -> Result {
        dev.carrier_on();
        Ok(())
    }

    fn quiesce<'bound>(_nic: Pin<&Arc<Nic>>, _: &Device, _: &mut Locks<'bound>) -> Result {
        Ok(())
    }

    fn reset<'bound>(nic: Pin<&Arc<Nic>>, _dev: &Device, _rtnl: &mut Rtnl) -> Result {
        nic.resets.fetch_add(1, Relaxed);
        Ok(())
    }

    fn poll<'bound>(nic: Pin<&Arc<Nic>>, queue: &mut usize, cx: &Poll<'_>) -> Polled {
        if cx.is_netpoll() {
            return Polled::Idle { received: 0 };
        }
        let frames = mem::take(&mut nic.looped.lock()[*queue]);

        for skb in frames {
            nic.came.fetch_add(1, Relaxed);
            cx.receive(skb);
        }
        if *queue + 1 != usize::from(QUEUES) {
            return Polled::Idle { received: 0 };
        }
        let late = match &mut *nic.late.lock() {
            Some((_, since)) if since.elapsed() < LATE => return Polled::Busy,
            late => late.take(),
        };
        if let Some((skb, _)) = late {
            cx.receive(skb);
        }
        Polled::Idle { received: 0 }
    }

    fn rearm<'bound>(_nic: Pin<&Arc<Nic>>, _vector: u16) {}

    fn start_xmit<'bound, 'call>(
        nic: Pin<&Arc<Nic>>,
        queue: &mut usize,
        _tx: &TxQueue<'_>,
        skb: TxSkBuff<'call>,
        _more: bool,
    ) -> Xmit<'call> {
        let skb = SkBuff::from(skb);

        if nic.loops.load(Relaxed) == 0 {
            nic.left.fetch_add(1, Relaxed);
            skb.consume();
        } else if let Ok(skb) = skb.into_unique(GFP_ATOMIC) {
            let _ = nic.send_back(*queue, skb);
            // It may go to any queue.
            nic.receivers[*queue].schedule();
        }
        Xmit::Taken
    }

    const OPS: OptionalOps<Self> = OptionalOps::NONE.self_test();
}

/// Hands a packet to the queueing discipline of a device.
fn offer(dev: &Device) -> Result {
    let skb = fixture::packet(GFP_KERNEL)?.into_raw().as_ptr();

    // SAFETY: The packet is ours, and is given away. The device is registered.
    unsafe {
        (*skb)
            .__bindgen_anon_1
            .__bindgen_anon_1
            .__bindgen_anon_1
            .dev = dev.as_raw();
        bindings::__dev_queue_xmit(skb, core::ptr::null_mut());
    }
    Ok(())
}

impl SelfTestOps for Looping {
    const SELF_TESTS: &'static [SelfTest<Self>] =
        &[SelfTest::loopback("Loopback", |nic, dev, on, _locks| {
            // It has queues only while it loops.
            assert_eq!(nic.receivers[0].schedule(), on);
            assert!(on || !dev.is_carrier_ok());
            // Not to leave, nor to come back.
            if on && dev.is_running() {
                offer(dev)?;
            }
            nic.switch(on)
        })];
}

/// A registered device of the driver.
struct Looped {
    registration: Registration<Looping>,
    nic: Arc<Nic>,
}

impl Looped {
    fn new() -> Result<Self> {
        let nic = Nic::new()?;
        let (info, data) = Looping::probe(&BUS, nic.clone())?;
        let mut registration = Registration::<Looping>::new(&BUS, &info, data)?;

        // IPv6 would send packets of its own.
        let no_addrconf = bindings::netdev_priv_flags_IFF_NO_ADDRCONF;
        // SAFETY: The device is valid, and not registered yet.
        unsafe { bindings::netdev_add_priv_flags(registration.0.as_raw(), no_addrconf) };
        registration.register(&info)?;
        Ok(Self { registration, nic })
    }

    fn with_rtnl<R>(&self, f: impl FnOnce(*mut bindings::net_device) -> R) -> R {
        Rtnl::with(|_rtnl| f(self.registration.0.as_raw()))
    }

    fn up(&self) -> Result {
        // SAFETY: The device is registered and RTNL is held.
        self.with_rtnl(|dev| to_result(unsafe { bindings::dev_open(dev, core::ptr::null_mut()) }))
    }

    fn set_mtu(&self, mtu: c_int) -> Result {
        // SAFETY: As above.
        self.with_rtnl(|dev| to_result(unsafe { bindings::dev_set_mtu(dev, mtu) }))
    }

    /// Turns GRO on or off, as users do.
    fn set_gro(&self, on: bool) {
        let gro: u64 = 1 << bindings::NETIF_F_GRO_BIT;

        self.with_rtnl(|dev| {
            // SAFETY: As above.
            unsafe {
                let wanted = (*dev).wanted_features & !gro;
                (*dev).wanted_features = if on { wanted | gro } else { wanted };
                bindings::netdev_update_features(dev);
            }
        });
    }

    fn features(&self) -> u64 {
        self.registration.inner().dev().features().0
    }

    fn is_up(&self) -> bool {
        self.registration.inner().dev().is_running()
    }

    /// Makes the test. Returns its code, which says whether it has failed.
    fn test(&self) -> u64 {
        let mut code = 0;
        let mut test = bindings::ethtool_test {
            flags: OFFLINE,
            ..Default::default()
        };

        self.with_rtnl(|dev| {
            // SAFETY: As above. The driver has one test.
            unsafe {
                if let Some(self_test) = (*(*dev).ethtool_ops).self_test {
                    self_test(dev, &mut test, &mut code);
                }
            }
        });
        assert_eq!(test.flags & FAILED != 0, code != 0);
        code
    }

    /// Whether the queueing discipline of queue 0 takes packets.
    fn is_active(&self) -> bool {
        self.with_rtnl(|dev| {
            // SAFETY: The device has this queue, and RTNL keeps its discipline.
            unsafe {
                let queue = bindings::netdev_get_tx_queue(dev, 0);
                core::ptr::eq((*queue).qdisc, (*queue).qdisc_sleeping)
            }
        })
    }
}

#[macros::kunit_tests(rust_net_loopback)]
mod cases {
    use super::*;

    /// Frames of a test without faults.
    const ALL: u32 = 8 * QUEUES as u32;

    #[test]
    fn frames_come_back() -> Result {
        let device = Looped::new()?;
        let nic = &device.nic;

        device.up()?;
        assert_eq!(device.test(), 0);
        assert_eq!(nic.switched(), (1, 1));
        assert_eq!(nic.came.load(Relaxed), ALL);
        assert_eq!(nic.left.load(Relaxed), 0);
        // It was restarted, not reset.
        assert_eq!(nic.resets.load(Relaxed), 0);
        assert!(device.is_up() && device.is_active());

        device.set_mtu(9000)?;
        assert_eq!(device.test(), 0);
        device.set_mtu(68)?;
        assert_eq!(device.test(), 0);
        assert_eq!(nic.came.load(Relaxed), 3 * ALL);
        Ok(())
    }

    #[test]
    fn a_device_that_is_down_stays_down() -> Result {
        let device = Looped::new()?;
        let nic = &device.nic;

        assert_eq!(device.test(), 0);
        assert_eq!(nic.switched(), (1, 1));
        assert_eq!(nic.came.load(Relaxed), ALL);
        assert_eq!(nic.resets.load(Relaxed), 1);
        assert!(!device.is_up());
        assert!(!device.registration.inner().dev().is_carrier_ok());
        device.up()
    }

    #[test]
    fn gro_stays_off() -> Result {
        let device = Looped::new()?;

        device.up()?;
        device.set_gro(false);
        let before = device.features();
        assert_eq!(before & 1 << bindings::NETIF_F_GRO_BIT, 0);
        assert_eq!(device.test(), 0);
        assert_eq!(device.features(), before);
        device.set_gro(true);
        let before = device.features();
        assert_eq!(device.test(), 0);
        assert_eq!(device.features(), before);
        Ok(())
    }

    #[test]
    fn the_code_tells_the_fault() -> Result {
        let device = Looped::new()?;
        let nic = &device.nic;

        device.up()?;
        for (fault, queue, errno) in [
            (LOSES, 2, bindings::ETIMEDOUT),
            (DAMAGES, 2, bindings::EBADMSG),
            (CUTS, 2, bindings::EBADMSG),
            (DUPLICATES, 2, bindings::EEXIST),
            (IS_DEAF, 1, bindings::ETIMEDOUT),
            (CANNOT_LOOP, 0, bindings::ETIMEDOUT),
            (0, 0, 0),
        ] {
            nic.fault.store(fault, Relaxed);
            assert_eq!(device.test(), queue << 16 | u64::from(errno));
            assert!(device.is_up() && device.is_active());
            assert_eq!(nic.loops.load(Relaxed), 0);
        }
        assert_eq!(nic.switched(), (7, 7));
        Ok(())
    }

    /// After the last frame of the test.
    #[test]
    fn a_frame_that_comes_again_late_is_noticed() -> Result {
        let device = Looped::new()?;

        device.up()?;
        device.nic.fault.store(REPEATS, Relaxed);
        assert_eq!(device.test(), 2 << 16 | u64::from(bindings::EEXIST));
        device.nic.fault.store(0, Relaxed);
        assert_eq!(device.test(), 0);
        Ok(())
    }

    /// A payload of zeros would not tell.
    #[test]
    fn a_bit_that_is_stuck_is_noticed() -> Result {
        let device = Looped::new()?;

        device.up()?;
        device.nic.fault.store(IS_STUCK, Relaxed);
        assert_eq!(device.test(), 2 << 16 | u64::from(bindings::EBADMSG));
        Ok(())
    }
}
