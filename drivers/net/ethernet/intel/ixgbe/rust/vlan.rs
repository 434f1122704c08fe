// SPDX-License-Identifier: GPL-2.0

//! The filter for VLANs (datasheet 7.1.1.2).

use kernel::{
    io::register::Array,
    prelude::*, //
};

use crate::{
    mmio::Bar0,
    regs::*, //
};

/// Number of words of the filter: a bit for each VLAN.
const WORDS: usize = 4096 / 32;

/// The "VLAN" of frames with a priority, but without a VLAN. The stack takes them as it takes
/// frames without a tag, but asks for them only if its VLAN module is there.
const PRIORITY_ONLY: u16 = 0;

/// The VLANs whose frames are received. [`PRIORITY_ONLY`] always is one.
pub(crate) struct Members {
    words: [u32; WORDS],
}

impl Members {
    /// No VLAN.
    pub(crate) fn new() -> Self {
        let mut words = [0; WORDS];

        words[usize::from(PRIORITY_ONLY / 32)] = 1 << (PRIORITY_ONLY % 32);
        Self { words }
    }

    /// Adds a VLAN or removes it. Returns the number of the word that changes.
    fn change(&mut self, id: u16, member: bool) -> Result<usize> {
        let index = usize::from(id / 32);
        let word = self.words.get_mut(index).ok_or(EINVAL)?;
        let bit = 1 << (id % 32);

        *word = if member || id == PRIORITY_ONLY {
            *word | bit
        } else {
            *word & !bit
        };
        Ok(index)
    }

    /// Adds a VLAN or removes it; in the NIC, too, if that is running.
    pub(crate) fn set(&mut self, id: u16, member: bool, bar: Option<&Bar0<'_>>) -> Result {
        let index = self.change(id, member)?;

        if let Some(bar) = bar {
            self.write(bar, index);
        }
        Ok(())
    }

    fn write(&self, bar: &Bar0<'_>, index: usize) {
        if let (Some(word), Some(vfta)) = (self.words.get(index), VFTA::try_at(index)) {
            bar.write(vfta, (*word).into());
        }
    }

    /// Passes all to the NIC.
    pub(crate) fn apply(&self, bar: &Bar0<'_>) {
        for index in 0..WORDS {
            self.write(bar, index);
        }
    }
}

/// Turns the filter on, unless the port is promiscuous: then it receives the frames of all VLANs.
pub(crate) fn filter(bar: &Bar0<'_>, on: bool) -> Result {
    let promiscuous = bar.try_read(FCTRL)?.upe();

    bar.update(VLNCTRL, |r| r.with_vfe(on && !promiscuous))
}

#[kunit_tests(ixgbe_rust_vlan)]
mod tests {
    use super::*;

    #[test]
    fn members_are_bits() {
        let mut members = Members::new();

        assert_eq!(members.change(0, true), Ok(0));
        assert_eq!(members.change(33, true), Ok(1));
        assert_eq!(members.change(35, true), Ok(1));
        assert_eq!(members.change(4095, true), Ok(127));
        assert_eq!(members.change(4096, true), Err(EINVAL));
        assert_eq!((members.words[0], members.words[1]), (1, 0b1010));
        assert_eq!(members.words[127], 1 << 31);
        assert_eq!(members.change(33, false), Ok(1));
        assert_eq!(members.words[1], 0b1000);
    }

    #[test]
    fn frames_without_a_vlan_are_received_in_any_case() {
        let mut members = Members::new();

        assert_eq!(members.words[0], 1);
        assert_eq!(members.change(0, false), Ok(0));
        assert_eq!(members.words[0], 1);
    }
}
