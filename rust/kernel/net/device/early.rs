// SPDX-License-Identifier: GPL-2.0

//! Polls and events before [`Driver::start`] has returned.
//!
//! NAPI is enabled and interrupts are requested before [`Driver::start`], so that the NIC finds
//! them in place. From then on, the message of an interrupt that was pending, a busy-polling socket
//! or netpoll may have an instance polled. The driver is not told before its NIC has been started:
//! turning an interrupt on again, or telling the NIC of new buffers, would interfere with that.
//!
//! [`Driver::start`]: super::Driver::start

use crate::sync::atomic::{
    Acquire,
    Atomic,
    Full,
    Relaxed, //
};

const NONE: u32 = 0;
const SOME: u32 = 1;
const OVER: u32 = 2;

/// Whether callbacks have to be put off, and whether any were.
pub(super) struct Early(Atomic<u32>);

impl Early {
    pub(super) fn new() -> Self {
        Self(Atomic::new(NONE))
    }

    /// Callbacks have to be put off from now on.
    pub(super) fn begin(&self) {
        self.0.store(NONE, Relaxed);
    }

    /// Whether a callback may be called. If not, [`Self::end`] will ask for it.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        // `Acquire`: the callback comes after `Driver::start()`.
        self.0.load(Acquire) == OVER || !self.put_off()
    }

    /// Notes that a callback is put off, unless it need not be any more.
    #[cold]
    fn put_off(&self) -> bool {
        self.0.cmpxchg(NONE, SOME, Full) != Err(OVER)
    }

    /// Lets callbacks be called. Returns whether one was put off, which is to be caught up on.
    pub(super) fn end(&self) -> bool {
        self.0.xchg(OVER, Full) == SOME
    }
}
