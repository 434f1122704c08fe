// SPDX-License-Identifier: GPL-2.0

//! The number of owners of a packet.
//!
//! Nothing here depends on the rest of the kernel, so that the same source runs under a model
//! checker on the host.

use crate::sync::atomic::{
    Acquire, //
    Atomic,
};

/// Whether one of the owners, who asks, is the only one.
///
/// C releases a reference that it drops. A sole owner changes the packet, after all accesses of
/// former owners.
#[inline]
pub(crate) fn is_sole(users: &Atomic<i32>) -> bool {
    users.load(Acquire) == 1
}
