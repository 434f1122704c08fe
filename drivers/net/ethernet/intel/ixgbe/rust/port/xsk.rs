// SPDX-License-Identifier: GPL-2.0

//! Queues with memory of users (AF_XDP without copies).

use kernel::net::{
    device::xdp::xsk::XskOps,
    xdp::xsk::XskRoom, //
};

use crate::{
    desc::TX_LIMITS,
    rx, //
};

use super::PortDriver;

impl XskOps for PortDriver {
    // CAST: A small constant.
    const MAX_PARTS: u32 = TX_LIMITS.descriptors as u32;

    const TX_CHECKSUM: bool = true;

    fn max_mtu(room: XskRoom) -> u32 {
        rx::max_mtu(room)
    }
}
