// SPDX-License-Identifier: GPL-2.0

//! SFP+ modules: their identification (SFF-8472), and the settings that the NIC needs for them.

use kernel::{
    fmt::{
        self,
        Write, //
    },
    prelude::*,
    time::{
        delay::sleep_at_least,
        Delta, //
    }, //
};

use crate::{
    eeprom::Reader,
    i2c::{
        self,
        Page,
        Transfer, //
    },
    mmio::{
        self,
        Bar0, //
    },
    regs::medium::*,
    semaphore::{
        self,
        Resource, //
    }, //
};

/// Bytes of the identification page that describe the kind of module, with their checksum.
const ID_LEN: usize = 64;

/// Offsets in the identification page, and values there.
mod id {
    use core::ops::Range;

    pub(super) const IDENTIFIER: usize = 0;
    pub(super) const SFP: u8 = 3;

    pub(super) const CODES_10G: usize = 3;
    pub(super) const SR: u8 = 1 << 4;
    pub(super) const LR: u8 = 1 << 5;
    pub(super) const ER: u8 = 1 << 7;

    pub(super) const CODES_1G: usize = 6;
    pub(super) const SX: u8 = 1 << 0;
    pub(super) const LX: u8 = 1 << 1;
    pub(super) const T: u8 = 1 << 3;
    pub(super) const BX10: u8 = 1 << 6;

    pub(super) const CABLE: usize = 8;
    pub(super) const PASSIVE: u8 = 1 << 2;
    pub(super) const ACTIVE: u8 = 1 << 3;

    /// In units of 100 MBd.
    pub(super) const RATE: usize = 12;
    pub(super) const RATE_1G: u8 = 13;
    pub(super) const RATE_10G: u8 = 103;

    /// Lengths of single-mode fibre, in km and in units of 100 m.
    pub(super) const LENGTH_KM: usize = 14;
    pub(super) const LENGTH_100M: usize = 15;

    pub(super) const VENDOR: Range<usize> = 20..36;
    pub(super) const OUI: Range<usize> = 37..40;
    pub(super) const OUI_INTEL: [u8; 3] = [0x00, 0x1b, 0x21];
    pub(super) const PART: Range<usize> = 40..56;

    /// Of an active cable.
    pub(super) const AMPLIFIER: usize = 60;
    pub(super) const LIMITING: u8 = 1 << 2;

    /// The checksum of all bytes before it.
    pub(super) const SUM: usize = 63;
}

/// The kind of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A cable that is attached to its modules, without amplifiers.
    PassiveCable,
    /// The same with limiting amplifiers.
    ActiveCable,
    /// The same with others, or with ones of which the cable says nothing, as optical ones do.
    OtherActiveCable,
    /// 10GBASE-SR.
    Sr,
    /// 10GBASE-LR.
    Lr,
    /// 10GBASE-ER.
    Er,
    /// 10 Gb/s in both directions of one fibre.
    Bx10G,
    /// 1000BASE-T.
    T,
    /// 1000BASE-SX.
    Sx,
    /// 1000BASE-LX.
    Lx,
    /// 1000BASE-BX10.
    Bx,
}

/// Speeds of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speed {
    /// 1 Gb/s.
    One,
    /// 10 Gb/s.
    Ten,
}

impl Speed {
    /// The number of Mb/s.
    pub(crate) fn mbps(self) -> u32 {
        match self {
            Self::One => 1_000,
            Self::Ten => 10_000,
        }
    }
}

/// A module that the NIC can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    pub(crate) kind: Kind,
    /// It is also one for 1 Gb/s, and has a pin that selects the speed.
    pub(crate) is_dual: bool,
    /// It is one of Intel's, which has tested it with this NIC.
    is_tested: bool,
    /// The checksum of its description is wrong.
    pub(crate) is_damaged: bool,
    vendor: [u8; 16],
    part: [u8; 16],
}

/// Copies a name from the description.
fn name(page: &[u8; ID_LEN], range: core::ops::Range<usize>) -> [u8; 16] {
    let mut name = [b' '; 16];

    for (to, from) in name.iter_mut().zip(page.get(range).unwrap_or(&[])) {
        *to = *from;
    }
    name
}

/// Returns the checksum that a description should have.
fn sum(page: &[u8; ID_LEN]) -> u8 {
    page[..id::SUM]
        .iter()
        .fold(0u8, |sum, byte| sum.wrapping_add(*byte))
}

impl Module {
    /// Reads the description of a module; [`None`] if it is none that the NIC can use.
    fn parse(page: &[u8; ID_LEN]) -> Option<Self> {
        if page[id::IDENTIFIER] != id::SFP {
            return None;
        }
        let (ten, one) = (page[id::CODES_10G], page[id::CODES_1G]);
        let (cable, rate) = (page[id::CABLE], page[id::RATE]);

        let kind = if cable & id::PASSIVE != 0 {
            Kind::PassiveCable
        } else if cable & id::ACTIVE != 0 {
            if page[id::AMPLIFIER] & id::LIMITING != 0 {
                Kind::ActiveCable
            } else {
                Kind::OtherActiveCable
            }
        } else if ten & id::SR != 0 {
            Kind::Sr
        } else if ten & id::LR != 0 {
            Kind::Lr
        } else if ten & id::ER != 0 {
            Kind::Er
        } else if ten != 0 {
            // 10GBASE-LRM, which needs more than the NIC has.
            return None;
        } else if one & id::T != 0 {
            Kind::T
        } else if one & id::SX != 0 {
            Kind::Sx
        } else if one & id::LX != 0 {
            Kind::Lx
        } else if one & id::BX10 != 0 && rate == id::RATE_1G {
            Kind::Bx
        } else if rate == id::RATE_10G && (page[id::LENGTH_KM] > 0 || page[id::LENGTH_100M] >= 10) {
            // The standard has no code for it.
            Kind::Bx10G
        } else {
            return None;
        };

        Some(Self {
            kind,
            is_dual: matches!(kind, Kind::Sr if one & id::SX != 0)
                || matches!(kind, Kind::Lr if one & id::LX != 0),
            is_tested: page[id::OUI] == id::OUI_INTEL,
            is_damaged: sum(page) != page[id::SUM],
            vendor: name(page, id::VENDOR),
            part: name(page, id::PART),
        })
    }

    /// The speed to try first.
    pub(crate) fn speed(&self) -> Speed {
        match self.kind {
            Kind::PassiveCable
            | Kind::ActiveCable
            | Kind::OtherActiveCable
            | Kind::Sr
            | Kind::Lr
            | Kind::Er
            | Kind::Bx10G => Speed::Ten,
            Kind::T | Kind::Sx | Kind::Lx | Kind::Bx => Speed::One,
        }
    }

    /// The number of its settings in the EEPROM, if it has any there. All that do have those of
    /// 10GBASE-SR, except passive cables.
    fn settings(&self, port: u32) -> Option<u16> {
        let first = match self.kind {
            Kind::PassiveCable => 3,
            Kind::OtherActiveCable => return None,
            _ => 5,
        };

        Some(first + u16::from(port != 0))
    }

    /// Whether it is one that is used only if users say so: Intel has not tested it. Cables and
    /// modules of 1 Gb/s are none, as with `ixgbe`, nor are those for one fibre.
    pub(crate) fn is_untested(&self) -> bool {
        !self.is_tested && matches!(self.kind, Kind::Sr | Kind::Lr | Kind::Er)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PassiveCable => "passive cable",
            Self::ActiveCable => "active cable",
            Self::OtherActiveCable => "active cable without limiting amplifiers",
            Self::Sr => "10GBASE-SR",
            Self::Lr => "10GBASE-LR",
            Self::Er => "10GBASE-ER",
            Self::Bx10G => "10GBASE-BX",
            Self::T => "1000BASE-T",
            Self::Sx => "1000BASE-SX",
            Self::Lx => "1000BASE-LX",
            Self::Bx => "1000BASE-BX10",
        })
    }
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.kind, f)?;
        match self.kind {
            Kind::Sr if self.is_dual => f.write_str("/1000BASE-SX")?,
            Kind::Lr if self.is_dual => f.write_str("/1000BASE-LX")?,
            _ => (),
        }
        f.write_str(", ")?;
        write_name(f, &self.vendor)?;
        f.write_str(" ")?;
        write_name(f, &self.part)
    }
}

/// Writes a name that a module has given. Nothing of it but visible characters gets into the log.
fn write_name(f: &mut fmt::Formatter<'_>, name: &[u8]) -> fmt::Result {
    for byte in name.trim_ascii() {
        let visible = byte.is_ascii_graphic() || *byte == b' ';
        f.write_char(if visible { char::from(*byte) } else { '?' })?;
    }
    Ok(())
}

/// Identifies the module of a port. Returns how to read it as well, also if the NIC cannot use it.
///
/// [`ENXIO`] if none answers, [`EOPNOTSUPP`] if it is none that the NIC can use.
pub(crate) fn identify(bar: &Bar0<'_>, port: u32, transfer: &mut Transfer) -> Result<Module> {
    let mut page = [0; ID_LEN];

    *transfer = Transfer::Together;
    i2c::read(bar, port, Page::Id, 0, &mut page, *transfer)?;
    if sum(&page) != page[id::SUM] {
        // Memories that are emulated, as in GPON sticks, send zeros after the first byte. Or the
        // module was exchanged for another one meanwhile.
        let before = page;

        i2c::read(bar, port, Page::Id, 0, &mut page, Transfer::Alone)?;
        if page != before {
            *transfer = Transfer::Alone;
        }
    }
    Module::parse(&page).ok_or(EOPNOTSUPP)
}

/// Returns whether a module is there, as far as the bus tells: there is none if nothing answers.
/// The firmware may have the bus just now.
pub(crate) fn may_be_there(bar: &Bar0<'_>, port: u32) -> bool {
    i2c::read(bar, port, Page::Id, 0, &mut [0], Transfer::Together) != Err(ENXIO)
}

/// The word of the EEPROM that points to the list of settings: a word, then for each kind of module
/// its number and a pointer to its settings, then [`END`].
const SETTINGS: u16 = 0x2b;

/// End of a list.
const END: u16 = u16::MAX;

/// The most kinds of modules, and the most settings of one: the EEPROM may be corrupt.
const MAX_KINDS: u16 = 64;
const MAX_SETTINGS: u16 = 1024;

/// How long the firmware may have the MAC's registers before they are taken again.
const FIRMWARE_TURN: Delta = Delta::from_millis(10);

/// Returns the word of the EEPROM before the settings for a module.
fn find_settings(eeprom: &Reader<'_, '_>, wanted: u16) -> Result<u16> {
    let list = eeprom.word(SETTINGS)?;

    if list == 0 || list == END {
        return Err(EOPNOTSUPP);
    }
    for entry in 0..MAX_KINDS {
        let at = list.checked_add(1 + 2 * entry).ok_or(EINVAL)?;
        let kind = eeprom.word(at)?;

        if kind == END {
            break;
        }
        if kind == wanted {
            let settings = eeprom.word(at.checked_add(1).ok_or(EINVAL)?)?;
            if settings != 0 && settings != END {
                return Ok(settings);
            }
            break;
        }
    }
    Err(EOPNOTSUPP)
}

/// Passes the settings for a module from the EEPROM to the physical layer, if it needs any. The
/// link has to be started after that.
///
/// [`EOPNOTSUPP`] if there are none, [`EBUSY`] if the firmware does not let us.
pub(crate) fn set_up(bar: &Bar0<'_>, port: u32, module: &Module) -> Result {
    let Some(number) = module.settings(port) else {
        return Ok(());
    };
    let eeprom = Reader::new(bar);
    let settings = find_settings(&eeprom, number)?;
    let owned = semaphore::take(bar, Resource::Mac)?;

    for offset in 1..=MAX_SETTINGS {
        let value = eeprom.word(settings.checked_add(offset).ok_or(EINVAL)?)?;
        if value == END {
            drop(owned);
            sleep_at_least(FIRMWARE_TURN);
            return Ok(());
        }
        bar.write_reg(CORECTL::from(u32::from(value)));
        mmio::flush(bar);
    }
    Err(EINVAL)
}

#[kunit_tests(ixgbe_rust_sfp)]
mod tests {
    use super::*;

    /// A description with these bytes, and a right checksum.
    fn page(bytes: &[(usize, u8)]) -> [u8; ID_LEN] {
        let mut page = [0; ID_LEN];

        page[id::IDENTIFIER] = id::SFP;
        page[id::OUI].copy_from_slice(&id::OUI_INTEL);
        for (at, byte) in bytes {
            page[*at] = *byte;
        }
        page[id::SUM] = page[..id::SUM]
            .iter()
            .fold(0, |sum, b| sum.wrapping_add(*b));
        page
    }

    fn kind(bytes: &[(usize, u8)]) -> Option<Kind> {
        Module::parse(&page(bytes)).map(|module| module.kind)
    }

    #[test]
    fn kinds() {
        assert_eq!(kind(&[(3, 0x10)]), Some(Kind::Sr));
        assert_eq!(kind(&[(3, 0x20)]), Some(Kind::Lr));
        assert_eq!(kind(&[(3, 0x80)]), Some(Kind::Er));
        assert_eq!(kind(&[(8, 4), (3, 0x10)]), Some(Kind::PassiveCable));
        assert_eq!(kind(&[(8, 8), (60, 4)]), Some(Kind::ActiveCable));
        assert_eq!(kind(&[(8, 8)]), Some(Kind::OtherActiveCable));
        assert_eq!(kind(&[(6, 8)]), Some(Kind::T));
        assert_eq!(kind(&[(6, 1)]), Some(Kind::Sx));
        assert_eq!(kind(&[(6, 2)]), Some(Kind::Lx));
        assert_eq!(kind(&[(6, 0x40), (12, 13)]), Some(Kind::Bx));
        assert_eq!(kind(&[(12, 103), (14, 10)]), Some(Kind::Bx10G));
        assert_eq!(kind(&[(12, 103), (15, 10)]), Some(Kind::Bx10G));
    }

    #[test]
    fn what_the_nic_cannot_use() {
        // A QSFP+ module, 10GBASE-LRM, none of all codes, 1000BASE-BX10 at another rate, a short
        // fibre.
        assert_eq!(kind(&[(0, 0x0d), (3, 0x10)]), None);
        assert_eq!(kind(&[(3, 0x40)]), None);
        assert_eq!(kind(&[]), None);
        assert_eq!(kind(&[(6, 0x40), (12, 12)]), None);
        assert_eq!(kind(&[(12, 103), (15, 9)]), None);
    }

    #[test]
    fn two_speeds() -> Result {
        let module = |bytes: &[(usize, u8)]| Module::parse(&page(bytes)).ok_or(EINVAL);

        assert!(module(&[(3, 0x10), (6, 1)])?.is_dual);
        assert!(module(&[(3, 0x20), (6, 2)])?.is_dual);
        // A short and a long wave: no module is both.
        assert!(!module(&[(3, 0x10), (6, 2)])?.is_dual);
        assert!(!module(&[(6, 1)])?.is_dual);
        assert_eq!(module(&[(3, 0x10), (6, 1)])?.speed(), Speed::Ten);
        assert_eq!(module(&[(6, 1)])?.speed(), Speed::One);
        Ok(())
    }

    #[test]
    fn settings_by_kind_and_port() -> Result {
        let module = |bytes: &[(usize, u8)]| Module::parse(&page(bytes)).ok_or(EINVAL);

        let cable = module(&[(8, 4)])?;
        assert_eq!([cable.settings(0), cable.settings(1)], [Some(3), Some(4)]);
        let fibre = module(&[(6, 1)])?;
        assert_eq!([fibre.settings(0), fibre.settings(1)], [Some(5), Some(6)]);
        let active = module(&[(8, 8), (60, 4)])?;
        assert_eq!(active.settings(0), Some(5));
        assert_eq!(module(&[(8, 8)])?.settings(0), None);
        Ok(())
    }

    #[test]
    fn doubts() -> Result {
        let mut other = page(&[(3, 0x10), (37, 0xff)]);
        assert!(Module::parse(&other).ok_or(EINVAL)?.is_untested());
        assert!(!Module::parse(&page(&[(8, 4), (37, 0xff)]))
            .ok_or(EINVAL)?
            .is_untested());
        assert!(!Module::parse(&other).ok_or(EINVAL)?.is_damaged);
        other[id::SUM] ^= 1;
        assert!(Module::parse(&other).ok_or(EINVAL)?.is_damaged);
        Ok(())
    }
}
