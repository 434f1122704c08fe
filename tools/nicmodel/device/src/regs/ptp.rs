// SPDX-License-Identifier: GPL-2.0
//! The fields of the registers of time stamps, see [`super::bits`].

use arbitrary_int::{u3, u24};
use bitbybit::bitfield;

use super::bits::{Register, bitfields};
use super::offset;

bitfields! { #[bitfield(u32, default = 0, debug)]
    // 8.2.3.26, time synchronisation registers.

    /// Receive time stamps.
    Tsyncrxctl at TSYNCRXCTL {
        /// The latch holds a stamp.
        valid @ 0,
        /// Which frames are stamped.
        kind: u3 = 1..=3,
        /// Frames are stamped.
        enable @ 4,
    }

    /// Transmit time stamps.
    Tsynctxctl at TSYNCTXCTL {
        /// The latch holds a stamp.
        valid @ 0,
        /// Frames are stamped.
        enable @ 4,
    }

    /// The messages that are stamped.
    Rxmtrl at RXMTRL {
        /// The control field of version 1.
        ctrlt: u8 = 0..=7,
        /// The type of version 2.
        msgt: u8 = 8..=15,
        /// The port of UDP.
        udpt: u16 = 16..=31,
    }

    /// The steps of the clock.
    Timinca at TIMINCA {
        /// By how much a step moves SYSTIM.
        incvalue: u24 = 0..=23,
        /// The number of clocks of a step.
        incperiod: u8 = 24..=31,
    }

    /// A filter of Ethernet types.
    Etqf at ETQF, every 4 {
        /// The type.
        etype: u16 = 0..=15,
        /// Its frames are messages of PTP.
        is_1588 @ 30,
        /// The filter counts.
        filter_en @ 31,
    }
}

impl Tsyncrxctl {
    /// KIND: version 2 in Ethernet, of the type of RXMTRL.
    pub const L2_V2: u3 = u3::new(0);
    /// KIND: version 1 in UDP, of the control field of RXMTRL.
    pub const L4_V1: u3 = u3::new(1);
    /// KIND: version 2 in Ethernet or UDP, of the type of RXMTRL.
    pub const ANY_V2: u3 = u3::new(2);
    /// KIND: all events of version 2 in Ethernet or UDP.
    pub const EVENTS_V2: u3 = u3::new(5);
}
