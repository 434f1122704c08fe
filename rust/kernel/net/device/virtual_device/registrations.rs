// SPDX-License-Identifier: GPL-2.0

//! The registrations of virtual devices, which belong to modules.
//!
//! The stack calls a driver until its network device is unregistered. That has to happen before the
//! driver's code goes, and an object of its module has no such guarantee: safe code can forget it.
//! Hence the list in here owns the registrations, and a notifier ends those of a module that is
//! unloaded, or could not be initialised. That is after the module's last function has returned,
//! and before its memory is freed.
//!
//! The list is not locked while a device is registered or unregistered. Both take RTNL and call the
//! driver, which may make or drop other devices meanwhile.

use crate::{
    bindings,
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
use crate::types::Opaque;

/// A network device, which is unregistered when this is dropped.
///
/// Until it was registered, it can be dropped without RTNL.
pub(in super::super) trait Registrable: Send {
    /// Registers it. Process context, without RTNL.
    fn register(&mut self) -> Result;
}

struct Entry {
    id: u64,
    /// The address of the module; zero for code that is built in.
    module: usize,
    /// [`None`] while it is being registered, or unregistered.
    device: Option<KBox<dyn Registrable>>,
}

struct List {
    /// The oldest one first. An entry is removed when its device is gone.
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

/// Registers `device`, until the module goes, or [`end`] is called with the number that this
/// returns.
///
/// Process context, without RTNL.
#[inline(never)]
pub(super) fn add(module: &ThisModule, mut device: KBox<dyn Registrable>) -> Result<u64> {
    prepare();

    let id = {
        let mut list = BY_MODULE.lock();
        // The notifier looks for entries after the state has changed, with the list locked.
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
            device: None,
        });
        id
    };
    let result = device.register().map(|()| id);

    if result.is_ok() {
        let mut list = BY_MODULE.lock();
        // Nothing else removes it.
        if let Some(entry) = list.entries.iter_mut().find(|entry| entry.id == id) {
            entry.device = Some(device);
        }
    } else {
        // The module's code is in use until then.
        drop(device);
        remove(id);
    }
    result
}

/// Unregisters the device of that number, unless its module has gone.
///
/// Process context, without RTNL.
#[inline(never)]
pub(super) fn end(id: u64) {
    end_newest(|entry| entry.id == id);
}

/// Unregisters the newest device of those that are wanted, as later ones may rely on it. Returns
/// whether there was one.
fn end_newest(is_wanted: impl Fn(&Entry) -> bool) -> bool {
    let newest = BY_MODULE.lock().entries.iter_mut().rev().find_map(|entry| {
        let device = is_wanted(entry).then(|| entry.device.take())??;
        Some((entry.id, device))
    });
    let Some((id, device)) = newest else {
        return false;
    };

    drop(device);
    remove(id);
    true
}

/// Removes the entry of a device that is gone.
fn remove(id: u64) {
    BY_MODULE.lock().entries.retain(|entry| entry.id != id);
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

/// Unregisters the devices that a module has left behind.
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
        let is_its = |entry: &Entry| entry.module == module.addr();

        // Not for others: RTNL's holder may wait for a module to be loaded, as `macsec` does for a
        // cipher.
        //
        // CAST: This is how C passes it.
        if state == bindings::module_state_MODULE_STATE_GOING as c_ulong {
            while BY_MODULE.lock().entries.iter().any(is_its) {
                // Another task may be about to unregister the last one.
                if !end_newest(is_its) {
                    fsleep(Delta::from_millis(1));
                }
            }
        }
        // CAST: It is zero.
        bindings::NOTIFY_DONE as c_int
    }
}
