// SPDX-License-Identifier: GPL-2.0
//! SFP+ modules: the pages of SFF-8472, and what a link can be over them.

mod catalog;

pub use self::catalog::{Answers, Kind};

/// Number of bytes of a page.
pub const PAGE: usize = 256;

/// A module, by the contents of its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// The identification page.
    pub id: [u8; PAGE],
    /// The diagnostics page.
    pub diagnostics: [u8; PAGE],
    /// How it answers on the bus.
    pub answers: Answers,
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
    pub(super) const LENGTH_COPPER: usize = 18;
    pub(super) const LENGTH_OM3: usize = 19;
    pub(super) const EXTENDED: usize = 36;
    pub(super) const CABLE_COMPLIANCE: usize = 60;
    pub(super) const SUM: usize = 63;
    pub(super) const DIAGNOSTICS: usize = 92;
    pub(super) const COMPLIANCE: usize = 94;
    pub(super) const SUM_EXTENDED: usize = 95;
}

impl Module {
    /// A module of this kind.
    pub fn new(kind: Kind) -> Self {
        let spec = kind.spec();
        let mut id = [0_u8; PAGE];
        id[at::IDENTIFIER] = spec.identifier;
        id[1] = 0x04;
        id[at::CONNECTOR] = spec.connector;
        id[at::CODES_10G] = spec.ten;
        id[at::CODES_1G] = spec.one;
        id[at::CABLE] = spec.cable;
        id[at::BIT_RATE] = spec.rate;
        id[at::LENGTH_KM] = spec.kilometres;
        let length = match spec.cable {
            0 => at::LENGTH_OM3,
            _ => at::LENGTH_COPPER,
        };
        id[length] = spec.short;
        id[at::EXTENDED] = spec.extended;
        id[20..36].copy_from_slice(b"skbulk model    ");
        id[37..40].copy_from_slice(&spec.oui);
        id[40..56].fill(b' ');
        id[40..40 + spec.part.len()].copy_from_slice(spec.part.as_bytes());
        id[at::CABLE_COMPLIANCE] = spec.amplifier;
        id[at::SUM] = sum(&id[..at::SUM]) ^ u8::from(!spec.right_sum);
        id[68..84].copy_from_slice(b"0000000000000001");
        id[84..92].copy_from_slice(b"260101  ");
        // Diagnostics, calibrated inside, by revision 10.2 of the standard. A cable has none.
        id[at::DIAGNOSTICS] = if spec.has_diagnostics { 0x60 } else { 0 };
        id[at::COMPLIANCE] = 0x03;
        id[at::SUM_EXTENDED] = sum(&id[64..at::SUM_EXTENDED]);

        let mut diagnostics = [0_u8; PAGE];
        // 30 degrees, 3.3 V.
        diagnostics[96..100].copy_from_slice(&[30, 0, 0x80, 0xe8]);
        for page in [&mut id, &mut diagnostics] {
            match kind {
                Kind::Garbage => {
                    let noise = |(i, byte): (usize, &mut u8)| {
                        *byte = (i as u8).wrapping_mul(37) ^ 0xa5;
                    };
                    page.iter_mut().enumerate().for_each(noise);
                }
                Kind::Erased => page.fill(0xff),
                _ => {}
            }
        }
        Self {
            id,
            diagnostics,
            answers: spec.answers,
        }
    }

    /// Whether there is a link over it at 10 Gb/s.
    pub fn ten(&self) -> bool {
        let codes = self.id[at::CODES_10G] & 0xf0 != 0;
        let cable = self.id[at::CABLE] & 0x0c != 0;
        // 1 Gb/s has a rate of its own, and all the others have none that says more.
        // Nor is there one over copper that is no cable: it needs a physical layer of its own.
        let copper = self.id[at::CONNECTOR] == 0x22;
        self.is_sfp() && (codes || cable || self.id[at::BIT_RATE] == 103 && !copper)
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
            (Kind::Erased, false, false),
            (Kind::TenT, false, false),
            (Kind::ActiveOptical, true, false),
            (Kind::Gpon, false, true),
            (Kind::SingleT, false, true),
            (Kind::Late, true, false),
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
        for kind in Kind::ALL {
            let id = Module::new(*kind).id;
            let is_good = id[63] == sum(&id[..63]) && id[95] == sum(&id[64..95]);
            let is_bad = matches!(kind, Kind::Garbage | Kind::Erased | Kind::WrongSum);
            assert_eq!(is_good, !is_bad, "{kind:?}");
        }
    }
}
