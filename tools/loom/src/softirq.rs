// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `crate::softirq` of the kernel's sources.

use std::marker::PhantomData;

/// Each thread of the model is the softirq of a CPU of its own.
#[derive(Clone, Copy)]
pub(crate) struct Softirq<'a>(PhantomData<&'a ()>);

impl Softirq<'_> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}
