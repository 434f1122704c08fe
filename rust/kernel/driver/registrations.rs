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
//! 2. The registrations end, the newest first. When all have, they are dropped in the same order:
//!    what one of them does to the device as a whole, such as a reset, disturbs no other.
//! 3. The bus lets go of the device: it may lose its power, and others may get its DMA.
//! 4. The driver's private data is dropped.
//! 5. Resources are released ([`Devres`], [`devres::register`]), the newest first.
//!
//! To add a registration takes a reference to a device in the context [`Core`]. A driver has it in
//! the callbacks of its bus only, and cannot keep it: from step 2 on, code of the driver runs, but
//! it cannot add a registration that would then be left behind.
//!
//! # Sleep, resets and errors
//!
//! A device that stays bound can be away nevertheless: the system sleeps, the device is being
//! reset, or its bus has reported an error. Meanwhile its registrations are suspended, see
//! [`Registration::suspend`]: the driver has no callbacks that access the device. There can be
//! several reasons at a time, see [`Suspension`]; a registration is suspended with the first one,
//! and resumed when the last one has gone.
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
    do_once_lite,
    prelude::*,
    warn_on, //
};

use core::{
    cell::Cell,
    iter,
    mem::ManuallyDrop,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// The reason for which the registrations of a device are suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspension {
    /// The system goes to sleep.
    Sleep,
    /// The device is about to be reset.
    Reset,
    /// The device or its bus has reported an error, and the device will be reset.
    Error,
    /// The same, and the device must not be accessed until then.
    Failure,
}

impl Suspension {
    /// Whether the device can still be accessed while it is being suspended.
    pub const fn is_reachable(self) -> bool {
        !matches!(self, Self::Failure)
    }

    /// Whether the device can stay in use, if its driver cannot suspend it.
    pub const fn is_refusable(self) -> bool {
        matches!(self, Self::Sleep)
    }

    /// An error is one reason, which can become worse.
    const fn bit(self) -> u8 {
        match self {
            Self::Sleep => 1 << 0,
            Self::Reset => 1 << 1,
            Self::Error | Self::Failure => 1 << 2,
        }
    }
}

/// The reason for which the registrations of a device are shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// The machine goes off.
    PowerOff,
    /// It halts or starts again, or another kernel does.
    Restart,
}

impl Shutdown {
    /// That of the shutdown which is under way.
    pub(crate) fn current() -> Self {
        // SAFETY: It was set before devices are shut down.
        let state = unsafe { (&raw const bindings::system_state).read_volatile() };

        if state == bindings::system_states_SYSTEM_POWER_OFF {
            Self::PowerOff
        } else {
            Self::Restart
        }
    }
}

/// A registration with a subsystem, on behalf of a driver that is bound to a device.
///
/// When it is dropped, the registration ends, unless it has. The other functions are called in
/// process context, with the device locked.
pub trait Registration: Send + 'static {
    /// Ends the registration: waits for callbacks that run, and there are none after that.
    ///
    /// Others may still use the device. It is dropped when none does.
    fn end(&self);

    /// Quiets the device down, since the system goes down or starts another kernel.
    ///
    /// Returns whether the device is ready to wake the machine, if that goes off.
    fn shutdown(&self, why: Shutdown) -> bool {
        let _ = why;
        false
    }

    /// Quiets the device down, since it will lose its state: when this returns, nothing accesses it
    /// before it is resumed, or dropped.
    ///
    /// If this fails, the system does not go to sleep. For other reasons, the device is lost all
    /// the same, and the error is ignored.
    fn suspend(&self, why: Suspension) -> Result {
        let _ = why;
        Ok(())
    }

    /// Resets the device, which can be accessed again, while it is still suspended.
    fn reset(&self) -> Result {
        Ok(())
    }

    /// Undoes [`Self::suspend`]. The device has to be reset first if `is_reset` does not say that
    /// [`Self::reset`] has succeeded.
    fn resume(&self, is_reset: bool) -> Result {
        let _ = is_reset;
        Ok(())
    }
}

/// A registration, as an entry of the resources of a device.
///
/// They are a list that each device has. The entries are taken off it before the others. Their
/// cells are accessed with the device locked.
struct Entry {
    registration: KBox<dyn Registration>,
    /// The next entry of those that [`entries`] has found.
    next: Cell<*const Entry>,
    /// The reasons for which it is suspended: [`Suspension::bit`].
    reasons: Cell<u8>,
    /// It was reset since it is suspended.
    is_reset: Cell<bool>,
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

/// Has `register` register `registration`, which ends when `dev` is unbound from its driver.
///
/// If this fails, it is not registered: what has been in use does not end among others that are.
pub fn add<T: Registration>(
    dev: &Device<Core<'_>>,
    registration: T,
    register: impl FnOnce(&mut T) -> Result,
) -> Result {
    let mut registration = KBox::new(registration, GFP_KERNEL)?;
    let room = Room::new()?;

    register(&mut registration)?;
    room.fill(dev, registration);
    Ok(())
}

/// Room for an entry.
///
/// # Invariants
///
/// It is a resource of the size of an [`Entry`] that no device has.
struct Room(NonNull<c_void>);

impl Room {
    fn new() -> Result<Self> {
        const NAME: &CStr = c"driver::registrations";

        // SAFETY: This has no requirements. Nodes are numbers, and -1 is any node.
        let room = unsafe {
            bindings::__devres_alloc_node(
                Some(RELEASE),
                size_of::<Entry>(),
                GFP_KERNEL.as_raw(),
                -1,
                NAME.as_char_ptr(),
            )
        };
        // INVARIANT: It is new.
        NonNull::new(room).map(Self).ok_or(ENOMEM)
    }

    /// Not generic, so that this is not part of a driver's module.
    #[inline(never)]
    fn fill(self, dev: &Device<Core<'_>>, registration: KBox<dyn Registration>) {
        let entry = ManuallyDrop::new(self).0.as_ptr();

        // SAFETY: By the type invariants, and the allocation has an alignment that suits any type
        // of C. The device is valid. It is bound, or being bound: its driver's callback has lent it
        // to our caller. So it will be unbound, which releases the entry.
        unsafe {
            entry.cast::<Entry>().write(Entry {
                registration,
                next: Cell::new(ptr::null()),
                reasons: Cell::new(0),
                is_reset: Cell::new(false),
            });
            bindings::devres_add(dev.as_raw(), entry);
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: By the type invariants. This does not call `release()`.
        unsafe { bindings::devres_free(self.0.as_ptr()) };
    }
}

/// Ends all registrations of a device that is being unbound, the newest first, and drops them when
/// there are no callbacks any more.
///
/// A bus calls this in its callbacks, before it lets go of the device: when that is removed, after
/// the driver's callback, and when a probe has failed.
pub(crate) fn end_all(dev: &Device<CoreInternal<'_>>) {
    for entry in entries(dev, Order::NewestFirst) {
        entry.registration.end();
    }
    // SAFETY: The device is valid. This calls `release()` for an entry of ours, the newest one.
    while unsafe {
        bindings::devres_release(dev.as_raw(), Some(RELEASE), None, ptr::null_mut()) == 0
    } {}
}

/// Ends those that the bus has left behind.
pub(super) fn end_left(dev: &Device<CoreInternal<'_>>) {
    if entries(dev, Order::NewestFirst).next().is_some() {
        do_once_lite! { warn_on!(true); }
        end_all(dev);
    }
}

/// The order in which entries are visited.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    NewestFirst,
    OldestFirst,
}

/// The entries that were found.
struct Found {
    order: Order,
    first: *const Entry,
    last: *const Entry,
}

/// Puts an entry on a list of entries that were found, and goes on to search.
///
/// # Safety
///
/// To be called by the core for an [`Entry`], with a pointer to [`Found`], newest entry first.
unsafe extern "C" fn collect(
    _dev: *mut bindings::device,
    entry: *mut c_void,
    found: *mut c_void,
) -> c_int {
    let entry = entry.cast::<Entry>().cast_const();
    // SAFETY: By the safety requirements. No other reference is used meanwhile.
    let found = unsafe { &mut *found.cast::<Found>() };

    let before = match found.order {
        Order::NewestFirst => ptr::null(),
        Order::OldestFirst => found.first,
    };
    // SAFETY: By the safety requirements.
    unsafe { (*entry).next.set(before) };

    // SAFETY: The entries that were found before are still there.
    match unsafe { found.last.as_ref() } {
        Some(last) if found.order == Order::NewestFirst => {
            last.next.set(entry);
            found.last = entry;
        }
        Some(_) => found.first = entry,
        None => (found.first, found.last) = (entry, entry),
    }
    0
}

/// The entries of a device.
fn entries<'a>(
    dev: &'a Device<CoreInternal<'_>>,
    order: Order,
) -> impl Iterator<Item = &'a Entry> + 'a {
    let mut found = Found {
        order,
        first: ptr::null(),
        last: ptr::null(),
    };

    // SAFETY: The device is valid. This calls `collect()` for each entry of ours, the newest first,
    // with a pointer to `found`.
    unsafe {
        bindings::devres_find(
            dev.as_raw(),
            Some(RELEASE),
            Some(collect),
            (&raw mut found).cast(),
        )
    };
    // SAFETY: These are entries of the device. In this context none are removed: the device is
    // locked.
    iter::successors(unsafe { found.first.as_ref() }, |entry| unsafe {
        entry.next.get().as_ref()
    })
}

/// Shuts the registrations of a device down, for [`Driver::shutdown`] of its bus. Returns whether
/// one of them is ready to wake the machine: then the bus has to let it.
///
/// [`Driver::shutdown`]: srctree/include/linux/device/driver.h
pub(crate) fn shutdown_all(dev: &Device<CoreInternal<'_>>, why: Shutdown) -> bool {
    let mut wakes = false;

    for entry in entries(dev, Order::NewestFirst) {
        wakes |= entry.registration.shutdown(why);
    }
    wakes
}

/// Suspends the registrations of a device, the newest first.
///
/// If this fails, none is suspended for that reason.
pub fn suspend_all(dev: &Device<CoreInternal<'_>>, why: Suspension) -> Result {
    for entry in entries(dev, Order::NewestFirst) {
        if entry.reasons.get() == 0 {
            let suspended = entry.registration.suspend(why);

            if suspended.is_err() && why.is_refusable() {
                // Whether those can be resumed is reported by themselves.
                let _ = resume_all(dev, why);
                return suspended;
            }
        }
        entry.is_reset.set(false);
        entry.reasons.set(entry.reasons.get() | why.bit());
    }
    Ok(())
}

/// Resets the registrations that are suspended for this reason alone, the oldest first.
pub fn reset_all(dev: &Device<CoreInternal<'_>>, why: Suspension) -> Result {
    for entry in entries(dev, Order::OldestFirst) {
        if entry.reasons.get() == why.bit() {
            entry.registration.reset()?;
            entry.is_reset.set(true);
        }
    }
    Ok(())
}

/// Resumes the registrations that were suspended for this reason, the oldest first.
///
/// All of them are reset before, unless they have been since then: one that is resumed may use what
/// they share, which is not safe while another part of the device still has its old state. Those
/// that are suspended for another reason, too, stay so. Returns the first error.
pub fn resume_all(dev: &Device<CoreInternal<'_>>, why: Suspension) -> Result {
    let mut result = Ok(());

    for entry in entries(dev, Order::OldestFirst) {
        if entry.reasons.get() == why.bit() && !entry.is_reset.get() {
            // If this fails, it is tried again below, where the error is told.
            entry.is_reset.set(entry.registration.reset().is_ok());
        }
    }
    for entry in entries(dev, Order::OldestFirst) {
        let before = entry.reasons.get();
        let after = before & !why.bit();

        entry.reasons.set(after);
        if before != 0 && after == 0 {
            let resumed = entry.registration.resume(entry.is_reset.replace(false));

            result = result.and(resumed);
        }
    }
    result
}
