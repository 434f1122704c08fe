// SPDX-License-Identifier: GPL-2.0

//! Tests of the devices of a module.

use super::*;

use crate::{
    net::skbuff::SkBuff,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// The devices that are gone, and the number of the one that went last.
static GONE: Atomic<u32> = Atomic::new(0);
static LAST: Atomic<u32> = Atomic::new(0);

struct Port(u32);

impl Drop for Port {
    fn drop(&mut self) {
        GONE.fetch_add(1, Relaxed);
        LAST.store(self.0, Relaxed);
    }
}

#[vtable]
impl VirtualDriver for Port {
    const NAME: &'static CStr = c"kunit%d";

    fn start_xmit(&self, _skb: SkBuff) {}
}

/// A driver whose devices cannot be registered: their name is none.
struct Nameless(#[expect(dead_code)] Port);

#[vtable]
impl VirtualDriver for Nameless {
    const NAME: &'static CStr = c"a/b";

    fn start_xmit(&self, _skb: SkBuff) {}
}

/// A module with two devices.
struct Ports;

impl VirtualModule for Ports {
    fn init(devices: &mut VirtualDevices) -> Result {
        devices.add(Ok(Port(1)))?;
        devices.add(Ok(Port(2)))
    }
}

/// A module that cannot be initialised.
struct Broken;

impl VirtualModule for Broken {
    fn init(devices: &mut VirtualDevices) -> Result {
        Ports::init(devices)?;
        devices.add(Ok(Nameless(Port(3))))
    }
}

/// A module that goes on without one of its devices.
struct Content;

impl VirtualModule for Content {
    fn init(devices: &mut VirtualDevices) -> Result {
        assert!(devices.add(Ok(Nameless(Port(3)))).is_err());
        devices.add(Ok(Port(1)))
    }
}

#[macros::kunit_tests(rust_net_virtual_device)]
mod cases {
    use super::*;

    #[test]
    fn devices_go_with_their_module_the_newest_first() -> Result {
        let is_loaded = SetOnce::new();

        GONE.store(0, Relaxed);
        // SAFETY: The devices are dropped below.
        let devices = unsafe { VirtualDevices::new::<Ports>(&is_loaded) }?;
        assert_eq!(GONE.load(Relaxed), 0);
        drop(devices);
        assert_eq!((GONE.load(Relaxed), LAST.load(Relaxed)), (2, 1));
        Ok(())
    }

    #[test]
    fn a_module_that_fails_leaves_no_devices() {
        let is_loaded = SetOnce::new();

        GONE.store(0, Relaxed);
        // SAFETY: There are no devices.
        assert!(unsafe { VirtualDevices::new::<Broken>(&is_loaded) }.is_err());
        assert_eq!((GONE.load(Relaxed), LAST.load(Relaxed)), (3, 1));
    }

    #[test]
    fn a_device_that_cannot_be_registered_goes_at_once() -> Result {
        let is_loaded = SetOnce::new();

        GONE.store(0, Relaxed);
        // SAFETY: The devices are dropped below.
        let devices = unsafe { VirtualDevices::new::<Content>(&is_loaded) }?;
        assert_eq!((GONE.load(Relaxed), LAST.load(Relaxed)), (1, 3));
        drop(devices);
        assert_eq!(GONE.load(Relaxed), 2);
        Ok(())
    }

    /// Safe code can call the function of its module that the loader calls, and forget the result.
    #[test]
    fn a_module_is_initialised_once() -> Result {
        let is_loaded = SetOnce::new();

        // SAFETY: The devices are dropped when this returns.
        let _devices = unsafe { VirtualDevices::new::<Ports>(&is_loaded) }?;
        // SAFETY: As above.
        let again = unsafe { VirtualDevices::new::<Ports>(&is_loaded) };
        assert!(again.err() == Some(EBUSY));
        Ok(())
    }
}
