// SPDX-License-Identifier: GPL-2.0

//! The medium of a port.

use kernel::{
    fmt,
    prelude::*, //
};

use crate::regs::medium::*;

/// Value of [`AUTOC2`]'s physical layer for 10 Gb/s over one lane: SFI.
pub(crate) const SFI: u32 = 2;

/// The medium of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    /// A cage for SFP+ modules, behind a serial interface.
    SfpPlus,
    /// A backplane or on-board connection, configured by the EEPROM.
    Backplane,
}

impl Media {
    /// Returns the medium of a NIC by the mode of the link that its EEPROM has chosen.
    pub(crate) fn of(autoc: AUTOC, autoc2: AUTOC2) -> Self {
        let is_serial = autoc.lms().get() == link_mode::SERIAL_10G;

        // Modules are connected by SFI, serial backplanes by KR.
        if is_serial && autoc2.pma_pmd_10g_serial().get() == SFI {
            Self::SfpPlus
        } else {
            Self::Backplane
        }
    }
}

impl fmt::Display for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SfpPlus => "a cage for SFP+ modules",
            Self::Backplane => "a backplane",
        })
    }
}

#[kunit_tests(ixgbe_rust_link)]
mod tests {
    use super::*;

    #[test]
    fn media_by_the_mode_of_the_link() {
        let media =
            |lms: u32, serial: u32| Media::of(AUTOC::from(lms << 13), AUTOC2::from(serial << 16));

        assert_eq!(media(3, 2), Media::SfpPlus);
        // KR without negotiation, and the modes with it.
        assert_eq!(media(3, 0), Media::Backplane);
        for lms in [1, 4, 6] {
            assert_eq!(media(lms, 2), Media::Backplane);
        }
    }
}
