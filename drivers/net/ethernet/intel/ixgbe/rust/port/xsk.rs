// SPDX-License-Identifier: GPL-2.0

//! Queues with memory of users (AF_XDP without copies).

use kernel::net::{
    device::xdp::xsk::XskOps,
    xdp::xsk::XskRoom, //
};

use crate::rx::{
    self,
    Xdp, //
};

use super::PortDriver;

impl XskOps for PortDriver {
    type Format = Xdp;

    const TX_CHECKSUM: bool = true;

    fn max_mtu(room: XskRoom) -> u32 {
        rx::max_mtu(room)
    }
}
