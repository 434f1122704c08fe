// SPDX-License-Identifier: GPL-2.0

//! The combining list.

pub mod role;
pub mod word;

use crate::kernel::llist::Node;
use crate::sync::atomic::{Atomic, Full};
use role::Word;
use word::{Behind, RoleWord};

impl RoleWord {
    pub(crate) fn new() -> Self {
        Self(Atomic::new(Self::IDLE))
    }

    /// The compare-and-exchange of C code.
    pub(crate) fn replace_in_c(&self, old: *mut Node, new: *mut Node) -> Result<(), *mut Node> {
        self.0.cmpxchg(old, new, Full).map(|_| ())
    }
}

impl Behind {
    pub(crate) fn new() -> Self {
        Self(Atomic::new(0))
    }
}
