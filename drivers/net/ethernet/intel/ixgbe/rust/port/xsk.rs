// SPDX-License-Identifier: GPL-2.0

//! Queues with memory of users (AF_XDP without copies).

use kernel::{
    net::device::{
        xdp::xsk::XskOps,
        Device, //
    },
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use crate::rx::{
    takes_frames,
    FrameLimit, //
};

use super::{
    Port,
    PortDriver, //
};

/// The length of the shortest frames that users have given to queues.
pub(super) struct Frames(Atomic<u32>);

impl Frames {
    const NONE: u32 = u32::MAX;

    pub(super) const fn new() -> Self {
        Self(Atomic::new(Self::NONE))
    }

    /// Whether queues have memory of users.
    pub(super) fn is_in_use(&self) -> bool {
        self.0.load(Relaxed) != Self::NONE
    }

    /// Whether all frames take what is received with this limit.
    pub(super) fn allows(&self, limit: FrameLimit) -> bool {
        !self.is_in_use() || takes_frames(self.0.load(Relaxed), limit)
    }
}

impl XskOps for PortDriver {
    fn takes_frames(netdev: &Device, len: u32) -> bool {
        takes_frames(len, FrameLimit::of_mtu(netdev.mtu()))
    }

    fn frames_changed(port: &Port<'_>, len: Option<u32>) {
        port.xsk.0.store(len.unwrap_or(Frames::NONE), Relaxed);
    }
}
