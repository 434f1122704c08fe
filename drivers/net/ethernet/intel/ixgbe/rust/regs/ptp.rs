// SPDX-License-Identifier: GPL-2.0

//! Registers of time stamps, see [`super`].

use kernel::io::register;

// Time sync, datasheet 8.2.3.26.

register! {
    /// Rx Time Sync Control.
    pub(crate) TSYNCRXCTL(u32) @ 0x05188 {
        /// Received frames are stamped.
        4:4     en => bool;
        /// Which of them.
        3:1     kind;
        /// [`RXSTMPL`] and [`RXSTMPH`] hold a stamp, which stays until the latter is read.
        0:0     rxtt => bool;
    }

    /// Rx Message Type Register: the messages that are stamped.
    pub(crate) RXMTRL(u32) @ 0x05120 {
        /// Port of UDP.
        31:16   udpt;
        /// Control field of version 1.
        7:0     ctrlt;
    }

    /// Rx Time Stamp Low.
    pub(crate) RXSTMPL(u32) @ 0x051e8 {}

    /// Rx Time Stamp High.
    pub(crate) RXSTMPH(u32) @ 0x051a4 {}

    /// EType Queue Filter.
    pub(crate) ETQF(u32)[8] @ 0x05128 {
        /// The filter is in use.
        31:31   filter_en => bool;
        /// Frames of this type are messages of PTP.
        30:30   is_1588 => bool;
        /// Type of an Ethernet frame.
        15:0    etype;
    }

    /// Tx Time Sync Control.
    pub(crate) TSYNCTXCTL(u32) @ 0x08c00 {
        /// Sent frames are stamped if their descriptors ask for it.
        4:4     en => bool;
        /// [`TXSTMPL`] and [`TXSTMPH`] hold a stamp, which stays until the latter is read.
        0:0     txtt => bool;
    }

    /// Tx Time Stamp Value Low.
    pub(crate) TXSTMPL(u32) @ 0x08c04 {}

    /// Tx Time Stamp Value High.
    pub(crate) TXSTMPH(u32) @ 0x08c08 {}

    /// System Time Low. Reading it latches [`SYSTIMH`].
    pub(crate) SYSTIML(u32) @ 0x08c0c {}

    /// System Time High.
    pub(crate) SYSTIMH(u32) @ 0x08c10 {}

    /// Time Increment Attributes: the steps of the clock.
    pub(crate) TIMINCA(u32) @ 0x08c14 {
        /// Cycles of a step.
        31:24   incperiod;
        /// By how much a step advances [`SYSTIML`].
        23:0    incvalue;
    }
}

/// Values of [`TSYNCRXCTL`]'s kind.
pub(crate) mod rx_kind {
    /// Version 1 over UDP, with the control field of [`RXMTRL`](super::RXMTRL).
    pub(crate) const V1: u32 = 1;
    /// All events of version 2.
    pub(crate) const V2_EVENTS: u32 = 5;
}
