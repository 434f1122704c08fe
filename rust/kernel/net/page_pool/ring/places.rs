// SPDX-License-Identifier: GPL-2.0

//! Places for the buffers that a NIC has, in memory that the NAPI instance owns.

use crate::prelude::*;

use core::{
    cell::UnsafeCell,
    ptr::NonNull, //
};

/// Places for what a NIC has, which are used by their one user, or by who drops them.
pub(in crate::net) struct Places<T>(pub(in crate::net) UnsafeCell<KVVec<T>>);

// SAFETY: The one user of the places has its handle exclusively.
unsafe impl<T: Send> Sync for Places<T> {}

impl<T: Default> Places<T> {
    /// Allocates `len` places, which are empty.
    pub(in crate::net) fn new(len: usize) -> Result<Self> {
        let mut places = KVVec::with_capacity(len, GFP_KERNEL)?;

        for _ in 0..len {
            places.push(T::default(), GFP_KERNEL)?;
        }
        Ok(Self(UnsafeCell::new(places)))
    }

    /// A pointer to the first one, for their one user.
    pub(in crate::net) fn first(&self) -> Result<NonNull<T>> {
        // SAFETY: There is no user yet.
        NonNull::new(unsafe { (*self.0.get()).as_mut_ptr() }).ok_or(EINVAL)
    }
}
