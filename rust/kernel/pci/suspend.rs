// SPDX-License-Identifier: GPL-2.0

//! Devices that sleep, are reset, or recover from errors of the bus, while they are bound.
//!
//! C headers: [`include/linux/pm.h`](srctree/include/linux/pm.h),
//! [`include/linux/pci.h`](srctree/include/linux/pci.h)

use super::{
    Device,
    Driver, //
};

use crate::{
    bindings,
    device,
    driver::registrations::{
        self,
        Suspension, //
    },
    error::{
        from_result,
        to_result, //
    },
    prelude::*, //
};

use core::marker::PhantomData;

/// A PCI driver whose devices can be suspended.
///
/// With [`Driver::SUSPEND`], the callbacks below are used; all of them are optional. The
/// registrations of a device, such as its network device, are suspended and resumed in any case,
/// and with them goes all of the work, if they reset the device by themselves.
///
/// - The system sleeps: registrations are suspended, the newest first, then [`suspend`] is called,
///   and the bus saves the configuration and lowers the power. Afterwards it restores both, then
///   [`resume`] is called, and registrations are reset, the oldest first. When all of them are,
///   they are resumed in the same order.
/// - The function is reset, for instance by sysfs: the same, without a change of power.
/// - The bus reports an error: registrations are suspended, [`suspend`] is called, and the bus
///   resets the slot. Then the configuration is restored, [`resume`] is called, and registrations
///   are reset. They are resumed when all devices behind the port have come so far.
///
/// After an error that cannot be recovered from, a device stays suspended until it is unbound. The
/// device is locked in these callbacks: they run neither during [`Driver::probe`] nor during
/// [`Driver::unbind`], nor after it.
///
/// [`suspend`]: Suspend::suspend
/// [`resume`]: Suspend::resume
#[vtable]
pub trait Suspend: Driver {
    /// Prepares a device whose registrations are suspended to lose its state.
    ///
    /// It must not be accessed unless [`Suspension::is_reachable`]. If this fails, the system does
    /// not go to sleep; for other reasons, the error is ignored.
    fn suspend<'bound>(
        dev: &'bound Device<device::Core<'_>>,
        this: Pin<&Self::Data<'bound>>,
        why: Suspension,
    ) -> Result {
        let _ = (dev, this, why);
        Ok(())
    }

    /// Restores the state of a device, except for what its registrations restore after this.
    ///
    /// If this fails, they stay suspended.
    fn resume<'bound>(
        dev: &'bound Device<device::Core<'_>>,
        this: Pin<&Self::Data<'bound>>,
    ) -> Result {
        let _ = (dev, this);
        Ok(())
    }
}

/// The callbacks of driver `T` that are in [`Suspend`], for [`Driver::SUSPEND`].
///
/// # Invariants
///
/// The functions are those of driver `T`: they take the private data of a device for its type.
pub struct SuspendOps<T: ?Sized> {
    pub(super) pm: &'static bindings::dev_pm_ops,
    pub(super) errors: &'static bindings::pci_error_handlers,
    // Invariant: a type that `T` is a subtype of can be another driver, and the other way round.
    _driver: PhantomData<fn(&T) -> &T>,
}

impl<T: Suspend> SuspendOps<T> {
    /// Those of driver `T`.
    pub const fn of_driver() -> Self {
        // INVARIANT: These are of driver `T`.
        Self {
            pm: &Callbacks::<T>::PM,
            errors: &Callbacks::<T>::ERRORS,
            _driver: PhantomData,
        }
    }
}

/// The device in a callback of the core.
type Locked<'a> = Device<device::CoreInternal<'a>>;

/// The callbacks of driver `T`.
///
/// All of them are called by the core, in process context and with the device locked, for a device
/// that is bound to the driver.
struct Callbacks<T>(PhantomData<T>);

impl<T: Suspend> Callbacks<T> {
    const PM: bindings::dev_pm_ops = bindings::dev_pm_ops {
        suspend: Some(Self::sleep),
        resume: Some(Self::wake),
        freeze: Some(Self::sleep),
        thaw: Some(Self::wake),
        poweroff: Some(Self::sleep),
        restore: Some(Self::wake),
        ..pin_init::zeroed()
    };

    const ERRORS: bindings::pci_error_handlers = bindings::pci_error_handlers {
        error_detected: Some(Self::error_detected),
        slot_reset: Some(Self::slot_reset),
        resume: Some(Self::error_resume),
        reset_prepare: Some(Self::reset_prepare),
        reset_done: Some(Self::reset_done),
        ..pin_init::zeroed()
    };

    fn suspend(dev: &Locked<'_>, why: Suspension) -> Result {
        registrations::suspend_all(dev.as_ref(), why)?;
        if !T::HAS_SUSPEND {
            return Ok(());
        }

        // SAFETY: The device is bound, so there is private data of this type.
        let data = unsafe { dev.as_ref().drvdata_borrow::<T::Data<'_>>() };
        T::suspend(dev, data, why).inspect_err(|_| {
            if why.is_refusable() {
                // Whether they can be resumed is reported by themselves.
                let _ = registrations::resume_all(dev.as_ref(), why);
            }
        })
    }

    /// The driver's part of resuming a device.
    fn restore(dev: &Locked<'_>) -> Result {
        if !T::HAS_RESUME {
            return Ok(());
        }
        // SAFETY: The device is bound, so there is private data of this type.
        T::resume(dev, unsafe { dev.as_ref().drvdata_borrow::<T::Data<'_>>() })
    }

    fn resume(dev: &Locked<'_>, why: Suspension) -> Result {
        Self::restore(dev)?;
        registrations::resume_all(dev.as_ref(), why)
    }

    /// # Safety
    ///
    /// See [`Callbacks`].
    unsafe extern "C" fn sleep(dev: *mut bindings::device) -> c_int {
        // SAFETY: This is the device of a `struct pci_dev`, which is valid.
        let dev = unsafe { from_device(dev) };

        from_result(|| Self::suspend(dev, Suspension::Sleep).map(|()| 0))
    }

    /// # Safety
    ///
    /// See [`Callbacks`].
    unsafe extern "C" fn wake(dev: *mut bindings::device) -> c_int {
        // SAFETY: This is the device of a `struct pci_dev`, which is valid.
        let dev = unsafe { from_device(dev) };

        from_result(|| Self::resume(dev, Suspension::Sleep).map(|()| 0))
    }

    /// # Safety
    ///
    /// See [`Callbacks`].
    unsafe extern "C" fn reset_prepare(pdev: *mut bindings::pci_dev) {
        // SAFETY: The device is valid.
        let dev = unsafe { from_pci(pdev) };

        // The bus goes on in any case.
        let _ = Self::suspend(dev, Suspension::Reset);
    }

    /// # Safety
    ///
    /// See [`Callbacks`].
    unsafe extern "C" fn reset_done(pdev: *mut bindings::pci_dev) {
        // SAFETY: The device is valid.
        let dev = unsafe { from_pci(pdev) };

        if let Err(error) = Self::resume(dev, Suspension::Reset) {
            dev_err!(dev, "resume after a reset failed: {error:?}\n");
        }
    }

    /// # Safety
    ///
    /// See [`Callbacks`].
    unsafe extern "C" fn error_detected(
        pdev: *mut bindings::pci_dev,
        state: bindings::pci_channel_state_t,
    ) -> bindings::pci_ers_result_t {
        // SAFETY: The device is valid.
        let dev = unsafe { from_pci(pdev) };
        let why = if state == bindings::pci_channel_io_normal {
            Suspension::Error
        } else {
            Suspension::Failure
        };

        // A device whose state is unknown is not used without a reset. At worst, a registration
        // that cannot be suspended is lost.
        let _ = Self::suspend(dev, why);
        if state == bindings::pci_channel_io_perm_failure {
            bindings::pci_ers_result_PCI_ERS_RESULT_DISCONNECT
        } else {
            bindings::pci_ers_result_PCI_ERS_RESULT_NEED_RESET
        }
    }

    /// # Safety
    ///
    /// See [`Callbacks`].
    unsafe extern "C" fn slot_reset(pdev: *mut bindings::pci_dev) -> bindings::pci_ers_result_t {
        // SAFETY: The device is valid.
        let dev = unsafe { from_pci(pdev) };

        // SAFETY: As above.
        let result = unsafe { enable_after_reset(pdev) }
            .and_then(|()| Self::restore(dev))
            .and_then(|()| registrations::reset_all(dev.as_ref(), Suspension::Error));
        match result {
            Ok(()) => bindings::pci_ers_result_PCI_ERS_RESULT_RECOVERED,
            Err(error) => {
                dev_err!(dev, "reset after an error failed: {error:?}\n");
                bindings::pci_ers_result_PCI_ERS_RESULT_DISCONNECT
            }
        }
    }

    /// # Safety
    ///
    /// See [`Callbacks`].
    unsafe extern "C" fn error_resume(pdev: *mut bindings::pci_dev) {
        // SAFETY: The device is valid.
        let dev = unsafe { from_pci(pdev) };

        if let Err(error) = registrations::resume_all(dev.as_ref(), Suspension::Error) {
            dev_err!(dev, "resume after an error failed: {error:?}\n");
        }
    }
}

/// # Safety
///
/// `dev` must be valid for `'a`, and be locked by the caller of a callback of its driver.
unsafe fn from_pci<'a>(dev: *mut bindings::pci_dev) -> &'a Locked<'a> {
    // SAFETY: `Device` is a transparent wrapper of `struct pci_dev`. Else by the safety
    // requirements.
    unsafe { &*dev.cast::<Locked<'_>>() }
}

/// # Safety
///
/// As for [`from_pci`], and `dev` must be part of a `struct pci_dev`.
unsafe fn from_device<'a>(dev: *mut bindings::device) -> &'a Locked<'a> {
    // SAFETY: By the safety requirements.
    unsafe { from_pci(crate::container_of!(dev, bindings::pci_dev, dev)) }
}

/// Lets a device wake the machine, which goes off, and lowers its power.
///
/// Not generic, so that this is not part of a driver's module.
#[inline(never)]
pub(super) fn wake_from_off(dev: &Locked<'_>) {
    // `bindgen` does not see through the cast of the constant, `PCI_D3hot`.
    const D3_HOT: bindings::pci_power_t = 3;

    // If the device cannot have that, the machine stays off.
    //
    // SAFETY: The device is valid.
    unsafe {
        let _ = bindings::pci_wake_from_d3(dev.as_raw(), true);
        let _ = bindings::pci_set_power_state(dev.as_raw(), D3_HOT);
    }
}

/// Restores the configuration of a device after its slot was reset, and enables it as before.
///
/// Not generic, so that this is not part of a driver's module.
///
/// # Safety
///
/// `pdev` must be valid.
#[inline(never)]
unsafe fn enable_after_reset(pdev: *mut bindings::pci_dev) -> Result {
    // SAFETY: By the safety requirements. The core has saved the configuration when it has found
    // the device, or later.
    unsafe {
        bindings::pci_restore_state(pdev);
        to_result(bindings::pci_reenable_device(pdev))
    }
}
