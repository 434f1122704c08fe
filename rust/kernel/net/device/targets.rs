// SPDX-License-Identifier: GPL-2.0

//! The rings of a device for frames that XDP redirects to it, while it is up.
//!
//! Only `device::xdp` knows their type.

use crate::{
    prelude::*,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    }, //
};

use core::ptr::{
    self,
    NonNull, //
};

/// A ring that belongs to the NAPI instance of a vector.
#[derive(Clone, Copy)]
pub(super) struct Target(pub(super) NonNull<c_void>);

// SAFETY: Those who access it know its type, which is `Sync`.
unsafe impl Send for Target {}

// SAFETY: As for `Send`.
unsafe impl Sync for Target {}

/// The rings that frames can be redirected to, by the numbers of their vectors.
///
/// # Invariants
///
/// Each place is null, or has a ring that exists for as long as a section of RCU readers lasts that
/// has read it.
pub(super) struct Targets {
    places: KVVec<Atomic<*mut c_void>>,
    /// The number of those that are in use.
    count: Atomic<u32>,
}

impl Targets {
    /// None, of a device with so many vectors.
    pub(super) fn new(vectors: u16) -> Result<Self> {
        let mut places = KVVec::with_capacity(vectors.into(), GFP_KERNEL)?;

        for _ in 0..vectors {
            places.push(Atomic::new(ptr::null_mut()), GFP_KERNEL)?;
        }
        Ok(Self {
            places,
            count: Atomic::new(0),
        })
    }

    /// Lets rings be found.
    ///
    /// # Safety
    ///
    /// They must exist until a grace period has passed after [`Self::withdraw`].
    pub(super) unsafe fn publish(&self, targets: &[Target]) {
        let mut count = 0;

        for (place, target) in self.places.iter().zip(targets) {
            // INVARIANT: By the safety requirements.
            place.store(target.0.as_ptr(), Release);
            count += 1;
        }
        self.count.store(count, Release);
    }

    /// Lets none be found any more. Users may still have one until a grace period has passed.
    pub(super) fn withdraw(&self) {
        self.count.store(0, Relaxed);
        for place in &self.places {
            place.store(ptr::null_mut(), Relaxed);
        }
    }

    /// The number of rings.
    pub(super) fn count(&self) -> u32 {
        self.count.load(Acquire)
    }

    /// The ring of a vector, if there is one, for as long as this section of RCU readers lasts.
    #[inline(always)]
    pub(super) fn get(&self, vector: u16) -> Option<Target> {
        let place = self.places.get(usize::from(vector))?;

        NonNull::new(place.load(Acquire)).map(Target)
    }
}
