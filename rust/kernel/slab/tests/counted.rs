// SPDX-License-Identifier: GPL-2.0

//! A value for the tests that counts drops.

use crate::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// A value that counts drops in a shared counter.
pub(super) struct Counted {
    pub(super) drops: Arc<Atomic<u32>>,
    pub(super) number: usize,
}

impl Counted {
    pub(super) fn new(drops: Arc<Atomic<u32>>, number: usize) -> Self {
        Self { drops, number }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.drops.add(1u32, Relaxed);
    }
}

pub(super) fn counter() -> Result<Arc<Atomic<u32>>> {
    Ok(Arc::new(Atomic::new(0), GFP_KERNEL)?)
}
