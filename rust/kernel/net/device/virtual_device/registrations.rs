// SPDX-License-Identifier: GPL-2.0

//! The registrations of virtual devices, which belong to modules.
//!
//! The stack calls a driver until its network device is unregistered. That has to happen before the
//! driver's code goes, and an object of its module has no such guarantee: safe code can forget it.
//! Hence the list in here owns the registrations, and a notifier ends those of a module that is
//! unloaded, or could not be initialised. That is after the module's last function has returned,
//! and before its memory is freed.

use crate::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        global_lock, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

#[cfg(CONFIG_MODULES)]
use crate::{
    bindings,
    types::Opaque, //
};

/// A registration, which ends when it is dropped.
struct Entry {
    id: u64,
    /// The address of the module; zero for code that is built in.
    module: usize,
    _registration: KBox<dyn Send>,
}

struct List {
    /// The oldest one first.
    entries: KVec<Entry>,
    /// That of the newest entry. Numbers are not used again.
    last_id: u64,
}

global_lock! {
    // SAFETY: `prepare()` initialises it once, before an entry is added. Other users have the
    // number of an entry, or are called by what `prepare()` registers.
    unsafe(uninit) static BY_MODULE: Mutex<List> = List {
        entries: KVec::new(),
        last_id: 0,
    };
}

/// Makes the list ready for use.
fn prepare() {
    const NEW: u32 = 0;
    const BEING_PREPARED: u32 = 1;
    const READY: u32 = 2;
    static STATE: Atomic<u32> = Atomic::new(NEW);

    if STATE.cmpxchg(NEW, BEING_PREPARED, Relaxed).is_ok() {
        // SAFETY: No other caller gets here.
        unsafe { BY_MODULE.init() };
        #[cfg(CONFIG_MODULES)]
        // SAFETY: The notifier is static, and is registered once: this does not fail.
        unsafe {
            bindings::register_module_notifier(NOTIFIER.as_raw())
        };
        STATE.store(READY, Release);
    }
    while STATE.load(Acquire) != READY {
        fsleep(Delta::from_millis(1));
    }
}

/// Lets `registration` end with the module, or by [`end`] with the number that this returns.
///
/// If this fails, it ends at once. Process context, without RTNL.
#[inline(never)]
pub(super) fn add(module: &ThisModule, registration: KBox<dyn Send>) -> Result<u64> {
    prepare();

    // In case of an error, it is unlocked before the registration is dropped.
    let mut list = BY_MODULE.lock();
    // The notifier takes entries after the state has changed, with the list locked.
    if is_going(module) {
        return Err(ENODEV);
    }
    list.entries.reserve(1, GFP_KERNEL)?;
    list.last_id += 1;

    let id = list.last_id;
    // There is room.
    let _ = list.entries.push_within_capacity(Entry {
        id,
        module: module.as_ptr().addr(),
        _registration: registration,
    });
    Ok(id)
}

/// Ends the registration of that number, if it has not ended yet.
///
/// Process context, without RTNL.
#[inline(never)]
pub(super) fn end(id: u64) {
    drop(take_last(|entry| entry.id == id));
}

/// Takes the newest of these entries. It is to be dropped when the list is not locked: its driver
/// may have other devices in its data.
fn take_last(is_wanted: impl Fn(&Entry) -> bool) -> Option<Entry> {
    let mut list = BY_MODULE.lock();
    let index = list.entries.iter().rposition(is_wanted)?;

    list.entries.remove(index).ok()
}

/// Whether a module is being unloaded, or could not be initialised.
fn is_going(module: &ThisModule) -> bool {
    let module = module.as_ptr();

    // SAFETY: A module that is not null has code that is running. Its state may change
    // concurrently, hence the volatile read, of an aligned word.
    #[cfg(CONFIG_MODULES)]
    return !module.is_null()
        && unsafe { (&raw const (*module).state).read_volatile() }
            == bindings::module_state_MODULE_STATE_GOING;
    #[cfg(not(CONFIG_MODULES))]
    return !module.is_null();
}

/// Ends the registrations that a module has left behind.
#[cfg(CONFIG_MODULES)]
#[repr(transparent)]
pub(super) struct Notifier(Opaque<bindings::notifier_block>);

// SAFETY: Only C accesses the contents, with locks of its own.
#[cfg(CONFIG_MODULES)]
unsafe impl Sync for Notifier {}

#[cfg(CONFIG_MODULES)]
pub(super) static NOTIFIER: Notifier = Notifier(Opaque::new(bindings::notifier_block {
    notifier_call: Some(Notifier::call),
    next: core::ptr::null_mut(),
    // Before others take away what belongs to the module.
    priority: c_int::MAX,
}));

#[cfg(CONFIG_MODULES)]
impl Notifier {
    pub(super) fn as_raw(&self) -> *mut bindings::notifier_block {
        self.0.get()
    }

    /// # Safety
    ///
    /// To be called by the notifiers of modules, with the new state of `module`.
    unsafe extern "C" fn call(
        _notifier: *mut bindings::notifier_block,
        state: c_ulong,
        module: *mut c_void,
    ) -> c_int {
        // CAST: This is how C passes it.
        if state == bindings::module_state_MODULE_STATE_GOING as c_ulong {
            while let Some(entry) = take_last(|entry| entry.module == module.addr()) {
                drop(entry);
            }
        }
        // CAST: It is zero.
        bindings::NOTIFY_DONE as c_int
    }
}
