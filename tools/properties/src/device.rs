// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::device`.

use std::marker::PhantomData;

/// A device that is bound to its driver.
pub(crate) struct Bound;

/// A device, of which nothing is asked.
pub(crate) struct Device<T>(PhantomData<T>);

impl<T> Device<T> {
    pub(crate) const fn new() -> Self {
        Self(PhantomData)
    }
}
