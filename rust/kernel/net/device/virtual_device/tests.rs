// SPDX-License-Identifier: GPL-2.0

//! Tests of virtual devices, with a module that is not one.

use super::{
    super::VirtualDriver,
    registrations::NOTIFIER,
    VirtualDevice, //
};

use crate::{
    bindings,
    net::skbuff::SkBuff,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    },
    types::Opaque,
    ModuleMetadata, //
};

use core::mem;

/// A module, of which there is only the state.
pub(in super::super) struct Fake(Opaque<bindings::module>);

// SAFETY: Tests run one after the other.
unsafe impl Sync for Fake {}

pub(in super::super) static FAKE: Fake = Fake(Opaque::uninit());
static OTHER: Fake = Fake(Opaque::uninit());

impl Fake {
    fn set_state(&self, state: bindings::module_state) {
        // SAFETY: It is ours. Nothing else of it is accessed.
        unsafe { (&raw mut (*self.0.get()).state).write(state) };
    }

    pub(in super::super) fn live(&self) {
        self.set_state(bindings::module_state_MODULE_STATE_LIVE);
    }

    /// Goes, as a module that was unloaded.
    pub(in super::super) fn go(&self) -> Result {
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

/// The driver of that module. Counts the devices that are gone.
struct Port {
    gone: Arc<Atomic<u32>>,
    /// Tries to register another device then.
    again: bool,
    _other: Option<VirtualDevice>,
}

impl Port {
    fn new(gone: &Arc<Atomic<u32>>) -> Self {
        Self {
            gone: gone.clone(),
            again: false,
            _other: None,
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.gone.fetch_add(1, Relaxed);
        if self.again {
            mem::forget(VirtualDevice::new(Ok(Port::new(&self.gone))));
        }
    }
}

#[vtable]
impl VirtualDriver for Port {
    type OwnerModule = Fake;

    const NAME: &'static CStr = c"kunit%d";

    fn start_xmit(&self, _skb: SkBuff) {}
}

/// A driver whose devices cannot be registered: their name is none.
struct Nameless(#[expect(dead_code)] Port);

#[vtable]
impl VirtualDriver for Nameless {
    type OwnerModule = Fake;

    const NAME: &'static CStr = c"a/b";

    fn start_xmit(&self, _skb: SkBuff) {}
}

#[macros::kunit_tests(rust_net_virtual_device)]
mod cases {
    use super::*;

    #[test]
    fn a_device_goes_with_its_handle() -> Result {
        let gone = Arc::new(Atomic::new(0), GFP_KERNEL)?;

        FAKE.live();
        let devices = [
            VirtualDevice::new(Ok(Port::new(&gone)))?,
            VirtualDevice::new(Ok(Port::new(&gone)))?,
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
        let good = VirtualDevice::new(Ok(Port::new(&gone)))?;
        assert!(VirtualDevice::new(Ok(Nameless(Port::new(&gone)))).is_err());
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
        let device = VirtualDevice::new(Ok(Port::new(&gone)))?;
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
                VirtualDevice::new(Ok(Port::new(&gone)))?,
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
        let gone = Arc::new(Atomic::new(0), GFP_KERNEL)?;

        FAKE.live();
        drop(VirtualDevice::new(Ok(Port::new(&gone)))?);
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
        let mut port = Port::new(&gone);
        port.again = true;
        mem::forget(VirtualDevice::new(Ok(port))?);
        FAKE.go()?;
        assert_eq!(gone.load(Relaxed), 2);
        assert!(VirtualDevice::new(Ok(Port::new(&gone))).err() == Some(ENODEV));
        assert_eq!(gone.load(Relaxed), 3);
        Ok(())
    }

    /// The data of a driver can have the handle of another device.
    #[test]
    fn a_device_in_the_data_of_another_goes_too() -> Result {
        let gone = Arc::new(Atomic::new(0), GFP_KERNEL)?;

        for is_forgotten in [false, true] {
            FAKE.live();
            gone.store(0, Relaxed);
            let mut port = Port::new(&gone);
            port._other = Some(VirtualDevice::new(Ok(Port::new(&gone)))?);
            let device = VirtualDevice::new(Ok(port))?;

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
}
