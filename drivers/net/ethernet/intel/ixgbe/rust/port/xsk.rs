// SPDX-License-Identifier: GPL-2.0

//! Queues with memory of users (AF_XDP without copies).

use kernel::net::device::xdp::xsk::XskOps;

use crate::rx;

use super::PortDriver;

impl XskOps for PortDriver {
    fn max_mtu(frame_len: u32) -> u32 {
        rx::max_mtu(frame_len)
    }
}
