// SPDX-License-Identifier: GPL-2.0

//! Tests of NICs that share a bus device, and of limits that no NIC has.

use super::super::{
    ops::Ops,
    ops_lock::Locks,
    registration::Registration,
    Device,
    Driver,
    Feature,
    Features,
    Immediate,
    Info,
    MacAddress,
    Opening,
    OptionalOps,
    Parent,
    Rtnl, //
};

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    driver::registrations::{
        Registration as _,
        Suspension, //
    },
    error::to_result,
    ffi::{
        c_int,
        c_ulong,
        c_void, //
    },
    net::{
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
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

use core::ptr;

/// A bus device with several NICs.
pub(super) struct Function {
    is_master: Atomic<u32>,
    /// It cannot be reset.
    is_deaf: Atomic<u32>,
    is_gone: Atomic<u32>,
}

static FUNCTION: Function = Function {
    is_master: Atomic::new(0),
    is_deaf: Atomic::new(0),
    is_gone: Atomic::new(0),
};

// SAFETY: There is one, which is static.
unsafe impl Parent for Function {
    fn as_device(&self) -> Option<&device::Device<Bound>> {
        None
    }

    fn is_removed(&self) -> bool {
        self.is_gone.load(Relaxed) != 0
    }

    fn allow_dma(&self) {
        self.is_master.store(1, Relaxed);
    }

    fn forbid_dma(&self) {
        self.is_master.store(0, Relaxed);
    }

    unsafe fn reset(&self) -> bool {
        self.is_deaf.load(Relaxed) == 0
    }
}

/// Memory of the driver that its NIC may access.
struct Memory(Arc<Plan>);

impl Memory {
    fn new(plan: &Arc<Plan>) -> Result<Arc<Self>> {
        plan.memory.fetch_add(1, Relaxed);
        Ok(Arc::new(Self(plan.clone()), GFP_KERNEL)?)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.0.memory.fetch_sub(1, Relaxed);
    }
}

/// The state of the driver, with a handle to its memory, and as large as those of drivers.
pub(super) struct State(
    Arc<Plan>,
    #[expect(dead_code)] Arc<Memory>,
    #[expect(dead_code)] [usize; 16],
);

impl Drop for State {
    fn drop(&mut self) {
        self.0.states.fetch_sub(1, Relaxed);
    }
}

/// The driver of one of the NICs.
pub(super) struct Nic;

pub(super) struct Plan {
    info: Info,
    /// It does not stop.
    hangs: Atomic<u32>,
    /// The pieces of memory that it may access.
    memory: Atomic<u32>,
    /// Those of the driver's state.
    states: Atomic<u32>,
}

#[vtable]
impl Driver for Nic {
    type Bus = Function;
    type Setup = Arc<Plan>;
    type Data<'bound> = Arc<Plan>;
    type Poller<'bound> = State;
    type Tx<'bound> = State;
    type Doorbell = Immediate;

    fn probe<'bound>(
        _bus: &'bound Function,
        plan: Arc<Plan>,
    ) -> Result<(Info, impl PinInit<Arc<Plan>, Error>)> {
        Ok((plan.info, Ok(plan)))
    }

    fn open<'bound>(cx: &mut Opening<'_, 'bound, Self>) -> Result {
        let plan = cx.data();

        cx.add_virtual_queue_vector(|napi| {
            let memory = Memory::new(&plan)?;
            let state = || State((*plan).clone(), memory.clone(), [0; 16]);

            napi.keep_dma(memory.clone())?;
            plan.states.fetch_add(2, Relaxed);
            Ok((state(), state()))
        })
        .map(|_| ())
    }

    fn start<'bound>(_: Pin<&Arc<Plan>>, _: &Device, _: &mut Locks<'bound>) -> Result {
        Ok(())
    }

    fn quiesce<'bound>(plan: Pin<&Arc<Plan>>, _: &Device, _: &mut Locks<'bound>) -> Result {
        if plan.hangs.load(Relaxed) != 0 {
            return Err(EIO);
        }
        Ok(())
    }

    fn reset<'bound>(_: Pin<&Arc<Plan>>, _: &Device, _: &mut Rtnl) -> Result {
        Ok(())
    }

    fn poll<'bound>(_: Pin<&Arc<Plan>>, _: &mut State, _: &Poll<'_>) -> Polled {
        Polled::Idle { received: 0 }
    }

    fn rearm<'bound>(_: Pin<&Arc<Plan>>, _: u16) {}

    fn start_xmit<'bound, 'call>(
        _: Pin<&Arc<Plan>>,
        _: &mut State,
        _: &TxQueue<'_>,
        skb: TxSkBuff<'call>,
        _: bool,
    ) -> Xmit<'call> {
        SkBuff::from(skb).consume();
        Xmit::Taken
    }

    const OPS: OptionalOps<Self> = OptionalOps::NONE.rxfh();
}

pub(super) fn plan(info: Info) -> Result<Arc<Plan>> {
    let plan = Plan {
        info,
        hangs: Atomic::new(0),
        memory: Atomic::new(0),
        states: Atomic::new(0),
    };
    Ok(Arc::new(plan, GFP_KERNEL)?)
}

pub(super) fn info() -> Info {
    Info::new(MacAddress::from([2, 0, 0, 0, 0, 3]))
}

/// Makes a device of the driver, but does not register it.
fn make(plan: &Arc<Plan>) -> Result<Registration<Nic>> {
    let (info, data) = Nic::probe(&FUNCTION, plan.clone())?;

    Registration::<Nic>::new(&FUNCTION, &info, data)
}

/// Registers a device of the driver.
pub(super) fn register(plan: &Arc<Plan>) -> Result<Registration<Nic>> {
    let mut registration = make(plan)?;

    // IPv6 would send packets of its own.
    let no_addrconf = bindings::netdev_priv_flags_IFF_NO_ADDRCONF;
    // SAFETY: The device is valid, and not registered yet.
    unsafe { bindings::netdev_add_priv_flags(registration.0.as_raw(), no_addrconf) };
    registration.register(&plan.info)?;
    Ok(registration)
}

fn open(registration: &Registration<Nic>) -> Result {
    // SAFETY: The device is registered. Tests run in process context.
    unsafe {
        bindings::rtnl_lock();
        let result = bindings::dev_open(registration.0.as_raw(), ptr::null_mut());
        bindings::rtnl_unlock();
        to_result(result)
    }
}

fn close(registration: &Registration<Nic>) {
    // SAFETY: As above.
    unsafe {
        bindings::rtnl_lock();
        bindings::dev_close(registration.0.as_raw());
        bindings::rtnl_unlock();
    }
}

type Notifier = unsafe extern "C" fn(*mut bindings::notifier_block, c_ulong, *mut c_void) -> c_int;

/// Runs `f` while a notifier is told of devices.
fn with_notifier<R>(notifier: Notifier, f: impl FnOnce() -> R) -> Result<R> {
    let mut block = bindings::notifier_block {
        notifier_call: Some(notifier),
        ..pin_init::zeroed()
    };

    // SAFETY: It is unregistered before it goes.
    to_result(unsafe { bindings::register_netdevice_notifier(&raw mut block) })?;
    let result = f();
    // SAFETY: It is registered.
    to_result(unsafe { bindings::unregister_netdevice_notifier(&raw mut block) })?;
    Ok(result)
}

/// Opens a device of the driver that is being registered, as a failover device does, and is without
/// memory for it after that, as protocols can be.
///
/// # Safety
///
/// For [`with_notifier`].
unsafe extern "C" fn open_and_refuse(
    _: *mut bindings::notifier_block,
    event: c_ulong,
    info: *mut c_void,
) -> c_int {
    // SAFETY: Notifiers of network devices get this.
    let dev = unsafe { (*info.cast::<bindings::netdev_notifier_info>()).dev };
    // SAFETY: The device is valid.
    let is_ours = ptr::eq(unsafe { (*dev).netdev_ops }, Ops::<Nic>::vtable());

    // CAST: It is a small number.
    if !is_ours || event != bindings::netdev_cmd_NETDEV_REGISTER as c_ulong {
        return 0;
    }
    // SAFETY: As above. The locks are held.
    if unsafe { bindings::netif_open(dev, ptr::null_mut()) } != 0 {
        return 0;
    }
    // CAST: As above.
    (bindings::NOTIFY_STOP_MASK | bindings::NOTIFY_OK) as c_int - ENOMEM.to_errno()
}

/// Restarts a device, as its watchdog does.
fn restart(registration: &Registration<Nic>) -> Result {
    let inner = registration.inner();

    Locks::with(inner.dev(), |locks| inner.restart_or_close(locks))
}

fn is_up(registration: &Registration<Nic>) -> bool {
    registration.inner().dev().is_running()
}

fn is_master() -> bool {
    FUNCTION.is_master.load(Relaxed) != 0
}

#[macros::kunit_tests(rust_net_nics)]
mod cases {
    use super::*;

    /// DMA that was disabled can come back by others: the bus, or the driver of the bus device.
    #[test]
    fn one_that_does_not_stop_keeps_its_memory() -> Result {
        let hanging = plan(info())?;
        let first = register(&hanging)?;

        open(&first)?;
        assert!(is_master());
        hanging.hangs.store(1, Relaxed);
        close(&first);
        assert!(!is_master());
        assert_eq!(hanging.memory.load(Relaxed), 1);
        assert_eq!(open(&first), Err(EIO));

        hanging.hangs.store(0, Relaxed);
        first.suspend(Suspension::Reset)?;
        FUNCTION.allow_dma();
        assert_eq!(hanging.memory.load(Relaxed), 1);
        first.reset()?;
        assert_eq!(hanging.memory.load(Relaxed), 0);
        first.resume(true)?;
        open(&first)
    }

    #[test]
    fn one_that_does_not_stop_is_reset_by_the_bus() -> Result {
        let hanging = plan(info())?;
        let first = register(&hanging)?;

        open(&first)?;
        hanging.hangs.store(1, Relaxed);
        close(&first);
        assert_eq!(hanging.memory.load(Relaxed), 1);
        drop(first);
        assert_eq!(hanging.memory.load(Relaxed), 0);
        assert_eq!(hanging.states.load(Relaxed), 0);
        Ok(())
    }

    #[test]
    fn memory_is_lost_if_the_bus_cannot_reset() -> Result {
        let hanging = plan(info())?;
        let first = register(&hanging)?;

        open(&first)?;
        hanging.hangs.store(1, Relaxed);
        close(&first);
        FUNCTION.is_deaf.store(1, Relaxed);
        drop(first);
        FUNCTION.is_deaf.store(0, Relaxed);
        assert_eq!(hanging.memory.load(Relaxed), 1);
        // Not the state of the driver.
        assert_eq!(hanging.states.load(Relaxed), 0);
        Ok(())
    }

    #[test]
    fn one_that_was_not_registered_may_have_been_up() -> Result {
        let hanging = plan(info())?;

        hanging.hangs.store(1, Relaxed);
        FUNCTION.is_deaf.store(1, Relaxed);
        let registered = with_notifier(open_and_refuse, || register(&hanging).map(|_| ()))?;
        FUNCTION.is_deaf.store(0, Relaxed);
        assert_eq!(registered, Err(ENOMEM));
        assert_eq!(hanging.memory.load(Relaxed), 1);
        assert_eq!(hanging.states.load(Relaxed), 0);
        Ok(())
    }

    #[test]
    fn one_that_does_not_stop_leaves_others_alone() -> Result {
        let (hanging, other) = (plan(info())?, plan(info())?);
        let (first, second) = (register(&hanging)?, register(&other)?);

        open(&first)?;
        open(&second)?;
        hanging.hangs.store(1, Relaxed);
        close(&first);
        assert!(!is_master());

        // The second one hangs until it is restarted. The first one may use its memory then.
        assert!(is_up(&second));
        restart(&second)?;
        assert!(is_master());
        assert_eq!(hanging.memory.load(Relaxed), 1);

        for one in [&second, &first] {
            one.suspend(Suspension::Reset)?;
        }
        for one in [&first, &second] {
            one.reset()?;
        }
        assert_eq!(hanging.memory.load(Relaxed), 0);
        for one in [&first, &second] {
            one.resume(true)?;
        }
        open(&first)?;
        assert!(is_up(&second) && is_master());
        hanging.hangs.store(0, Relaxed);
        Ok(())
    }

    #[test]
    fn one_that_is_gone_has_stopped() -> Result {
        let plan = plan(info())?;
        let nic = register(&plan)?;

        plan.hangs.store(1, Relaxed);
        FUNCTION.is_gone.store(1, Relaxed);
        let opened = open(&nic);
        close(&nic);
        FUNCTION.is_gone.store(0, Relaxed);
        // Nothing was kept.
        assert_eq!((opened, is_master(), open(&nic)), (Ok(()), true, Ok(())));
        close(&nic);
        assert!(!is_master());
        assert_eq!(open(&nic), Err(EIO));
        Ok(())
    }

    #[test]
    fn all_are_reset_before_one_uses_memory() -> Result {
        let plan = plan(info())?;
        let (first, second) = (register(&plan)?, register(&plan)?);

        open(&first)?;
        open(&second)?;
        for one in [&second, &first] {
            one.suspend(Suspension::Failure)?;
        }
        assert!(!is_master());
        first.reset()?;
        assert!(!is_master());
        second.reset()?;
        assert!(!is_master());
        first.resume(true)?;
        assert!(is_master());
        second.resume(true)
    }

    /// The allocator has no contiguous memory for the states of so many, and warns.
    #[test]
    fn one_may_have_as_many_queues_as_there_are_numbers() -> Result {
        let info = Info {
            queues: u16::MAX,
            ..info()
        };

        make(&plan(info)?).map(drop)
    }

    /// The stack takes the length of the longest headers off the limit.
    #[test]
    fn no_limit_of_a_packet_is_below_its_headers() -> Result {
        let limit = |max_segmented_len| -> Result {
            let info = Info {
                max_segmented_len,
                ..info()
            };
            register(&plan(info)?).map(drop)
        };

        for too_little in [0, 100, Info::MIN_SEGMENTED_LEN - 1] {
            assert_eq!(limit(too_little), Err(EINVAL));
        }
        limit(Info::MIN_SEGMENTED_LEN)
    }

    /// The core's own is 0.
    #[test]
    #[cfg(CONFIG_BQL)]
    fn byte_queue_limits_begin_with_the_drivers() -> Result {
        let mut info = info();

        info.tx_limit_min = 5_000;
        let registration = register(&plan(info)?)?;
        // SAFETY: The device has a queue.
        let queue = unsafe { &*bindings::netdev_get_tx_queue(registration.0.as_raw(), 0) };
        assert_eq!(queue.dql.min_limit, 5_000);
        Ok(())
    }

    /// The core has a look at such packets only if the driver has one, too.
    #[test]
    fn no_driver_splits_in_tunnels_without_a_look() -> Result {
        let info = Info {
            tunnels: Features::NONE.with(Feature::TunnelUdp),
            ..info()
        };

        assert_eq!(register(&plan(info)?).err(), Some(EINVAL));
        Ok(())
    }

    /// The core warns of a driver that does not get to know them.
    #[test]
    fn no_driver_filters_vlans_that_it_is_not_told_of() -> Result {
        let filter = Features::NONE.with(Feature::VlanFilter);
        let on = Info {
            features: filter,
            ..info()
        };
        let off = Info {
            features_off: filter,
            ..info()
        };

        assert_eq!(make(&plan(on)?).err(), Some(EINVAL));
        assert_eq!(make(&plan(off)?).err(), Some(EINVAL));
        make(&plan(info())?).map(drop)
    }
}
