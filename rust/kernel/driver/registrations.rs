// SPDX-License-Identifier: GPL-2.0

//! Registrations that end when a device is unbound from its driver.
//!
//! A driver that registers with a subsystem, as a network device for instance, is called back by
//! it. These callbacks rely on the device being bound, and on what is tied to that, such as
//! [`Devres`]. So the registration has to end before any of that goes away. An object in the
//! driver's private data has no such guarantee: safe code can forget it. Hence the registration is
//! not the driver's; the driver core owns it.
//!
//! When a device is unbound, or when a probe fails, this happens in this order:
//!
//! 1. The bus calls the driver, for instance [`platform::Driver::unbind`]. Not if a probe fails.
//! 2. The registrations end, the newest first.
//! 3. The driver's private data is dropped.
//! 4. Resources are released ([`Devres`], [`devres::register`]), the newest first.
//!
//! To add a registration takes a reference to a device in the context [`Core`]. A driver has it in
//! the callbacks of its bus only, and cannot keep it: in the steps 2 to 4, code of the driver runs,
//! but it cannot add a registration that would then be left behind.
//!
//! [`Devres`]: crate::devres::Devres
//! [`devres::register`]: crate::devres::register
//! [`platform::Driver::unbind`]: crate::platform::Driver::unbind

use crate::{
    bindings,
    device::{
        Core,
        CoreInternal,
        Device, //
    },
    prelude::*, //
};

use core::{
    cell::Cell,
    ptr, //
};

/// A registration with a subsystem, on behalf of a driver that is bound to a device.
///
/// When it is dropped, the registration ends: it waits for callbacks that run, and there are none
/// after that.
pub trait Registration: Send + 'static {
    /// Quiets the device down, since the system goes down or starts another kernel. Process
    /// context.
    fn shutdown(&self) {}
}

/// A registration, as an entry of the resources of a device.
///
/// They are a list that each device has. The entries are taken off it before the others.
struct Entry {
    registration: KBox<dyn Registration>,
    /// The next entry of those that [`shutdown_all`] has found.
    next: Cell<*const Entry>,
}

/// Tells entries from other resources.
static RELEASE: unsafe extern "C" fn(*mut bindings::device, *mut c_void) = release;

/// # Safety
///
/// To be called by the core for an [`Entry`], which is not used after that.
unsafe extern "C" fn release(_dev: *mut bindings::device, entry: *mut c_void) {
    // SAFETY: By the safety requirements.
    unsafe { ptr::drop_in_place(entry.cast::<Entry>()) };
}

/// Lets `registration` end when `dev` is unbound from its driver.
///
/// If this fails, it ends at once.
pub fn add<T: Registration>(dev: &Device<Core<'_>>, registration: T) -> Result {
    add_entry(dev, KBox::new(registration, GFP_KERNEL)?)
}

/// Not generic, so that this is not part of a driver's module.
#[inline(never)]
fn add_entry(dev: &Device<Core<'_>>, registration: KBox<dyn Registration>) -> Result {
    const NAME: &CStr = c"driver::registrations";

    // SAFETY: This has no requirements. Nodes are numbers, and -1 is any node.
    let entry = unsafe {
        bindings::__devres_alloc_node(
            Some(RELEASE),
            size_of::<Entry>(),
            GFP_KERNEL.as_raw(),
            -1,
            NAME.as_char_ptr(),
        )
    };
    if entry.is_null() {
        return Err(ENOMEM);
    }

    // SAFETY: The allocation has the size of an `Entry`, and an alignment that suits any type of
    // C. The device is valid. It is bound, or being bound: its driver's callback has lent it to
    // our caller. So it will be unbound, which releases the entry.
    unsafe {
        entry.cast::<Entry>().write(Entry {
            registration,
            next: Cell::new(ptr::null()),
        });
        bindings::devres_add(dev.as_raw(), entry);
    }
    Ok(())
}

/// Ends the registrations of a device that is being unbound, the newest first.
pub(super) fn end_all(dev: &Device<CoreInternal<'_>>) {
    // SAFETY: The device is valid. This calls `release()` for an entry of ours.
    while unsafe {
        bindings::devres_release(dev.as_raw(), Some(RELEASE), None, ptr::null_mut()) == 0
    } {}
}

/// Puts an entry on a list of entries that were found, and goes on to search.
///
/// # Safety
///
/// To be called by the core for an [`Entry`], with a pointer to a pointer to another one.
unsafe extern "C" fn collect(
    _dev: *mut bindings::device,
    entry: *mut c_void,
    found: *mut c_void,
) -> c_int {
    let found = found.cast::<*const Entry>();

    // SAFETY: By the safety requirements.
    unsafe {
        (*entry.cast::<Entry>()).next.set(*found);
        *found = entry.cast::<Entry>();
    }
    0
}

/// Shuts the registrations of a device down, for [`Driver::shutdown`] of its bus.
///
/// [`Driver::shutdown`]: srctree/include/linux/device/driver.h
pub(crate) fn shutdown_all(dev: &Device<CoreInternal<'_>>) {
    let mut next: *const Entry = ptr::null();

    // SAFETY: The device is valid. This calls `collect()` for each entry of ours, with a pointer to
    // `next`.
    unsafe {
        bindings::devres_find(
            dev.as_raw(),
            Some(RELEASE),
            Some(collect),
            (&raw mut next).cast(),
        )
    };
    // SAFETY: These are entries of the device. In this context no others are added, and none are
    // removed: the device is locked.
    while let Some(entry) = unsafe { next.as_ref() } {
        entry.registration.shutdown();
        next = entry.next.get();
    }
}
