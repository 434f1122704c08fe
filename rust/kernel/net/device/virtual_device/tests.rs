// SPDX-License-Identifier: GPL-2.0

//! Tests of virtual devices, with a module that is not one.

use super::{
    super::{
        registration::Registration,
        tests::fixture::Fixture,
        Device,
        Driver,
        Immediate,
        Info,
        Locks,
        MacAddress,
        Opening, //
    },
    registrations::NOTIFIER,
    NoParent,
    VirtualDevice,
    NO_PARENT, //
};

use crate::{
    bindings,
    driver::registrations::Suspension,
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
        skbuff::TxSkBuff, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SetOnce, //
    },
    types::Opaque,
    ModuleMetadata, //
};

use core::{
    mem,
    ptr, //
};

/// A module, of which there is only the state.
struct Fake(Opaque<bindings::module>);

// SAFETY: Tests run one after the other.
unsafe impl Sync for Fake {}

static FAKE: Fake = Fake(Opaque::uninit());
static OTHER: Fake = Fake(Opaque::uninit());

impl Fake {
    fn set_state(&self, state: bindings::module_state) {
        // SAFETY: It is ours. Nothing else of it is accessed.
        unsafe { (&raw mut (*self.0.get()).state).write(state) };
    }

    fn live(&self) {
        self.set_state(bindings::module_state_MODULE_STATE_LIVE);
    }

    /// Goes, as a module that was unloaded.
    fn go(&self) -> Result {
        let state = bindings::module_state_MODULE_STATE_GOING;

        self.set_state(state);
        self.notify(state)
    }

    /// Tells the notifier of a new state.
    fn notify(&self, state: bindings::module_state) -> Result {
        // SAFETY: The notifier is static.
        let call = unsafe { (*NOTIFIER.as_raw()).notifier_call }.ok_or(EINVAL)?;
        // CAST: This is how C passes it.
        //
        // SAFETY: This is what the core does.
        unsafe { call(NOTIFIER.as_raw(), state as c_ulong, self.0.get().cast()) };
        Ok(())
    }
}

impl ModuleMetadata for Fake {
    const NAME: &'static CStr = c"fake";
    // SAFETY: The functions under test read the state only.
    const THIS_MODULE: ThisModule = unsafe { ThisModule::from_ptr(FAKE.0.get()) };
}

/// The driver of that module.
struct Port;

/// Counts the devices that are gone.
struct Data {
    gone: Arc<Atomic<u32>>,
    /// Tries to register another device then.
    again: bool,
    /// It does not stop.
    hangs: bool,
    /// It has a description with which it cannot be registered.
    is_bad: bool,
    _other: Option<VirtualDevice>,
}

impl Data {
    fn new(gone: &Arc<Atomic<u32>>) -> Self {
        Self {
            gone: gone.clone(),
            again: false,
            hangs: false,
            is_bad: false,
            _other: None,
        }
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        self.gone.fetch_add(1, Relaxed);
        if self.again {
            mem::forget(VirtualDevice::new::<Port>(Data::new(&self.gone)));
        }
    }
}

#[vtable]
impl Driver for Port {
    type OwnerModule = Fake;
    type Bus = NoParent;
    type Setup = Data;
    type Data<'bound> = Data;
    type Poller<'bound> = ();
    type Tx<'bound> = ();
    type Doorbell = Immediate;

    fn probe(_bus: &NoParent, data: Data) -> Result<(Info, impl PinInit<Data, Error>)> {
        let mut info = Info::new(MacAddress::from([0; 6]));

        if data.is_bad {
            // Longer than the core can express.
            info.tx_timeout_ms = u32::MAX;
        }
        Ok((info, Ok(data)))
    }

    fn open<'bound>(_cx: &mut Opening<'_, 'bound, Self>) -> Result {
        Err(ENODEV)
    }

    fn start(_data: Pin<&Data>, _dev: &Device, _locks: &mut Locks<'_>) -> Result {
        Ok(())
    }

    fn quiesce(data: Pin<&Data>, _dev: &Device, _locks: &mut Locks<'_>) -> Result {
        if data.hangs {
            return Err(EIO);
        }
        Ok(())
    }

    fn poll(_data: Pin<&Data>, _poller: &mut (), _cx: &Poll<'_>) -> Polled {
        Polled::Idle { received: 0 }
    }

    fn rearm(_data: Pin<&Data>, _vector: u16) {}

    fn start_xmit<'call>(
        _data: Pin<&Data>,
        _tx: &mut (),
        _queue: &TxQueue<'_>,
        _skb: TxSkBuff<'call>,
        _more: bool,
    ) -> Xmit<'call> {
        Xmit::Taken
    }
}

#[macros::kunit_tests(rust_net_virtual_device)]
mod cases {
    use super::*;

    #[test]
    fn a_device_goes_with_its_handle() -> Result {
        let gone = Arc::new(Atomic::new(0), GFP_KERNEL)?;

        FAKE.live();
        let devices = [
            VirtualDevice::new::<Port>(Data::new(&gone))?,
            VirtualDevice::new::<Port>(Data::new(&gone))?,
        ];
        assert_eq!(gone.load(Relaxed), 0);
        for (device, count) in devices.into_iter().zip(1..) {
            drop(device);
            assert_eq!(gone.load(Relaxed), count);
        }
        FAKE.go()?;
        assert_eq!(gone.load(Relaxed), 2);
        Ok(())
    }

    #[test]
    fn a_device_that_cannot_be_registered_goes_at_once() -> Result {
        let gone = Arc::new(Atomic::new(0), GFP_KERNEL)?;

        FAKE.live();
        let mut data = Data::new(&gone);
        data.is_bad = true;
        let good = VirtualDevice::new::<Port>(Data::new(&gone))?;
        assert!(VirtualDevice::new::<Port>(data).is_err());
        assert_eq!(gone.load(Relaxed), 1);

        // Nothing waits for an entry of it.
        drop(good);
        FAKE.go()?;
        assert_eq!(gone.load(Relaxed), 2);
        Ok(())
    }

    /// The holder of RTNL may wait for a module to be loaded.
    #[test]
    fn a_module_without_devices_waits_for_none() -> Result {
        let gone = Arc::new(Atomic::new(0), GFP_KERNEL)?;

        FAKE.live();
        let device = VirtualDevice::new::<Port>(Data::new(&gone))?;
        // SAFETY: Tests run in process context.
        unsafe { bindings::rtnl_lock() };
        let notified = OTHER
            .notify(bindings::module_state_MODULE_STATE_LIVE)
            .and_then(|()| OTHER.go());
        // SAFETY: Locked above.
        unsafe { bindings::rtnl_unlock() };

        drop(device);
        FAKE.go()?;
        notified
    }

    /// The core calls the notifier when the module's last function has returned.
    #[test]
    fn a_device_that_was_forgotten_goes_with_its_module() -> Result {
        let gone = Arc::new(Atomic::new(0), GFP_KERNEL)?;

        FAKE.live();
        OTHER.live();
        for _ in 0..2 {
            mem::forget(KBox::new(
                VirtualDevice::new::<Port>(Data::new(&gone))?,
                GFP_KERNEL,
            )?);
        }
        OTHER.go()?;
        assert_eq!(gone.load(Relaxed), 0);
        FAKE.go()?;
        assert_eq!(gone.load(Relaxed), 2);
        Ok(())
    }

    #[test]
    fn the_notifier_is_registered() -> Result {
        FAKE.live();
        drop(VirtualDevice::new::<Port>(Data::new(&Arc::new(
            Atomic::new(0),
            GFP_KERNEL,
        )?))?);
        // SAFETY: The notifier is static. It is missing for a moment, while no module goes.
        let (removed, added) = unsafe {
            (
                bindings::unregister_module_notifier(NOTIFIER.as_raw()),
                bindings::register_module_notifier(NOTIFIER.as_raw()),
            )
        };
        assert_eq!((removed, added), (0, 0));
        Ok(())
    }

    #[test]
    fn a_module_that_goes_gets_no_device() -> Result {
        let gone = Arc::new(Atomic::new(0), GFP_KERNEL)?;

        FAKE.live();
        let mut data = Data::new(&gone);
        data.again = true;
        mem::forget(VirtualDevice::new::<Port>(data)?);
        FAKE.go()?;
        assert_eq!(gone.load(Relaxed), 2);
        assert!(VirtualDevice::new::<Port>(Data::new(&gone)).err() == Some(ENODEV));
        assert_eq!(gone.load(Relaxed), 3);
        Ok(())
    }

    /// Virtual devices have no card in common, which would be kept from accessing memory.
    #[test]
    fn one_that_does_not_stop_concerns_no_other() -> Result {
        let gone = Arc::new(Atomic::new(0), GFP_KERNEL)?;

        FAKE.live();
        let mut data = Data::new(&gone);
        data.hangs = true;
        let (info, data) = Port::probe(&NO_PARENT, data)?;
        let mut device = Registration::<Port>::new(&NO_PARENT, &info, data)?;
        device.register(&info)?;

        // It is stopped, since it cannot be opened.
        //
        // SAFETY: The device is registered. Tests run in process context.
        let opened = unsafe {
            bindings::rtnl_lock();
            let result = bindings::dev_open(device.dev.as_ptr(), ptr::null_mut());
            bindings::rtnl_unlock();
            result
        };
        assert_eq!(to_result(opened), Err(ENODEV));

        let other = VirtualDevice::new::<Port>(Data::new(&gone))?;
        assert_eq!(gone.load(Relaxed), 0);
        drop((device, other));
        FAKE.go()
    }

    /// The data of a driver can have the handle of another device.
    #[test]
    fn a_device_in_the_data_of_another_goes_too() -> Result {
        let gone = Arc::new(Atomic::new(0), GFP_KERNEL)?;

        for is_forgotten in [false, true] {
            FAKE.live();
            gone.store(0, Relaxed);
            let mut data = Data::new(&gone);
            data._other = Some(VirtualDevice::new::<Port>(Data::new(&gone))?);
            let device = VirtualDevice::new::<Port>(data)?;

            if is_forgotten {
                mem::forget(device);
            } else {
                drop(device);
                assert_eq!(gone.load(Relaxed), 2);
            }
            FAKE.go()?;
            assert_eq!(gone.load(Relaxed), 2);
        }
        Ok(())
    }

    /// A scheduler is nothing that a card accesses: it can be bound again, although the rest of the
    /// vector is kept from being freed.
    #[test]
    fn a_scheduler_goes_on_to_the_next_vector() -> Result {
        static SCHEDULER: SetOnce<Arc<Scheduler>> = SetOnce::new();

        let device = Fixture::new(1)?;

        SCHEDULER.populate(Scheduler::new()?);
        let scheduler = SCHEDULER.as_ref().ok_or(ENOENT)?;
        device
            .log
            .on_napi
            .populate(|napi| napi.bind(SCHEDULER.as_ref().ok_or(ENOENT)?));

        device.up()?;
        assert!(scheduler.schedule());
        // The parent cannot keep its card from memory.
        device.suspend(Suspension::Failure)?;
        assert!(!scheduler.schedule());
        device.resume()?;
        assert!(device.device().is_running());
        assert!(scheduler.schedule());

        device.down();
        assert!(!scheduler.schedule());
        Ok(())
    }
}
