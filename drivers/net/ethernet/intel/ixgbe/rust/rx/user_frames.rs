// SPDX-License-Identifier: GPL-2.0

//! The frames of users' memory that queues have.

use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

use super::{
    buffers::FrameLimit,
    xsk::takes_frames, //
};

/// The length of the shortest frames that users have given to queues.
pub(crate) struct UserFrames(Atomic<u32>);

impl UserFrames {
    const NONE: u32 = u32::MAX;

    pub(crate) const fn new() -> Self {
        Self(Atomic::new(Self::NONE))
    }

    /// Sets the length, if there are any.
    pub(crate) fn set(&self, len: Option<u32>) {
        self.0.store(len.unwrap_or(Self::NONE), Relaxed);
    }

    /// Whether queues have memory of users.
    pub(crate) fn are_in_use(&self) -> bool {
        self.0.load(Relaxed) != Self::NONE
    }

    /// Whether all frames take what is received with this limit.
    pub(crate) fn allow(&self, limit: FrameLimit) -> bool {
        !self.are_in_use() || takes_frames(self.0.load(Relaxed), limit)
    }
}
