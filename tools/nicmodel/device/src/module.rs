// SPDX-License-Identifier: GPL-2.0
//! SFP+ modules: the pages of SFF-8472, and what a link can be over them.

use serde::Deserialize;

/// Number of bytes of a page.
pub const PAGE: usize = 256;

/// Kinds of modules, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// An empty cage.
    Absent,
    /// 10GBASE-SR.
    Sr,
    /// 10GBASE-LR.
    Lr,
    /// 10GBASE-SR and 1000BASE-SX.
    Dual,
    /// A passive cable, direct attach.
    Passive,
    /// An active cable with limiting amplifiers, direct attach.
    Active,
    /// 1000BASE-SX.
    Sx,
    /// 1000BASE-LX.
    Lx,
    /// 1000BASE-T.
    T,
    /// 1000BASE-BX10.
    Bx,
    /// Over one fibre at 10 Gb/s, without a code for it.
    TenBx,
    /// 10GBASE-SR of a maker that Intel has not tested.
    Foreign,
    /// A QSFP+ module, in an adapter.
    Qsfp,
    /// A memory that was overwritten.
    Garbage,
    /// A module that does not answer.
    Silent,
}

/// A module, by the contents of its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// The identification page.
    pub id: [u8; PAGE],
    /// The diagnostics page.
    pub diagnostics: [u8; PAGE],
    /// Whether it answers on the bus.
    pub answers: bool,
}

/// Offsets in the identification page.
mod at {
    pub(super) const IDENTIFIER: usize = 0;
    pub(super) const CONNECTOR: usize = 2;
    pub(super) const CODES_10G: usize = 3;
    pub(super) const CODES_1G: usize = 6;
    pub(super) const CABLE: usize = 8;
    pub(super) const BIT_RATE: usize = 12;
    pub(super) const LENGTH_KM: usize = 14;
    pub(super) const LENGTH_OM3: usize = 19;
    pub(super) const CABLE_COMPLIANCE: usize = 60;
    pub(super) const SUM: usize = 63;
    pub(super) const DIAGNOSTICS: usize = 92;
    pub(super) const COMPLIANCE: usize = 94;
    pub(super) const SUM_EXTENDED: usize = 95;
}

const OUI_INTEL: [u8; 3] = [0x00, 0x1b, 0x21];
/// A range of numbers for documentation (RFC 9542).
const OUI_FOREIGN: [u8; 3] = [0x00, 0x00, 0x5e];

impl Module {
    /// A module of this kind.
    pub fn new(kind: Kind) -> Self {
        let mut id = [0_u8; PAGE];
        id[at::IDENTIFIER] = if kind == Kind::Qsfp { 0x0d } else { 0x03 };
        id[1] = 0x04;
        id[at::CONNECTOR] = match kind {
            Kind::Passive | Kind::Active => 0x21,
            Kind::T => 0x22,
            _ => 0x07,
        };
        id[at::CODES_10G] = match kind {
            Kind::Sr | Kind::Foreign | Kind::Dual => 0x10,
            Kind::Lr => 0x20,
            _ => 0,
        };
        id[at::CODES_1G] = match kind {
            Kind::Dual | Kind::Sx => 0x01,
            Kind::Lx => 0x02,
            Kind::T => 0x08,
            Kind::Bx => 0x40,
            _ => 0,
        };
        id[at::CABLE] = match kind {
            Kind::Passive => 0x04,
            Kind::Active => 0x08,
            _ => 0,
        };
        id[at::BIT_RATE] = match kind {
            Kind::Sx | Kind::Lx | Kind::T | Kind::Bx => 13,
            _ => 103,
        };
        if matches!(kind, Kind::Lr | Kind::Lx | Kind::Bx | Kind::TenBx) {
            id[at::LENGTH_KM] = 10;
        } else {
            id[at::LENGTH_OM3] = 30;
        }
        id[20..36].copy_from_slice(b"skbulk model    ");
        let oui = if kind == Kind::Foreign {
            OUI_FOREIGN
        } else {
            OUI_INTEL
        };
        id[37..40].copy_from_slice(&oui);
        id[40..56].copy_from_slice(match kind {
            Kind::Sr | Kind::Foreign => b"SR-MODEL        ",
            Kind::Lr => b"LR-MODEL        ",
            Kind::Dual => b"SR-SX-MODEL     ",
            Kind::Passive | Kind::Active => b"DA-MODEL        ",
            _ => b"MODEL           ",
        });
        if kind == Kind::Active {
            id[at::CABLE_COMPLIANCE] = 0x04;
        }
        id[at::SUM] = sum(&id[..at::SUM]);
        id[68..84].copy_from_slice(b"0000000000000001");
        id[84..92].copy_from_slice(b"260101  ");
        // Diagnostics, calibrated inside, by revision 10.2 of the standard. A cable has none.
        id[at::DIAGNOSTICS] = if kind == Kind::Passive { 0 } else { 0x60 };
        id[at::COMPLIANCE] = 0x03;
        id[at::SUM_EXTENDED] = sum(&id[64..at::SUM_EXTENDED]);

        let mut diagnostics = [0_u8; PAGE];
        // 30 degrees, 3.3 V.
        diagnostics[96..100].copy_from_slice(&[30, 0, 0x80, 0xe8]);
        if kind == Kind::Garbage {
            let noise = |(i, byte): (usize, &mut u8)| *byte = (i as u8).wrapping_mul(37) ^ 0xa5;
            id.iter_mut().enumerate().for_each(noise);
            diagnostics.iter_mut().enumerate().for_each(noise);
        }
        Self {
            id,
            diagnostics,
            answers: kind != Kind::Silent,
        }
    }

    /// Whether there is a link over it at 10 Gb/s.
    pub fn ten(&self) -> bool {
        let codes = self.id[at::CODES_10G] & 0xf0 != 0;
        let cable = self.id[at::CABLE] & 0x0c != 0;
        // 1 Gb/s has a rate of its own, and all the others have none that says more.
        self.is_sfp() && (codes || cable || self.id[at::BIT_RATE] == 103)
    }

    /// Whether there is a link over it at 1 Gb/s.
    pub fn one(&self) -> bool {
        self.is_sfp() && self.id[at::CODES_1G] & 0x4b != 0
    }

    /// Whether the EEPROM has settings for it. Active cables have some only if they say that their
    /// amplifiers are limiting.
    pub fn has_settings(&self) -> bool {
        let other_cable =
            self.id[at::CABLE] & 0x0c == 0x08 && self.id[at::CABLE_COMPLIANCE] & 0x04 == 0;
        (self.ten() || self.one()) && !other_cable
    }

    fn is_sfp(&self) -> bool {
        self.id[at::IDENTIFIER] == 0x03
    }
}

fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_decides_on_the_speed() {
        for (kind, ten, one) in [
            (Kind::Sr, true, false),
            (Kind::Lr, true, false),
            (Kind::Dual, true, true),
            (Kind::Passive, true, false),
            (Kind::Active, true, false),
            (Kind::Sx, false, true),
            (Kind::Lx, false, true),
            (Kind::T, false, true),
            (Kind::Bx, false, true),
            (Kind::TenBx, true, false),
            (Kind::Foreign, true, false),
            (Kind::Qsfp, false, false),
            (Kind::Garbage, false, false),
        ] {
            let module = Module::new(kind);
            assert_eq!((module.ten(), module.one()), (ten, one), "{kind:?}");
        }
    }

    #[test]
    fn active_cables_have_settings_if_they_are_limiting() {
        let mut module = Module::new(Kind::Active);
        assert!(module.has_settings() && Module::new(Kind::Passive).has_settings());
        module.id[at::CABLE_COMPLIANCE] = 0;
        assert!(module.ten() && !module.has_settings());
        assert!(!Module::new(Kind::Qsfp).has_settings());
    }

    #[test]
    fn sums_are_right_unless_the_memory_is_not() {
        let good = |kind| {
            let id = Module::new(kind).id;
            id[63] == sum(&id[..63]) && id[95] == sum(&id[64..95])
        };
        assert!(good(Kind::Active) && good(Kind::Qsfp));
        assert!(!good(Kind::Garbage));
    }
}
