// SPDX-License-Identifier: GPL-2.0

//! Objects of NAPI instances to which drivers have handles.

use super::{
    Attached,
    Napi, //
};

use crate::{
    prelude::*,
    sync::{
        aref::{
            ARef,
            AlwaysRefCounted, //
        },
        atomic::Acquire,
        Arc,
        Refcount, //
    }, //
};

use core::{
    ops::Deref,
    ptr::NonNull, //
};

/// A value that belongs to a NAPI instance, and then to the [`Orphans`] of the device. References
/// are handles of drivers, and do not own it.
///
/// [`Orphans`]: super::Orphans
pub(crate) struct NapiOwned<T> {
    value: T,
    /// The number of references, plus one.
    references: Refcount,
}

// SAFETY: As long as there is a reference, the object is in use, see below: it stays attached. All
// instances are part of a reference counted object, and count references.
unsafe impl<T> AlwaysRefCounted for NapiOwned<T> {
    fn inc_ref(&self) {
        self.references.inc();
    }

    // To drop the last reference frees nothing: that may be in any context.
    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: By the safety requirements, there is a reference, so the object is valid.
        unsafe { obj.as_ref() }.references.dec();
    }
}

impl<T: Send + Sync> Attached for NapiOwned<T> {
    fn is_in_use(&self) -> bool {
        // Not by its sign: a counter that is saturated is negative. Pairs with the release of a
        // reference.
        self.references.as_atomic().load(Acquire) != 1
    }
}

impl<T: Send + Sync + 'static> NapiOwned<T> {
    /// Has an instance take over a value. Returns a reference to it.
    pub(crate) fn attach(napi: &Napi, value: T) -> Result<ARef<Self>> {
        let this = Self {
            value,
            references: Refcount::new(1),
        };
        let this = Arc::new(this, GFP_KERNEL)?;

        // First, since a reference does not own it.
        napi.attach(this.clone())?;
        Ok((&*this).into())
    }
}

impl<T> Deref for NapiOwned<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.value
    }
}
