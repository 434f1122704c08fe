// SPDX-License-Identifier: GPL-2.0

//! Dynamic interrupt moderation.
//!
//! A [`Dim`] measures what comes with the interrupts of a queue, and moves step by step through a
//! table of [`Moderation`]s to the one with the highest rate of bytes, packets and, if these stay
//! the same, with the fewest interrupts. The poll function of the queue calls [`Dim::update`]. A
//! driver applies the decisions in process context, see [`Moderate`].
//!
//! Everything that calls C is generic, and so becomes a part of the driver: the library may be a
//! module.
//!
//! C header: [`include/linux/dim.h`](srctree/include/linux/dim.h)

use super::napi::{
    Attached,
    Napi, //
};

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
        static_lock_class,
        Arc, //
    },
    time::{
        ClockSource,
        Monotonic, //
    },
    types::Opaque, //
};

#[cfg(CONFIG_DIMLIB = "y")]
mod tests;

/// The index of the profile with which a [`Dim`] begins.
const DEFAULT_INDEX: u8 = bindings::NET_DIM_DEF_PROFILE_CQE as u8;

const _: () = assert!((DEFAULT_INDEX as u32) < bindings::NET_DIM_PARAMS_NUM_PROFILES);

// CAST: Numbers of an enumeration, which C has in a `u8`.
/// The table of received packets whose times, up to 64 µs, begin with the last completion. Those
/// of the other one are up to 256 µs, in which frames of 600 bytes fill a ring of 512 descriptors
/// at 10 Gb/s.
const MODE: u8 = bindings::dim_cq_period_mode_DIM_CQ_PERIOD_MODE_START_FROM_CQE as u8;
const START_MEASURE: u8 = bindings::dim_state_DIM_START_MEASURE as u8;
const MEASURE_IN_PROGRESS: u8 = bindings::dim_state_DIM_MEASURE_IN_PROGRESS as u8;
const APPLY_NEW_PROFILE: u8 = bindings::dim_state_DIM_APPLY_NEW_PROFILE as u8;

/// The name of a lock class. lockdep compares names by address, so this cannot be a literal, of
/// which each driver would have its own.
static WORK: &CStr = c"net::Dim::work";

/// The limits of an interrupt: it comes when either is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moderation {
    /// The time after which it comes, in µs.
    pub usecs: u16,
    /// The number of packets after which it comes.
    pub pkts: u16,
}

impl Moderation {
    /// That with which a [`Dim`] begins.
    #[inline]
    pub fn default_of_dim() -> Self {
        // SAFETY: The index was checked above.
        unsafe { Self::profile(DEFAULT_INDEX) }
    }

    /// One of the table.
    ///
    /// # Safety
    ///
    /// `index` must be less than `NET_DIM_PARAMS_NUM_PROFILES`.
    #[inline]
    unsafe fn profile(index: u8) -> Self {
        // SAFETY: By the safety requirements, there is such a profile.
        let moder = unsafe { bindings::net_dim_get_rx_moderation(MODE, c_int::from(index)) };

        Self {
            usecs: moder.usec,
            pkts: moder.pkts,
        }
    }
}

/// Applies the decisions of a [`Dim`].
pub trait Moderate: Send + Sync + 'static {
    /// Applies a decision, or leaves it to the next poll.
    ///
    /// The effect is measured from the first [`Dim::update`] after this has returned. Process
    /// context, in a work item that is waited for when the queue vector goes away: this must not
    /// take a lock that is held then, as are RTNL and the instance lock.
    fn moderate(&self, moderation: Moderation);
}

/// The state that a [`Dim`] and its work item share.
///
/// # Invariants
///
/// - The `work` of `dim` is initialized, with [`run`](Self::run). It is scheduled by `net_dim()`
///   only, and is neither pending nor running when this is dropped: a [`WorkOwner`] has disabled it
///   before, or it was never scheduled.
/// - The rest of `dim` belongs to the holder of the [`Dim`]. While its state is `APPLY_NEW_PROFILE`
///   and `is_applied` is false, this only reads it, and the work item may, too.
/// - The profile of `dim` exists.
#[pin_data]
struct Inner<T: Moderate> {
    #[pin]
    dim: Opaque<bindings::dim>,
    /// The work item has applied the last decision.
    is_applied: Atomic<bool>,
    target: T,
}

// SAFETY: Any thread may use `dim`, one at a time, as the type invariants ensure.
unsafe impl<T: Moderate> Send for Inner<T> {}

// SAFETY: By the type invariants, references to it allow no access to `dim` but the work item's.
unsafe impl<T: Moderate> Sync for Inner<T> {}

impl<T: Moderate> Inner<T> {
    fn new(target: T) -> impl PinInit<Self> {
        // INVARIANT: `net_dim()` keeps the index in the table, where the default is.
        pin_init!(Self {
            dim <- Opaque::ffi_init(|dim: *mut bindings::dim| {
                // SAFETY: `dim` is valid for writing, and pinned. The key and the name are static.
                unsafe {
                    dim.write(bindings::dim {
                        profile_ix: DEFAULT_INDEX,
                        ..pin_init::zeroed()
                    });
                    bindings::init_work_with_key(
                        &raw mut (*dim).work,
                        Some(Self::run),
                        false,
                        WORK.as_char_ptr(),
                        static_lock_class!().as_ptr(),
                    );
                }
            }),
            is_applied: Atomic::new(false),
            target,
        })
    }

    /// The work item.
    ///
    /// # Safety
    ///
    /// `work` must be that of an [`Inner`], as which it must have been scheduled.
    unsafe extern "C" fn run(work: *mut bindings::work_struct) {
        // SAFETY: By the safety requirements.
        let dim = unsafe { crate::container_of!(work, bindings::dim, work) };
        let opaque = Opaque::cast_from(dim);
        // SAFETY: As above; its `WorkOwner` waits for us.
        let this = unsafe { &*crate::container_of!(opaque, Self, dim) };

        // SAFETY: By the type invariants, nothing writes to it meanwhile: we were scheduled with
        // the state that they name, and it is in the table.
        let moderation = unsafe { Moderation::profile((*dim).profile_ix) };

        this.target.moderate(moderation);
        this.is_applied.store(true, Release);
    }
}

/// Ends the work item of a [`Dim`] when the queue vector goes away, as only process context can.
struct WorkOwner<T: Moderate>(Arc<Inner<T>>);

impl<T: Moderate> Attached for WorkOwner<T> {
    fn is_dma_memory(&self) -> bool {
        false
    }
}

impl<T: Moderate> Drop for WorkOwner<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, the work is initialized. The NAPI instance drops its
        // objects in process context.
        unsafe { bindings::disable_work_sync(&raw mut (*self.0.dim.get()).work) };
    }
}

/// The moderation of the interrupts of a queue, which adapts to its load.
///
/// It belongs to the poll function of the queue: one, or two where the queues of a vector have
/// moderation of their own. It can be dropped in any context: its work item belongs to the NAPI
/// instance. When the queue vector goes away, that is waited for, and [`Moderate::moderate`] is not
/// called any more.
pub struct Dim<T: Moderate>(Arc<Inner<T>>);

impl<T: Moderate> Dim<T> {
    /// Begins with [`Moderation::default_of_dim`], which the caller applies.
    pub fn new(napi: &Napi, target: T) -> Result<Self> {
        let inner = Arc::pin_init(Inner::new(target), GFP_KERNEL)?;

        napi.attach(Arc::new(WorkOwner(inner.clone()), GFP_KERNEL)?)?;
        Ok(Self(inner))
    }

    /// The consumer of the decisions.
    #[inline]
    pub fn target(&self) -> &T {
        &self.0.target
    }

    /// Accounts what has come with interrupts, and decides on the moderation once in 64 of them.
    ///
    /// These are totals, which may wrap: of interrupts, see [`Poll::interrupts`], of packets and of
    /// bytes. To be called when all packets of an interrupt were handled, unless users have fixed
    /// the moderation. Without another interrupt, as in busy polling, nothing is decided. Any
    /// context but NMI.
    ///
    /// [`Poll::interrupts`]: super::napi::Poll::interrupts
    #[inline]
    pub fn update(&mut self, interrupts: u32, packets: u64, bytes: u64) {
        let dim = self.0.dim.get();
        // SAFETY: By the type invariants, we may read it.
        let (state, since) = unsafe { ((*dim).state, (*dim).start_sample.event_ctr) };
        // CAST: C has the low bits, and the differences only.
        let event_ctr = interrupts as u16;

        // Nothing is decided so soon, so the clock need not be read.
        if state == MEASURE_IN_PROGRESS
            && u32::from(event_ctr.wrapping_sub(since)) < bindings::DIM_NEVENTS
        {
            return;
        }
        self.measure(bindings::dim_sample {
            time: Monotonic::ktime_get(),
            // CAST: As above.
            pkt_ctr: packets as u32,
            byte_ctr: bytes as u32,
            event_ctr,
            comp_ctr: 0,
        });
    }

    #[inline(never)]
    fn measure(&mut self, sample: bindings::dim_sample) {
        let dim = self.0.dim.get();

        // SAFETY: By the type invariants, we may read it.
        if unsafe { (*dim).state } == APPLY_NEW_PROFILE {
            if !self.0.is_applied.load(Acquire) {
                return;
            }
            // SAFETY: By the type invariants, `dim` is ours again. `net_dim()` has not scheduled
            // the work since.
            unsafe { (*dim).state = START_MEASURE };
            self.0.is_applied.store(false, Relaxed);
        }
        // SAFETY: As above, and `dim` is initialized.
        unsafe { bindings::net_dim(dim, &sample) };
    }
}
