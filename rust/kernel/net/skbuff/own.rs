// SPDX-License-Identifier: GPL-2.0

//! Packets whose `struct sk_buff` has no other user.

use super::SkBuff;

use core::ops::Deref;

/// A packet whose `struct sk_buff` can be written to.
///
/// # Safety
///
/// There must be no other reference to the packet.
pub(in crate::net) unsafe trait OwnHead:
    Deref<Target = SkBuff> + Into<SkBuff>
{
}
