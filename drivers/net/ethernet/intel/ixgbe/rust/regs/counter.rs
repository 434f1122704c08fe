// SPDX-License-Identifier: GPL-2.0

//! Statistics registers, datasheet 8.2.3.23.
//!
//! All of them are cleared when they are read.

use kernel::io::register;

register! {
    /// CRC Error Count.
    pub(crate) CRCERRS(u32) @ 0x04000 {}

    /// Link XON Transmitted Count.
    pub(crate) LXONTXC(u32) @ 0x03f60 {}

    /// Link XOFF Transmitted Count.
    pub(crate) LXOFFTXC(u32) @ 0x03f68 {}

    /// Rx Missed Packets Count, one per traffic class: no room in the packet buffer.
    pub(crate) RXMPC(u32)[8] @ 0x03fa0 {}

    /// Queue Packets Received Drop Count: a queue that drops had no descriptors.
    pub(crate) QPRDC(u32)[16, stride = 0x40] @ 0x01430 {}

    /// MAC Local Fault Count.
    pub(crate) MLFC(u32) @ 0x04034 {}

    /// MAC Remote Fault Count.
    pub(crate) MRFC(u32) @ 0x04038 {}

    /// Receive Length Error Count.
    pub(crate) RLEC(u32) @ 0x04040 {}

    /// Packets Received Count, good ones by their length with frame check sequence: up to 64
    /// bytes, 127, 255, 511, 1023, and more.
    pub(crate) PRC(u32)[6] @ 0x0405c {}

    /// Good Packets Received Count.
    pub(crate) GPRC(u32) @ 0x04074 {}

    /// Broadcast Packets Received Count.
    pub(crate) BPRC(u32) @ 0x04078 {}

    /// Multicast Packets Received Count.
    pub(crate) MPRC(u32) @ 0x0407c {}

    /// Good Packets Transmitted Count.
    pub(crate) GPTC(u32) @ 0x04080 {}

    /// Good Octets Received Count, lower half.
    pub(crate) GORCL(u32) @ 0x04088 {}

    /// Good Octets Received Count, upper half.
    pub(crate) GORCH(u32) @ 0x0408c {}

    /// Good Octets Transmitted Count, lower half.
    pub(crate) GOTCL(u32) @ 0x04090 {}

    /// Good Octets Transmitted Count, upper half.
    pub(crate) GOTCH(u32) @ 0x04094 {}

    /// Receive Undersize Count.
    pub(crate) RUC(u32) @ 0x040a4 {}

    /// Receive Fragment Count.
    pub(crate) RFC(u32) @ 0x040a8 {}

    /// Receive Oversize Count.
    pub(crate) ROC(u32) @ 0x040ac {}

    /// Receive Jabber Count.
    pub(crate) RJC(u32) @ 0x040b0 {}

    /// Packets Transmitted Count, by their length as in [`PRC`].
    pub(crate) PTC(u32)[6] @ 0x040d8 {}

    /// Multicast Packets Transmitted Count.
    pub(crate) MPTC(u32) @ 0x040f0 {}

    /// Broadcast Packets Transmitted Count.
    pub(crate) BPTC(u32) @ 0x040f4 {}

    /// Link XON Received Count.
    pub(crate) LXONRXCNT(u32) @ 0x041a4 {}

    /// Link XOFF Received Count.
    pub(crate) LXOFFRXCNT(u32) @ 0x041a8 {}
}
