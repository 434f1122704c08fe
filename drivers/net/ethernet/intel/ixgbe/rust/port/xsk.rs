// SPDX-License-Identifier: GPL-2.0

//! Queues with memory of users (AF_XDP without copies).

use kernel::net::device::{
    xdp::xsk::XskOps,
    Device, //
};

use crate::rx::{
    takes_frames,
    FrameLimit, //
};

use super::{
    Port,
    PortDriver, //
};

impl XskOps for PortDriver {
    fn takes_frames(netdev: &Device, len: u32) -> bool {
        takes_frames(len, FrameLimit::of_mtu(netdev.mtu()))
    }

    fn frames_changed(port: &Port<'_>, len: Option<u32>) {
        port.user_frames.set(len);
    }
}
