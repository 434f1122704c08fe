// SPDX-License-Identifier: GPL-2.0

//! Packets that have one owner.

use super::SkBuff;
use crate::{
    bindings,
    prelude::*,
    sync::llist::{
        Link,
        Node, //
    }, //
};
use core::{
    mem::offset_of,
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// A packet to which there is no other reference.
///
/// The fields that link packets to each other belong to the packet, not to a reference to it, so
/// only packets with one owner can be put on a list.
///
/// # Invariants
///
/// There is no other reference to the packet.
///
/// # Examples
///
/// ```
/// use kernel::net::skbuff::{
///     SkBuff,
///     UniqueSkBuff, //
/// };
///
/// let skb = UniqueSkBuff::new(SkBuff::alloc(64, GFP_KERNEL)?);
/// assert!(skb.is_ok());
/// # Ok::<(), Error>(())
/// ```
#[repr(transparent)]
pub struct UniqueSkBuff(SkBuff);

impl UniqueSkBuff {
    /// Makes sure that there is no other reference to a packet.
    ///
    /// # Errors
    ///
    /// Returns the packet if there is one.
    #[inline]
    pub fn new(skb: SkBuff) -> Result<Self, SkBuff> {
        if skb.is_shared() {
            return Err(skb);
        }
        // INVARIANT: The only reference is ours, and it takes a reference to make another one.
        Ok(Self(skb))
    }
}

impl Deref for UniqueSkBuff {
    type Target = SkBuff;

    #[inline]
    fn deref(&self) -> &SkBuff {
        &self.0
    }
}

impl From<UniqueSkBuff> for SkBuff {
    #[inline]
    fn from(skb: UniqueSkBuff) -> Self {
        skb.0
    }
}

// The node is in a union with the other ways to link packets, at the beginning.
static_assert!(offset_of!(bindings::sk_buff, __bindgen_anon_1) == 0);
static_assert!(size_of::<Node>() == size_of::<bindings::llist_node>());

// SAFETY: `ll_node` is at the beginning of a packet, for this purpose. It is ours as long as we
// have the only reference to the packet, which is on no other list then.
unsafe impl Link for UniqueSkBuff {
    #[inline(always)]
    fn into_node(self) -> NonNull<Node> {
        self.0.into_raw().cast()
    }

    #[inline(always)]
    unsafe fn from_node(node: NonNull<Node>) -> Self {
        let skb = node.cast::<bindings::sk_buff>();

        // C code must not take the old link for a list of packets.
        //
        // SAFETY: By the safety requirements, this is a packet that we own.
        unsafe { skb.cast::<*mut Node>().write(ptr::null_mut()) };
        // SAFETY: By the safety requirements, `into_node` has given up a reference to it.
        // INVARIANT: It was the only one.
        Self(unsafe { SkBuff::from_raw(skb) })
    }
}
