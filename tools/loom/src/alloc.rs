// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `crate::alloc` of the kernel's sources.

use crate::prelude::Result;
use crate::watch::Watched;
use std::ops::{BitOr, Deref};

/// How to allocate, which makes no difference here.
#[derive(Clone, Copy)]
pub(crate) struct Flags;

pub(crate) const __GFP_NOWARN: Flags = Flags;

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, _: Self) -> Self {
        self
    }
}

/// A vector whose memory is watched.
pub(crate) struct KVVec<T> {
    values: Vec<T>,
    _watched: Watched,
}

impl<T> KVVec<T> {
    pub(crate) fn with_capacity(capacity: usize, _: Flags) -> Result<Self> {
        let values = Vec::with_capacity(capacity);
        Ok(Self {
            _watched: Watched::new(values.as_ptr(), capacity),
            values,
        })
    }

    pub(crate) fn push(&mut self, value: T, _: Flags) -> Result {
        assert!(self.values.len() < self.values.capacity(), "it would move");
        self.values.push(value);
        Ok(())
    }
}

impl<T> Deref for KVVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values
    }
}
