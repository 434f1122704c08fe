// SPDX-License-Identifier: GPL-2.0

//! Packets to which there is no other reference.

use super::{
    allowed,
    offload,
    own::OwnHead,
    SkBuff,
    UniqueSkBuff, //
};
use crate::{
    alloc::Flags,
    bindings,
    error::to_result,
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
/// only packets with one owner can be put on a list. The same goes for the device and the headers
/// that the stack notes in a packet when it is received.
///
/// The data may still be shared with clones of the packet, see [`UniqueSkBuff`].
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
///     UniqueSkBuff,
///     UnsharedSkBuff, //
/// };
///
/// let skb = SkBuff::from(UniqueSkBuff::alloc(64, GFP_KERNEL)?);
/// assert!(UnsharedSkBuff::new(skb).is_ok());
/// # Ok::<(), Error>(())
/// ```
#[repr(transparent)]
pub struct UnsharedSkBuff(SkBuff);

impl UnsharedSkBuff {
    /// Makes sure that there is no other reference to a packet. See also [`SkBuff::unshare`].
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

    /// See [`SkBuff::into_unique`].
    pub fn into_unique(mut self, flags: Flags) -> Result<UniqueSkBuff, Self> {
        if self.scrub(flags).is_err() {
            return Err(self);
        }
        // SAFETY: The packet is valid, and there is no other reference to it. `flags` allow the
        // context.
        if unsafe { bindings::skb_unclone(self.as_raw(), allowed(flags)) } != 0 {
            return Err(self);
        }
        // SAFETY: This is the only reference, there are no clones any more, and the packet has been
        // scrubbed.
        Ok(unsafe { UniqueSkBuff::from_new(self.0.into_raw()) })
    }

    /// Removes the state of the packet's sender, as `dev_forward_skb()` does, and its device.
    ///
    /// # Errors
    ///
    /// [`EBUSY`] if interrupts are disabled: a socket cannot be released then. [`ENOMEM`] if there
    /// is no memory for a copy of what user space may still write to.
    pub(in crate::net) fn scrub(&mut self, flags: Flags) -> Result {
        // SAFETY: There are no requirements.
        if unsafe { bindings::irqs_disabled() } {
            return Err(EBUSY);
        }

        // SAFETY: The packet is valid, and there is no other reference to it. Interrupts are
        // enabled, so this is a context in which sockets, routes and connections can be released.
        unsafe {
            to_result(bindings::skb_orphan_frags(self.as_raw(), allowed(flags)))?;
            bindings::skb_orphan(self.as_raw());
            bindings::skb_scrub_packet(self.as_raw(), true);
            // A sum over the whole packet would not be right without the Ethernet header.
            bindings::skb_forward_csum(self.as_raw());
        }
        offload::clear_priority(self);
        // It is on no device until one receives it: no queue takes it for one of its own, and the
        // number of the queue that has transmitted it is not taken for that of a receive queue.
        //
        // SAFETY: The packet is valid, and there is no other reference to it.
        unsafe {
            (*self.as_raw()).queue_mapping = 0;
            (*self.as_raw())
                .__bindgen_anon_1
                .__bindgen_anon_1
                .__bindgen_anon_1
                .dev = ptr::null_mut();
        }
        Ok(())
    }
}

impl Deref for UnsharedSkBuff {
    type Target = SkBuff;

    #[inline]
    fn deref(&self) -> &SkBuff {
        &self.0
    }
}

impl From<UnsharedSkBuff> for SkBuff {
    #[inline]
    fn from(skb: UnsharedSkBuff) -> Self {
        skb.0
    }
}

impl From<UniqueSkBuff> for UnsharedSkBuff {
    #[inline]
    fn from(skb: UniqueSkBuff) -> Self {
        // INVARIANT: There is no other reference to such a packet.
        Self(skb.into())
    }
}

// SAFETY: By the type invariants.
unsafe impl OwnHead for UnsharedSkBuff {}

// The node is in a union with the other ways to link packets, at the beginning.
static_assert!(offset_of!(bindings::sk_buff, __bindgen_anon_1) == 0);
static_assert!(size_of::<Node>() == size_of::<bindings::llist_node>());

// SAFETY: `ll_node` is at the beginning of a packet, for this purpose. It is ours as long as we
// have the only reference to the packet, which is on no other list then.
unsafe impl Link for UnsharedSkBuff {
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
