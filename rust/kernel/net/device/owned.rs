// SPDX-License-Identifier: GPL-2.0

//! Network devices that we own.

use crate::{
    bindings,
    error::to_result,
    prelude::*, //
};

use core::{
    cell::Cell,
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// A `struct net_device` with a `P` as its private part, registered or not.
///
/// When this is dropped, the device is unregistered, which closes it, and waits
/// until there are no references to it and no callbacks; then `P` is dropped,
/// and the device is freed.
///
/// # Invariants
///
/// `dev` is a network device that we own, whose private part is a valid, pinned
/// `P`. It is registered if `is_registered`.
pub(super) struct OwnedDevice<P> {
    dev: NonNull<bindings::net_device>,
    is_registered: Cell<bool>,
    _private: PhantomData<P>,
}

// SAFETY: The private part is `Send`, and a device can be unregistered by any
// task.
unsafe impl<P: Send> Send for OwnedDevice<P> {}

/// A device whose private part is not initialised.
struct Allocated(NonNull<bindings::net_device>);

impl Drop for Allocated {
    fn drop(&mut self) {
        // SAFETY: We own the device, and it has not been registered.
        unsafe { bindings::free_netdev(self.0.as_ptr()) };
    }
}

/// The private part of a device.
///
/// # Safety
///
/// `dev` must be the device of an [`OwnedDevice<P>`] that exists during `'a`.
#[inline]
pub(super) unsafe fn private<'a, P>(dev: *mut bindings::net_device) -> &'a P {
    // SAFETY: By the safety requirements, and the invariants of the type.
    unsafe { &*bindings::netdev_priv(dev).cast_const().cast::<P>() }
}

impl<P> OwnedDevice<P> {
    /// Allocates an Ethernet device with a number of queues of each kind, and
    /// no address.
    ///
    /// In `name`, "%d" stands for a number. `init` gets the device without a
    /// private part, and returns an initializer of that.
    pub(super) fn new<I: PinInit<P, Error>>(
        name: &CStr,
        queues: u16,
        init: impl FnOnce(NonNull<bindings::net_device>) -> Result<I>,
    ) -> Result<Self> {
        const {
            // C allocates the private part behind a `struct net_device`.
            assert!(align_of::<P>() <= align_of::<bindings::net_device>());
            assert!(size_of::<P>() <= i32::MAX as usize);
        }
        if name.count_bytes() >= bindings::IFNAMSIZ as usize {
            return Err(EINVAL);
        }

        // SAFETY: The name is short enough. It is copied.
        let dev = unsafe {
            bindings::alloc_netdev_mqs(
                // CAST: Checked above.
                size_of::<P>() as c_int,
                name.as_char_ptr(),
                // CAST: It is a small number.
                bindings::NET_NAME_ENUM as c_uchar,
                Some(bindings::ether_setup),
                queues.into(),
                queues.into(),
            )
        };
        let dev = Allocated(NonNull::new(dev).ok_or(ENOMEM)?);
        let init = init(dev.0)?;

        // SAFETY: The device is valid.
        let private = unsafe { bindings::netdev_priv(dev.0.as_ptr()) };
        // SAFETY: The private part has room for a `P`, at the right alignment,
        // and is not moved. If this fails, there is nothing to drop.
        unsafe { pin_init::raw_try_init(private.cast::<P>(), init)? };

        // INVARIANT: We take over the device, and its private part is valid.
        Ok(Self {
            dev: ManuallyDrop::new(dev).0,
            is_registered: Cell::new(false),
            _private: PhantomData,
        })
    }

    /// Returns the pointer to the device.
    #[inline]
    pub(super) fn as_raw(&self) -> *mut bindings::net_device {
        self.dev.as_ptr()
    }

    /// Registers the device. From here on there may be callbacks. Process
    /// context, without RTNL.
    ///
    /// # Safety
    ///
    /// The callbacks of the device must be for one with a private part of this
    /// type, and not be called before this.
    pub(super) unsafe fn register(&mut self) -> Result {
        // SAFETY: The device is valid, and by the safety requirements.
        to_result(unsafe { bindings::register_netdev(self.as_raw()) })?;
        // INVARIANT: It is registered.
        self.is_registered.set(true);
        Ok(())
    }

    /// Unregisters the device, if it is registered, and returns whether it was.
    /// Process context, without RTNL.
    pub(super) fn unregister(&self) -> bool {
        // INVARIANT: It is not registered below.
        let was_registered = self.is_registered.replace(false);

        // One that is not registered is down. Dropping it must not take RTNL, as
        // any safe code can.
        if was_registered {
            // SAFETY: By the type invariants, the device is registered.
            unsafe { bindings::unregister_netdev(self.as_raw()) };
        }
        was_registered
    }
}

impl<P> Drop for OwnedDevice<P> {
    fn drop(&mut self) {
        self.unregister();

        // SAFETY: By the type invariants, the private part is valid. There are
        // no callbacks any more, and we own the device.
        unsafe {
            let private = bindings::netdev_priv(self.as_raw());

            ptr::drop_in_place(private.cast::<P>());
            bindings::free_netdev(self.as_raw());
        }
    }
}

#[macros::kunit_tests(rust_net_owned_device)]
mod tests {
    use super::*;

    use crate::{
        net::device::Device,
        sync::atomic::{
            Atomic,
            Relaxed, //
        }, //
    };

    /// Counts how often it is dropped.
    struct Counted(&'static Atomic<u32>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn the_private_part_goes_with_the_device() -> Result {
        static GONE: Atomic<u32> = Atomic::new(0);

        let before = GONE.load(Relaxed);
        let init = Counted(&GONE);
        let device = OwnedDevice::new(c"kunit%d", 1, |_| Ok(Ok(init)))?;
        // SAFETY: The device is valid.
        let dev = unsafe { Device::from_raw(device.as_raw()) };
        assert!(!dev.is_running());
        assert_eq!(dev.mtu(), bindings::ETH_DATA_LEN);
        // SAFETY: As above, and this is its private part.
        let private = unsafe { private::<Counted>(device.as_raw()) };
        assert!(ptr::eq(private.0, &GONE));

        drop(device);
        assert_eq!(GONE.load(Relaxed), before + 1);
        Ok(())
    }

    #[test]
    fn a_registered_device_is_unregistered_before_it_goes() -> Result {
        static OPS: bindings::net_device_ops = pin_init::zeroed();
        static GONE: Atomic<u32> = Atomic::new(0);

        let before = GONE.load(Relaxed);
        let mut device = OwnedDevice::new(c"kunit%d", 1, |dev| {
            // SAFETY: The device is ours.
            unsafe { (*dev.as_ptr()).netdev_ops = &OPS };
            Ok(Ok(Counted(&GONE)))
        })?;
        // SAFETY: There are no callbacks.
        unsafe { device.register()? };
        assert!(device.unregister() && !device.unregister());
        assert_eq!(GONE.load(Relaxed), before);
        drop(device);
        assert_eq!(GONE.load(Relaxed), before + 1);
        Ok(())
    }

    #[test]
    fn without_a_private_part_there_is_no_device() {
        let none = |_| -> Result<Result<Counted>> { Err(EBUSY) };
        assert!(OwnedDevice::new(c"kunit%d", 1, none).err() == Some(EBUSY));

        let fails = |_| -> Result<Result<Counted>> { Ok(Err(EIO)) };
        assert!(OwnedDevice::new(c"kunit%d", 1, fails).err() == Some(EIO));
    }

    #[test]
    fn a_name_has_fifteen_letters_at_most() {
        let make = |name| OwnedDevice::new(name, 1, |_| Ok(Ok(()))).err();

        assert!(make(c"fifteen letters").is_none());
        assert!(make(c"sixteen letters!") == Some(EINVAL));
    }
}
