// SPDX-License-Identifier: GPL-2.0

//! Tests of NICs that share a bus device, and of limits that no NIC has.

use super::super::{
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

/// A bus device with several NICs.
pub(super) struct Function {
    is_master: Atomic<u32>,
}

static FUNCTION: Function = Function {
    is_master: Atomic::new(0),
};

// SAFETY: There is one, which is static.
unsafe impl Parent for Function {
    fn as_device(&self) -> Option<&device::Device<Bound>> {
        None
    }

    fn allow_dma(&self) {
        self.is_master.store(1, Relaxed);
    }

    fn forbid_dma(&self) -> bool {
        self.is_master.store(0, Relaxed);
        true
    }
}

/// The driver of one of the NICs.
pub(super) struct Nic;

pub(super) struct Plan {
    info: Info,
    /// It does not stop.
    hangs: Atomic<u32>,
}

#[vtable]
impl Driver for Nic {
    type Bus = Function;
    type Setup = Arc<Plan>;
    type Data<'bound> = Arc<Plan>;
    type Poller<'bound> = ();
    type Tx<'bound> = ();
    type Doorbell = Immediate;

    fn probe<'bound>(
        _bus: &'bound Function,
        plan: Arc<Plan>,
    ) -> Result<(Info, impl PinInit<Arc<Plan>, Error>)> {
        Ok((plan.info, Ok(plan)))
    }

    fn open<'bound>(cx: &mut Opening<'_, 'bound, Self>) -> Result {
        cx.add_virtual_queue_vector(|_| Ok(((), ()))).map(|_| ())
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

    fn poll<'bound>(_: Pin<&Arc<Plan>>, (): &mut (), _: &Poll<'_>) -> Polled {
        Polled::Idle { received: 0 }
    }

    fn rearm<'bound>(_: Pin<&Arc<Plan>>, _: u16) {}

    fn start_xmit<'bound, 'call>(
        _: Pin<&Arc<Plan>>,
        (): &mut (),
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
        let result = bindings::dev_open(registration.0.as_raw(), core::ptr::null_mut());
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

    #[test]
    fn one_that_does_not_stop_keeps_others_away() -> Result {
        let (hanging, other) = (plan(info())?, plan(info())?);
        let first = register(&hanging)?;

        open(&first)?;
        assert!(is_master());
        hanging.hangs.store(1, Relaxed);
        close(&first);
        assert!(!is_master());

        // The first one would write to memory that was freed.
        let second = register(&other);
        assert!(!is_master());
        assert_eq!(second.err(), Some(EIO));

        drop(first);
        let second = register(&other)?;
        assert!(is_master());
        drop(second);
        Ok(())
    }

    #[test]
    fn one_that_does_not_stop_takes_others_down() -> Result {
        let (hanging, other) = (plan(info())?, plan(info())?);
        let (first, second) = (register(&hanging)?, register(&other)?);

        open(&first)?;
        open(&second)?;
        hanging.hangs.store(1, Relaxed);
        close(&first);
        assert!(!is_master());

        // The second one hangs now. To restart it does not help.
        assert!(is_up(&second));
        assert_eq!(restart(&second), Err(EIO));
        assert!(!is_up(&second));
        assert_eq!(open(&second), Err(EIO));
        assert!(!is_master());

        for one in [&second, &first] {
            one.suspend(Suspension::Reset)?;
        }
        for one in [&first, &second] {
            one.reset()?;
        }
        for one in [&first, &second] {
            one.resume(true)?;
        }
        open(&second)?;
        assert!(is_master());
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
        assert!(is_master());
        for one in [&first, &second] {
            one.resume(true)?;
        }
        Ok(())
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
