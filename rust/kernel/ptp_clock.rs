// SPDX-License-Identifier: GPL-2.0

//! Clocks of hardware that users can read and adjust (PTP hardware clocks).
//!
//! C header: [`include/linux/ptp_clock_kernel.h`](srctree/include/linux/ptp_clock_kernel.h)
//!
//! A driver implements the callbacks as a capability of the device that has the clock, see
//! [`net::device::ptp_clock`](crate::net::device::ptp_clock). This has what they use.

use crate::{
    bindings,
    device,
    error::from_err_ptr,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        rcu, //
    },
    time::Jiffies,
    types::Opaque, //
};

use core::{
    marker::PhantomData,
    ptr, //
};

/// The offset of a clock from its nominal frequency, in parts per million with 16 bits of
/// fractions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScaledPpm(c_long);

impl ScaledPpm {
    /// The nominal frequency.
    pub const ZERO: Self = Self(0);

    /// From its C form. [`ERANGE`] if no frequency is that far away.
    pub fn from_raw(scaled_ppm: c_long) -> Result<Self> {
        // Twice the frequency, and none: more than a `c_long` of 32 bits has.
        const MAX: i64 = 1_000_000 << 16;

        // CAST: It has at most so many bits.
        if (-MAX..=MAX).contains(&(scaled_ppm as i64)) {
            Ok(Self(scaled_ppm))
        } else {
            Err(ERANGE)
        }
    }

    /// Returns `base`, which makes the nominal frequency, with the offset.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::ptp_clock::ScaledPpm;
    ///
    /// let faster = ScaledPpm::from_raw(100 << 16)?;
    /// assert_eq!(faster.adjust(1_000_000), 1_000_100);
    /// let slower = ScaledPpm::from_raw(-(100 << 16))?;
    /// assert_eq!(slower.adjust(1_000_000), 999_900);
    /// # #[cfg(CONFIG_64BIT)]
    /// assert_eq!(ScaledPpm::from_raw(i64::MIN as _), Err(ERANGE));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn adjust(self, base: u32) -> u64 {
        // SAFETY: This has no requirements. By the range, nothing overflows.
        unsafe { bindings::adjust_by_scaled_ppm(base.into(), self.0) }
    }
}

/// The times of the system before and after a clock is read, if someone wants to know them.
///
/// # Invariants
///
/// It is null, or valid for writing during `'a`.
pub struct SystemTimestamp<'a>(*mut bindings::ptp_system_timestamp, PhantomData<&'a mut ()>);

impl SystemTimestamp<'_> {
    /// No one wants to know them.
    pub const fn none() -> Self {
        // INVARIANT: It is null.
        Self(ptr::null_mut(), PhantomData)
    }

    /// # Safety
    ///
    /// `raw` must be null, or valid for writing as long as the result exists.
    pub(crate) unsafe fn from_raw(raw: *mut bindings::ptp_system_timestamp) -> Self {
        if !raw.is_null() {
            // C leaves this to whoever reads the clock, and gives users what is there.
            //
            // SAFETY: By the safety requirements.
            unsafe {
                (*raw).pre_sts.valid = 0;
                (*raw).post_sts.valid = 0;
            }
        }
        // INVARIANT: By the safety requirements.
        Self(raw, PhantomData)
    }

    /// Takes both times around the read of the register that decides, which should be all that
    /// `read` does.
    #[inline(always)]
    pub fn around<R>(&mut self, read: impl FnOnce() -> R) -> R {
        // SAFETY: By the type invariants. C checks for null.
        unsafe { bindings::ptp_read_system_prets(self.0) };
        let result = read();
        // SAFETY: As above.
        unsafe { bindings::ptp_read_system_postts(self.0) };
        result
    }
}

/// A clock, which belongs to the data of a driver.
///
/// It is registered together with the device that has it. Without `CONFIG_PTP_1588_CLOCK`, or if
/// that is a module, users do not see it, and the driver need not know.
///
/// # Invariants
///
/// - If `owner` is not null, the clock is registered, or is being registered or unregistered, for
///   the device at that address.
/// - `clock` is null, or the registered clock. From the time at which it becomes null, that stays
///   for a grace period of RCU, as does `info`, which is written while `clock` is null.
pub struct PtpClock {
    info: Opaque<bindings::ptp_clock_info>,
    owner: Atomic<*mut c_void>,
    clock: Atomic<*mut bindings::ptp_clock>,
}

// SAFETY: `owner` and `clock` are atomic pointers, to what any thread may use: an address alone,
// and an object of the core. `info` has no ties to a thread.
unsafe impl Send for PtpClock {}

// SAFETY: As above. Only whoever has made itself the `owner` writes `info`, while `clock` is null
// and before the core sees it; after that it is only read.
unsafe impl Sync for PtpClock {}

impl Default for PtpClock {
    fn default() -> Self {
        Self::new()
    }
}

impl PtpClock {
    /// A clock that is not registered.
    pub const fn new() -> Self {
        // INVARIANT: It is not registered.
        Self {
            info: Opaque::zeroed(),
            owner: Atomic::new(ptr::null_mut()),
            clock: Atomic::new(ptr::null_mut()),
        }
    }

    /// Returns the number of the clock, by which users find it, if it is registered.
    pub fn index(&self) -> Option<u32> {
        let _guard = rcu::read_lock();
        let clock = self.clock.load(Acquire);

        if clock.is_null() {
            return None;
        }
        // SAFETY: By the type invariants, it is registered until this is unlocked.
        u32::try_from(unsafe { bindings::ptp_clock_index_builtin(clock) }).ok()
    }

    /// Has the work of the clock done in a while, or sooner if that was to be later. If the clock
    /// is not registered, nothing happens. Any context.
    pub fn schedule_worker(&self, delay: Jiffies) {
        let _guard = rcu::read_lock();
        let clock = self.clock.load(Acquire);

        // SAFETY: By the type invariants, nothing writes it until this is unlocked.
        if !clock.is_null() && unsafe { (*self.info.get()).do_aux_work.is_some() } {
            // SAFETY: By the type invariants, the clock is registered; and it has a worker.
            unsafe { bindings::ptp_schedule_worker_builtin(clock, delay) };
        }
    }

    /// Registers the clock with the callbacks of `template`. Its name is that of `parent`.
    ///
    /// [`EBUSY`] if it is registered already.
    ///
    /// # Safety
    ///
    /// - The callbacks must be ones for the clock of `owner`, an address that no other device has
    ///   meanwhile.
    /// - It must be unregistered before it is moved or dropped, and before `owner` goes away.
    pub(crate) unsafe fn register(
        &self,
        template: &bindings::ptp_clock_info,
        parent: &device::Device,
        owner: *mut c_void,
    ) -> Result {
        // INVARIANT: It is being registered.
        self.owner
            .cmpxchg(ptr::null_mut(), owner, Acquire)
            .map_err(|_| EBUSY)?;

        let mut info = *template;
        let name = parent.name().to_bytes();
        for (to, from) in info.name.iter_mut().rev().skip(1).rev().zip(name) {
            // CAST: C has signed characters or not.
            *to = *from as c_char;
        }
        // SAFETY: As the owner, we are the only one that accesses it.
        unsafe { self.info.get().write(info) };
        // SAFETY: Both are valid, and the former as long as the clock is registered.
        let clock = from_err_ptr(unsafe {
            bindings::ptp_clock_register_builtin(self.info.get(), parent.as_raw())
        });
        match clock {
            Ok(clock) => {
                // INVARIANT: It is the registered clock, or there are none.
                self.clock.store(clock, Release);
                Ok(())
            }
            Err(error) => {
                self.owner.store(ptr::null_mut(), Release);
                Err(error)
            }
        }
    }

    /// Unregisters the clock, and waits for its callbacks. If it is not registered for `owner`,
    /// nothing happens. Process context.
    pub(crate) fn unregister(&self, owner: *mut c_void) {
        if self.owner.load(Acquire) != owner {
            return;
        }
        let clock = self.clock.load(Acquire);
        if !clock.is_null() {
            // INVARIANT: It goes after a grace period.
            self.clock.store(ptr::null_mut(), Release);
            rcu::synchronize_rcu();
            // SAFETY: By the type invariants, the clock was registered. Only its owner comes here.
            unsafe { bindings::ptp_clock_unregister_builtin(clock) };
        }
        // INVARIANT: It is not registered any more.
        self.owner.store(ptr::null_mut(), Release);
    }

    /// The callbacks, as the core has them.
    #[cfg(CONFIG_KUNIT)]
    pub(crate) fn info(&self) -> *mut bindings::ptp_clock_info {
        self.info.get()
    }

    /// The owner of a clock, from a callback.
    ///
    /// # Safety
    ///
    /// `info` must be the argument of a callback of a registered clock.
    pub(crate) unsafe fn owner_of(info: *mut bindings::ptp_clock_info) -> *mut c_void {
        let info = Opaque::cast_from(info.cast_const());
        // SAFETY: By the safety requirements, it is in a clock.
        let clock = unsafe { &*crate::container_of!(info, Self, info) };

        clock.owner.load(Relaxed)
    }
}

#[cfg(CONFIG_PTP_1588_CLOCK = "y")]
#[macros::kunit_tests(rust_ptp_clock)]
mod tests {
    use super::*;

    use crate::faux;

    /// # Safety
    ///
    /// To be called by the core.
    unsafe extern "C" fn settime(
        _info: *mut bindings::ptp_clock_info,
        _time: *const bindings::timespec64,
    ) -> c_int {
        0
    }

    /// # Safety
    ///
    /// To be called by the core.
    unsafe extern "C" fn gettimex(
        _info: *mut bindings::ptp_clock_info,
        _time: *mut bindings::timespec64,
        _sts: *mut bindings::ptp_system_timestamp,
    ) -> c_int {
        0
    }

    /// # Safety
    ///
    /// To be called by the core, for a clock whose owner is a counter.
    unsafe extern "C" fn work(info: *mut bindings::ptp_clock_info) -> c_long {
        // SAFETY: By the safety requirements.
        let count = unsafe { &*PtpClock::owner_of(info).cast_const().cast::<Atomic<u32>>() };

        count.fetch_add(1, Relaxed);
        -1
    }

    fn template() -> bindings::ptp_clock_info {
        bindings::ptp_clock_info {
            settime64: Some(settime),
            gettimex64: Some(gettimex),
            do_aux_work: Some(work),
            ..pin_init::zeroed()
        }
    }

    fn device_of(parent: &faux::Registration) -> &device::Device {
        let parent: &faux::Device<device::Bound> = parent.as_ref();

        parent.as_ref()
    }

    #[test]
    fn a_clock_has_one_owner() -> Result {
        let parent = faux::Registration::new(c"rust_ptp_clock", None)?;
        let clock = PtpClock::new();
        let (runs, other) = (Atomic::<u32>::new(0), 0_u8);
        let owner = ptr::from_ref(&runs).cast_mut().cast();
        let other = ptr::from_ref(&other).cast_mut().cast();

        assert_eq!(clock.index(), None);
        clock.schedule_worker(0);
        // SAFETY: The clock is unregistered below, and the callbacks know their owner.
        let register = |owner| unsafe { clock.register(&template(), device_of(&parent), owner) };
        register(owner)?;
        assert!(clock.index().is_some());
        assert_eq!(register(other), Err(EBUSY));
        clock.unregister(other);
        assert!(clock.index().is_some());
        // SAFETY: It was written when the clock was registered.
        let name = unsafe { CStr::from_char_ptr((&raw const (*clock.info.get()).name).cast()) };
        assert_eq!(name, device_of(&parent).name());
        clock.unregister(owner);
        assert_eq!(clock.index(), None);

        // It can be registered again.
        register(owner)?;
        clock.unregister(owner);
        Ok(())
    }

    #[test]
    fn the_work_is_done_on_request() -> Result {
        let parent = faux::Registration::new(c"rust_ptp_clock", None)?;
        let clock = PtpClock::new();
        let runs = Atomic::<u32>::new(0);
        let owner = ptr::from_ref(&runs).cast_mut().cast();
        let ran = |times| {
            for _ in 0..1_000 {
                if runs.load(Relaxed) >= times {
                    return true;
                }
                crate::time::delay::fsleep(crate::time::Delta::from_millis(1));
            }
            false
        };

        // SAFETY: As above.
        unsafe { clock.register(&template(), device_of(&parent), owner)? };
        clock.schedule_worker(0);
        let first = ran(1);
        clock.schedule_worker(0);
        let second = ran(2);
        clock.unregister(owner);
        let last = runs.load(Relaxed);
        clock.schedule_worker(0);
        assert!(first && second);
        assert_eq!(runs.load(Relaxed), last);
        Ok(())
    }

    #[cfg(CONFIG_64BIT)]
    #[test]
    fn frequencies_have_a_range() {
        assert_eq!(
            ScaledPpm::from_raw(1_000_000 << 16).map(|ppm| ppm.adjust(7)),
            Ok(14)
        );
        assert_eq!(
            ScaledPpm::from_raw(-(1_000_000 << 16)).map(|ppm| ppm.adjust(7)),
            Ok(0)
        );
        assert!(ScaledPpm::from_raw((1_000_000 << 16) + 1).is_err());
        assert_eq!(ScaledPpm::ZERO.adjust(7), 7);
    }
}
