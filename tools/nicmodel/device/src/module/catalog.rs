// SPDX-License-Identifier: GPL-2.0
//! The kinds of modules as data. No memory of a module that exists is in here: makers and parts are
//! invented, and only their numbers (OUI) are those that drivers look for.

use serde::Deserialize;

/// Seconds and microseconds in nanoseconds.
const SECOND: u64 = 1_000_000_000;
const MICROSECOND: u64 = 1_000;

/// How a module answers on its bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// At once.
    Always,
    /// Not at all.
    Never,
    /// When it has had power for so many nanoseconds.
    After(u64),
    /// At once, but with one byte: those that follow it are 0.
    Singly,
    /// It holds the clock down for so many nanoseconds before each byte.
    Slowly(u64),
}

/// The bytes in which kinds differ, and how they answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spec {
    pub(super) identifier: u8,
    pub(super) connector: u8,
    pub(super) ten: u8,
    pub(super) one: u8,
    pub(super) cable: u8,
    /// In units of 100 MBd.
    pub(super) rate: u8,
    /// Of single-mode fibre, in km.
    pub(super) kilometres: u8,
    /// Of fibre OM3, or of copper, in units of 10 m and 1 m.
    pub(super) short: u8,
    /// Extended compliance, which newer revisions of the standard have.
    pub(super) extended: u8,
    pub(super) oui: [u8; 3],
    pub(super) part: &'static str,
    /// Of a cable: bit 2 says that its amplifiers are limiting.
    pub(super) amplifier: u8,
    pub(super) has_diagnostics: bool,
    pub(super) right_sum: bool,
    pub(super) answers: Answers,
}

const INTEL: [u8; 3] = [0x00, 0x1b, 0x21];
/// A range of numbers for documentation (RFC 9542).
const FOREIGN: [u8; 3] = [0x00, 0x00, 0x5e];
/// Makers that ixgbe tells from others.
const TYCO: [u8; 3] = [0x00, 0x40, 0x76];
const FTL: [u8; 3] = [0x00, 0x90, 0x65];
const AVAGO: [u8; 3] = [0x00, 0x17, 0x6a];

const SFP: u8 = 0x03;
const LC: u8 = 0x07;
const PIGTAIL: u8 = 0x21;
const RJ45: u8 = 0x22;

/// A module that says nothing of what it is.
const NO_CODE: Spec = Spec {
    identifier: SFP,
    connector: LC,
    ten: 0,
    one: 0,
    cable: 0,
    rate: 103,
    kilometres: 0,
    short: 30,
    extended: 0,
    oui: INTEL,
    part: "MODEL",
    amplifier: 0,
    has_diagnostics: true,
    right_sum: true,
    answers: Answers::Always,
};
const SR: Spec = Spec {
    ten: 0x10,
    part: "SR-MODEL",
    ..NO_CODE
};
const LR: Spec = Spec {
    ten: 0x20,
    kilometres: 10,
    short: 0,
    part: "LR-MODEL",
    ..NO_CODE
};
const CABLE: Spec = Spec {
    connector: PIGTAIL,
    part: "DA-MODEL",
    ..NO_CODE
};
const PASSIVE: Spec = Spec {
    cable: 0x04,
    has_diagnostics: false,
    ..CABLE
};
const ACTIVE: Spec = Spec {
    cable: 0x08,
    amplifier: 0x04,
    ..CABLE
};
const GIGABIT: Spec = Spec {
    rate: 13,
    ..NO_CODE
};
const T: Spec = Spec {
    connector: RJ45,
    one: 0x08,
    ..GIGABIT
};
const BX: Spec = Spec {
    one: 0x40,
    kilometres: 10,
    short: 0,
    ..GIGABIT
};

/// Makes [`Kind`]. A line is the name of a kind, and its data.
macro_rules! kinds {
    ($($(#[$about:meta])+ $kind:ident: $spec:expr;)*) => {
        /// Kinds of modules, or none.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Kind {
            $($(#[$about])+ $kind,)*
        }

        impl Kind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            pub(super) const fn spec(self) -> Spec {
                match self {
                    $(Self::$kind => $spec,)*
                }
            }
        }
    };
}

kinds! {
    /// An empty cage.
    Absent: NO_CODE;
    /// 10GBASE-SR.
    Sr: SR;
    /// 10GBASE-LR.
    Lr: LR;
    /// 10GBASE-ER.
    Er: Spec { ten: 0x80, kilometres: 40, part: "ER-MODEL", ..LR };
    /// 10GBASE-LRM.
    Lrm: Spec { ten: 0x40, part: "LRM-MODEL", ..SR };
    /// 10GBASE-SR and 1000BASE-SX.
    Dual: Spec { one: 0x01, part: "SR-SX-MODEL", ..SR };
    /// 10GBASE-T, which has a code among the extended ones only.
    TenT: Spec { connector: RJ45, extended: 0x1c, short: 0, part: "10T-MODEL", ..NO_CODE };
    /// Over one fibre at 10 Gb/s, without a code for it.
    TenBx: Spec { kilometres: 10, short: 0, ..NO_CODE };
    /// A passive cable, direct attach.
    Passive: PASSIVE;
    /// An active cable with limiting amplifiers, direct attach.
    Active: ACTIVE;
    /// An active optical cable, of which nothing says that its amplifiers are limiting.
    ActiveOptical: Spec { amplifier: 0, oui: FOREIGN, part: "AOC-MODEL", ..ACTIVE };
    /// 1000BASE-SX.
    Sx: Spec { one: 0x01, ..GIGABIT };
    /// 1000BASE-LX.
    Lx: Spec { one: 0x02, kilometres: 10, short: 0, ..GIGABIT };
    /// 1000BASE-T.
    T: T;
    /// 1000BASE-BX10.
    Bx: BX;
    /// 10GBASE-SR of a maker that Intel has not tested.
    Foreign: Spec { oui: FOREIGN, ..SR };
    /// 10GBASE-LR of such a maker.
    ForeignLr: Spec { oui: FOREIGN, ..LR };
    /// 10GBASE-SR of makers that ixgbe knows.
    Ftl: Spec { oui: FTL, ..SR };
    /// The same.
    Avago: Spec { oui: AVAGO, ..SR };
    /// A passive cable of a maker that ixgbe knows.
    Tyco: Spec { oui: TYCO, ..PASSIVE };
    /// A passive cable of another one.
    ForeignPassive: Spec { oui: FOREIGN, ..PASSIVE };
    /// A stick for GPON, whose memory is emulated by its processor: it knows reads of single bytes.
    Gpon: Spec { oui: FOREIGN, part: "GPON-MODEL", answers: Answers::Singly, ..BX };
    /// 1000BASE-T with such a memory.
    SingleT: Spec { oui: FOREIGN, part: "T-SINGLE-MODEL", answers: Answers::Singly, ..T };
    /// A memory whose checksum is wrong.
    WrongSum: Spec { right_sum: false, part: "SUM-MODEL", ..SR };
    /// A memory that holds the clock down.
    Slow: Spec {
        part: "SLOW-MODEL",
        answers: Answers::Slowly(200 * MICROSECOND),
        ..SR
    };
    /// A module that is there seconds after it has power.
    Late: Spec { part: "LATE-MODEL", answers: Answers::After(6 * SECOND), ..SR };
    /// A QSFP+ module, in an adapter.
    Qsfp: Spec { identifier: 0x0d, ..NO_CODE };
    /// A memory that was overwritten.
    Garbage: NO_CODE;
    /// A memory that was erased.
    Erased: NO_CODE;
    /// A module that does not answer.
    Silent: Spec { answers: Answers::Never, ..NO_CODE };
}
