// SPDX-License-Identifier: GPL-2.0

//! Names that users see, of statistics and tests.

use crate::{
    bindings,
    fmt,
    prelude::*,
    str::NullTerminatedFormatter, //
};

use core::{
    fmt::Write,
    slice, //
};

/// The room for a name, with the byte that ends it.
const NAME_LEN: usize = bindings::ETH_GSTRING_LEN as usize;

/// A set of names.
#[derive(Clone, Copy)]
pub(in super::super) struct StringSet {
    /// Their number, or an error.
    ///
    /// Its safety requirement: the device is a registered one of the driver, and the lock of its
    /// operations is held.
    pub(super) count: unsafe fn(*mut bindings::net_device) -> c_int,
    /// Writes the names.
    ///
    /// Its safety requirement: as above, and there is room for as many of them as `count` has
    /// returned, zeroed.
    pub(super) names: unsafe fn(*mut bindings::net_device, *mut u8),
}

/// The sets of names of a driver, each at its number in `enum ethtool_stringset`.
pub(in super::super) type StringSets = [Option<StringSet>; 2];

/// Takes the statistics of a driver, see [`StatisticsOps`](super::statistics::StatisticsOps).
pub struct Statistics<'a> {
    /// The number of those that were added.
    pub(super) added: usize,
    pass: Pass<'a>,
}

/// The use of the statistics of a driver.
pub(super) enum Pass<'a> {
    /// To be counted.
    Count,
    /// Their names, to be filled in.
    Names(&'a mut [[u8; NAME_LEN]]),
    /// Their values, to be filled in.
    Values(&'a mut [u64]),
}

impl<'a> Statistics<'a> {
    /// Takes none so far.
    pub(super) fn new(pass: Pass<'a>) -> Self {
        Self { added: 0, pass }
    }

    /// Takes the names of `count` of them.
    ///
    /// # Safety
    ///
    /// `names` must be valid for reads and writes of that many names during the lifetime, and have
    /// no other users.
    pub(super) unsafe fn names(names: *mut u8, count: usize) -> Self {
        // SAFETY: By the safety requirements.
        let names = unsafe { slice::from_raw_parts_mut(names.cast::<[u8; NAME_LEN]>(), count) };

        Self::new(Pass::Names(names))
    }

    /// Adds a statistic with a name of up to 31 characters.
    pub fn add(&mut self, name: fmt::Arguments<'_>, value: u64) {
        let index = self.added;

        self.added += 1;
        match &mut self.pass {
            Pass::Count => (),
            // Statistics beyond those that were counted are ignored: the buffer ends there.
            Pass::Names(names) => {
                if let Some(mut buffer) = names
                    .get_mut(index)
                    .and_then(|name| NullTerminatedFormatter::new(name))
                {
                    // It is truncated if it does not fit.
                    let _ = buffer.write_fmt(name);
                }
            }
            Pass::Values(values) => {
                if let Some(slot) = values.get_mut(index) {
                    *slot = value;
                }
            }
        }
    }
}
