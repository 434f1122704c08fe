// SPDX-License-Identifier: GPL-2.0

//! Statistics with names, for `ethtool -S`.

use crate::{
    bindings,
    fmt,
    str::NullTerminatedFormatter, //
};

use core::fmt::Write;

/// The room for a name, with the byte that ends it.
pub(super) const NAME_LEN: usize = bindings::ETH_GSTRING_LEN as usize;

/// Takes the statistics of a driver, see
/// [`Driver::ethtool_statistics`](super::Driver::ethtool_statistics).
pub struct Statistics<'a> {
    added: usize,
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

    /// The number of those that were added.
    pub(super) fn count(&self) -> usize {
        self.added
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
