// SPDX-License-Identifier: GPL-2.0

//! The registrations of virtual devices, which belong to modules.
//!
//! The stack calls a driver until its network device is unregistered. That has to happen before the
//! driver's code goes, and an object of its module has no such guarantee: safe code can forget it.
//! Hence the list in here owns the registrations, and a notifier ends those of a module that is
//! unloaded, or could not be initialised. That is after the module's last function has returned,
//! and before its memory is freed.
//!
//! To register a device, or to unregister it, takes RTNL, and waits for callbacks. Safe code can
//! have a device made or dropped in any of them, with RTNL held or waited for. So both are left to
//! a work item, for which the notifier alone waits: before a module is in use, and before it goes.

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
    },
    types::Opaque, //
};

/// A network device, which is unregistered when this is dropped.
///
/// Until it was registered, it can be dropped without RTNL.
pub(super) trait Registrable: Send {
    /// Registers it. Process context, without RTNL.
    fn register(&mut self) -> Result;
}

struct Entry {
    id: u64,
    /// The address of the module; zero for code that is built in.
    module: usize,
    /// [`None`] while the work has it.
    device: Option<KBox<dyn Registrable>>,
    is_registered: bool,
    /// The device is to be unregistered, or not to be registered.
    has_ended: bool,
}

struct List {
    /// The oldest one first. Only the work removes entries, when their device is gone.
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
        // SAFETY: As above. The work is static, as are the key and the name.
        unsafe {
            bindings::init_work_with_key(
                WORK.as_raw(),
                Some(Work::run),
                false,
                WORK_NAME.as_char_ptr(),
                crate::static_lock_class!().as_ptr(),
            )
        };
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

/// Has `device` registered soon, until the module goes, or [`end`] is called with the number that
/// this returns.
///
/// Process context, also with RTNL.
#[inline(never)]
pub(super) fn add(module: &ThisModule, device: KBox<dyn Registrable>) -> Result<u64> {
    prepare();

    // In case of an error, it is unlocked before the device is dropped.
    let mut list = BY_MODULE.lock();
    // The notifier ends entries after the state has changed, with the list locked.
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
        device: Some(device),
        is_registered: false,
        has_ended: false,
    });
    WORK.queue();
    Ok(id)
}

/// Has the device of that number unregistered soon.
///
/// Process context, also with RTNL.
#[inline(never)]
pub(super) fn end(id: u64) {
    end_all(|entry| entry.id == id);
}

/// Has devices unregistered soon. Returns whether there are any, also if that has begun before.
fn end_all(is_wanted: impl Fn(&Entry) -> bool) -> bool {
    let mut list = BY_MODULE.lock();
    let mut any = false;

    for entry in list.entries.iter_mut().filter(|entry| is_wanted(entry)) {
        entry.has_ended = true;
        any = true;
    }
    if any {
        WORK.queue();
    }
    any
}

/// Takes the device of an entry for which there is something to do: the newest one of those that
/// have ended, as later devices may rely on earlier ones, else the oldest one of those that are
/// new. Returns its number, and whether it has ended.
fn take_next() -> Option<(u64, KBox<dyn Registrable>, bool)> {
    let mut list = BY_MODULE.lock();
    let entries = &mut list.entries;

    let ended = |entry: &Entry| entry.device.is_some() && entry.has_ended;
    let new = |entry: &Entry| entry.device.is_some() && !entry.is_registered;
    let index = match entries.iter().rposition(ended) {
        Some(index) => index,
        None => entries.iter().position(new)?,
    };
    let entry = entries.get_mut(index)?;
    Some((entry.id, entry.device.take()?, entry.has_ended))
}

/// Puts back a device that was registered, or removes the entry of one that is gone.
fn put_back(id: u64, device: Option<KBox<dyn Registrable>>) {
    let mut list = BY_MODULE.lock();
    let Some(index) = list.entries.iter().position(|entry| entry.id == id) else {
        return;
    };

    if device.is_none() {
        let _ = list.entries.remove(index);
    } else if let Some(entry) = list.entries.get_mut(index) {
        entry.device = device;
        entry.is_registered = true;
    }
}

/// The name of a lock class of lockdep.
static WORK_NAME: &CStr = c"net::device::VirtualDevice";

/// The work that registers and unregisters devices.
struct Work(Opaque<bindings::work_struct>);

// SAFETY: Only C accesses the contents, which takes care of concurrency itself.
unsafe impl Sync for Work {}

static WORK: Work = Work(Opaque::uninit());

impl Work {
    fn as_raw(&self) -> *mut bindings::work_struct {
        self.0.get()
    }

    /// Has it run after this. [`prepare`] was called.
    fn queue(&self) {
        // SAFETY: The work was initialised, and is static.
        unsafe {
            bindings::queue_work_on(
                bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int,
                bindings::system_dfl_wq,
                self.as_raw(),
            )
        };
    }

    /// # Safety
    ///
    /// To be called by the workqueue.
    unsafe extern "C" fn run(_work: *mut bindings::work_struct) {
        // The list is not locked meanwhile: a driver may make or drop other devices.
        while let Some((id, mut device, has_ended)) = take_next() {
            if has_ended {
                drop(device);
                put_back(id, None);
                continue;
            }
            match device.register() {
                Ok(()) => put_back(id, Some(device)),
                Err(error) => {
                    pr_err!("cannot register a virtual network device: {error:?}\n");
                    drop(device);
                    put_back(id, None);
                }
            }
        }
    }
}

/// Waits until all devices are registered or unregistered that were to be before. Process context,
/// without RTNL. [`prepare`] was called.
#[cfg(CONFIG_MODULES)]
pub(super) fn flush() {
    // SAFETY: The work was initialised, and is static.
    unsafe { bindings::flush_work(WORK.as_raw()) };
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

/// Waits until the devices of a module that is ready for use are registered, and until those are
/// unregistered that a module has left behind.
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
        // The work waits for RTNL, and its holder may wait for a module to be loaded, as `macsec`
        // does for a cipher. So those without virtual devices do not wait for the work.
        let must_wait = match c_uint::try_from(state) {
            Ok(bindings::module_state_MODULE_STATE_LIVE) => {
                BY_MODULE.lock().entries.iter().any(is_its)
            }
            Ok(bindings::module_state_MODULE_STATE_GOING) => end_all(is_its),
            _ => false,
        };

        if must_wait {
            flush();
        }
        // CAST: It is zero.
        bindings::NOTIFY_DONE as c_int
    }
}
