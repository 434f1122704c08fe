// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::sync`.

use crate::prelude::{Flags, Result};

/// A reference, whose object has one place.
pub(crate) struct Arc<T>(pub(crate) Box<T>);

impl<T> Arc<T> {
    pub(crate) fn new(value: T, _: Flags) -> Result<Self> {
        Ok(Self(Box::new(value)))
    }
}
