// SPDX-License-Identifier: GPL-2.0

//! The clock of a NIC, which users can read and adjust.

use super::prelude::*;

use crate::{
    net::device::inner::Inner,
    ptp_clock::{
        PtpClock,
        ScaledPpm,
        SystemTimestamp, //
    },
    sync::rcu,
    time::Jiffies, //
};

/// A driver of a NIC with a clock, see [`OptionalOps::ptp_clock`].
///
/// The clock is there as long as the network device: it is registered before that, and ends after
/// it. Callbacks may come at any time and concurrently, whether the device is up or down, but not
/// while it is suspended, and [`Self::work`] only while it is registered. They are called with the
/// lock of RCU readers held, and must not sleep.
///
/// Times are in nanoseconds since the beginning of 1970, as a rule of international atomic time
/// (TAI): users set the clock.
pub trait PtpClockOps: Driver {
    /// The greatest offset from the nominal frequency, in parts per billion.
    const MAX_ADJ: i32;

    /// The clock, among the data of the driver.
    fn clock<'a>(data: &'a Self::Data<'_>) -> &'a PtpClock;

    /// Sets the offset from the nominal frequency.
    fn adjfine<'bound>(data: Pin<&Self::Data<'bound>>, offset: ScaledPpm) -> Result;

    /// Shifts the time by so many nanoseconds.
    fn adjtime<'bound>(data: Pin<&Self::Data<'bound>>, nanoseconds: i64) -> Result;

    /// Reads the time, with those of the system [around](SystemTimestamp::around) it.
    fn gettimex<'bound>(
        data: Pin<&Self::Data<'bound>>,
        system: &mut SystemTimestamp<'_>,
    ) -> Result<u64>;

    /// Sets the time.
    fn settime<'bound>(data: Pin<&Self::Data<'bound>>, nanoseconds: u64) -> Result;

    /// Does work: for the first time when the device has been registered, and whenever
    /// [`PtpClock::schedule_worker`] asks for it.
    ///
    /// Returns after how many jiffies to do so again, if at all. While the device is suspended, or
    /// not registered, it is not called, and is asked for a second later.
    fn work<'bound>(data: Pin<&Self::Data<'bound>>, dev: &Device) -> Option<Jiffies>;
}

impl<T: PtpClockOps> OptionalOps<T> {
    /// Adds the callbacks of [`PtpClockOps`].
    pub const fn ptp_clock(mut self) -> Self {
        self.register_clock = Some(Self::register_clock);
        self
    }

    const CLOCK: bindings::ptp_clock_info = bindings::ptp_clock_info {
        max_adj: T::MAX_ADJ,
        adjfine: Some(Self::clock_adjfine),
        adjtime: Some(Self::clock_adjtime),
        gettimex64: Some(Self::clock_gettimex),
        settime64: Some(Self::clock_settime),
        do_aux_work: Some(Self::clock_work),
        ..pin_init::zeroed()
    };

    /// Registers the clock of a device, and returns it.
    ///
    /// # Safety
    ///
    /// `dev` must be a device of driver `T`, about to be registered. Before the driver's data is
    /// dropped, the clock must be unregistered.
    unsafe fn register_clock(dev: &Device) -> Result<&'static PtpClock> {
        // SAFETY: By the safety requirements, the data exists as long as this reference is used.
        let inner: &'static Inner<T> = unsafe { ops::inner::<T>(dev.as_raw()) };
        let clock = T::clock(inner.data().get_ref());
        let parent = super::bus::Parent::as_device(inner.bus).ok_or(ENODEV)?;

        // SAFETY: The callbacks below take the owner for the device. The rest is required.
        unsafe { clock.register(&Self::CLOCK, parent, dev.as_raw().cast())? };
        Ok(clock)
    }

    /// Calls `f` for the device of a clock, if the NIC can be accessed.
    ///
    /// # Safety
    ///
    /// `info` must be the argument of one of the callbacks.
    unsafe fn with_clock<R>(
        info: *mut bindings::ptp_clock_info,
        f: impl FnOnce(Pin<&T::Data<'static>>, &Device) -> Result<R>,
    ) -> Result<R> {
        // SAFETY: By the safety requirements, the owner is a device of driver `T`, whose clock ends
        // before its private part does.
        let inner = unsafe { ops::inner::<T>(PtpClock::owner_of(info).cast()) };
        // Until this is unlocked, the device is not suspended if it is not by now.
        let _guard = rcu::read_lock();

        inner.check_reachable()?;
        f(inner.data(), inner.dev())
    }

    /// # Safety
    ///
    /// Must only be called by the core, for the clock of a device of driver `T`.
    unsafe extern "C" fn clock_adjfine(
        info: *mut bindings::ptp_clock_info,
        scaled_ppm: c_long,
    ) -> c_int {
        from_result(|| {
            let offset = ScaledPpm::from_raw(scaled_ppm)?;

            // SAFETY: By the safety requirements.
            unsafe { Self::with_clock(info, |data, _| T::adjfine(data, offset)) }.map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// Must only be called by the core, for the clock of a device of driver `T`.
    unsafe extern "C" fn clock_adjtime(info: *mut bindings::ptp_clock_info, delta: i64) -> c_int {
        from_result(|| {
            // SAFETY: By the safety requirements.
            unsafe { Self::with_clock(info, |data, _| T::adjtime(data, delta)) }.map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// Must only be called by the core, for the clock of a device of driver `T`. `time` must be
    /// valid for writing, and `system` as well, or null.
    unsafe extern "C" fn clock_gettimex(
        info: *mut bindings::ptp_clock_info,
        time: *mut bindings::timespec64,
        system: *mut bindings::ptp_system_timestamp,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the safety requirements.
            let mut system = unsafe { SystemTimestamp::from_raw(system) };
            // SAFETY: As above.
            let now = unsafe { Self::with_clock(info, |data, _| T::gettimex(data, &mut system))? };

            // SAFETY: As above. The conversion has no requirements.
            //
            // CAST: C has the same range, with a sign, until the year 2262.
            unsafe { *time = bindings::ns_to_timespec64(now as i64) };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Must only be called by the core, for the clock of a device of driver `T`, with a valid
    /// `time`.
    unsafe extern "C" fn clock_settime(
        info: *mut bindings::ptp_clock_info,
        time: *const bindings::timespec64,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the safety requirements.
            //
            // CAST: The core refuses times before 1970.
            let nanoseconds = unsafe { bindings::timespec64_to_ns(time) } as u64;

            // SAFETY: As above.
            unsafe { Self::with_clock(info, |data, _| T::settime(data, nanoseconds)) }.map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// Must only be called by the core, for the clock of a device of driver `T`.
    unsafe extern "C" fn clock_work(info: *mut bindings::ptp_clock_info) -> c_long {
        let work = |data: Pin<&T::Data<'static>>, dev: &Device| {
            // Later, nobody waits for references, as the core takes one if the carrier changes.
            if !is_registered(dev) {
                return Err(ENODEV);
            }
            Ok(T::work(data, dev))
        };

        // SAFETY: By the safety requirements.
        match unsafe { Self::with_clock(info, work) } {
            // CAST: C has a sign here, and so long a time has none.
            Ok(Some(delay)) => delay.min(c_long::MAX as Jiffies) as c_long,
            Ok(None) => -1,
            Err(_) => crate::time::msecs_to_jiffies(1_000) as c_long,
        }
    }
}

/// Whether a device is registered. If so, it is not freed before the end of those references that
/// are taken in this section of RCU readers: unregistering it waits for both.
fn is_registered(dev: &Device) -> bool {
    // SAFETY: The device is valid. The state may change concurrently, hence the volatile read, of a
    // byte.
    let state = unsafe { (&raw const (*dev.as_raw()).reg_state).read_volatile() };

    u32::from(state) == bindings::netdev_reg_state_NETREG_REGISTERED
}
