// SPDX-License-Identifier: GPL-2.0

//! Socket buffers: the packets that travel through the network stack.
//!
//! C header: [`include/linux/skbuff.h`](srctree/include/linux/skbuff.h)
//!
//! A [`SkBuff`] owns one reference to a `struct sk_buff`. Its owner decides the fate of the packet,
//! and each of these decisions consumes it: hand it to the stack with [`napi::Poll::receive`], to a
//! card by queueing it, or drop it with a [`DropReason`]. There is no way to use a packet after
//! that, to free it twice, or to lose one silently: a [`SkBuff`] that goes out of scope is freed as
//! a drop.
//!
//! # States
//!
//! A packet can have several owners, and packets that are clones of each other share their data:
//! TCP transmits clones of the packets that it may have to send again. The operations on a packet
//! depend on its other users, so there is a type for each state:
//!
//! | type | other references to it | its data | what can be done with it |
//! | --- | --- | --- | --- |
//! | [`SkBuff`] | maybe | may be shared | read, transmit, free |
//! | [`UniqueSkBuff`] | none | ours alone | also edit it, receive it |
//!
//! The stack transmits a [`SkBuff`], which a driver gets as a [`TxSkBuff`]: that can be returned as
//! long as it is the packet of the stack. A packet that was just allocated, or built around a
//! receive buffer, is a [`UniqueSkBuff`]. That can be converted to a [`SkBuff`], and back with
//! [`SkBuff::into_unique`], which copies what is shared.
//!
//! [`napi::Poll::receive`]: super::napi::Poll::receive

use crate::{
    alloc::Flags,
    bindings,
    error::to_result,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use core::{
    mem::ManuallyDrop,
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};

mod joined;
mod offload;
mod segmentation;
mod tests;
mod tx;
mod unique;

pub(in crate::net) use self::offload::set_protocol;
pub use self::{
    offload::{
        ChecksumKind,
        PartialChecksum,
        RxHash, //
    },
    segmentation::{
        Segmentation, //
        SegmentedProtocol,
    },
    tx::{
        Outgoing,
        TxSkBuff,
        Xmit, //
    },
    unique::UniqueSkBuff, //
};

/// Why a packet was not delivered.
///
/// The kernel reports the reason through the `skb:kfree_skb` tracepoint and drop monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum DropReason {
    /// No reason was given.
    NotSpecified = bindings::skb_drop_reason_SKB_DROP_REASON_NOT_SPECIFIED,
    /// The device was not ready to transmit.
    DeviceNotReady = bindings::skb_drop_reason_SKB_DROP_REASON_DEV_READY,
    /// The descriptor ring had no room.
    FullRing = bindings::skb_drop_reason_SKB_DROP_REASON_FULL_RING,
    /// There was no memory.
    NoMemory = bindings::skb_drop_reason_SKB_DROP_REASON_NOMEM,
    /// The packet ends within a header.
    TruncatedHeader = bindings::skb_drop_reason_SKB_DROP_REASON_HDR_TRUNC,
}

/// An owned reference to a socket buffer.
///
/// There may be other references to the packet, and its data may be shared with clones: it can be
/// read, transmitted and freed.
///
/// Dropping it frees the packet with [`DropReason::NotSpecified`], in any context.
///
/// # Invariants
///
/// `ptr` points to a valid `struct sk_buff` and we own one of its references. Its length fields
/// describe memory that stays valid as long as the reference is held.
///
/// # Examples
///
/// ```
/// use kernel::net::skbuff::{
///     SkBuff,
///     UniqueSkBuff, //
/// };
///
/// let mut new = UniqueSkBuff::alloc(64, GFP_KERNEL)?;
/// new.put(b"hello")?;
///
/// let skb = SkBuff::from(new);
/// assert_eq!(skb.data(), b"hello");
/// assert_eq!(skb.len(), 5);
/// skb.consume();
/// # Ok::<(), Error>(())
/// ```
///
/// A packet that has been given away cannot be used again:
///
/// ```ignore
/// skb.consume();
/// skb.consume(); // Does not compile: `skb` has been moved.
/// ```
#[repr(transparent)]
pub struct SkBuff {
    ptr: NonNull<bindings::sk_buff>,
}

// SAFETY: A reference to a `struct sk_buff` can be dropped from any context, and nothing in it is
// tied to a CPU or task.
unsafe impl Send for SkBuff {}

// SAFETY: With a shared reference, a `SkBuff` can be read only.
unsafe impl Sync for SkBuff {}

/// `flags` without memory that the kernel reaches by mappings for a while only: it could not copy a
/// packet there.
pub(in crate::net) fn allowed(flags: Flags) -> bindings::gfp_t {
    flags.as_raw() & !__GFP_HIGHMEM.as_raw()
}

impl SkBuff {
    /// The most bytes that a packet has, `GSO_MAX_SIZE`.
    ///
    /// C code computes with lengths in types of 32 bits, with and without sign, and relies on it
    /// that nothing overflows: no greater length gets there.
    pub const MAX_LEN: u32 = 8 * 65535;

    /// Takes over a reference to a `struct sk_buff`.
    ///
    /// # Safety
    ///
    /// `ptr` must point to a valid `struct sk_buff`, and the caller must own a reference to it,
    /// which it must not use afterwards.
    #[inline]
    pub(crate) unsafe fn from_raw(ptr: NonNull<bindings::sk_buff>) -> Self {
        // INVARIANT: The safety requirements are the type invariants.
        Self { ptr }
    }

    /// Gives up the reference without dropping it.
    #[inline]
    pub(crate) fn into_raw(self) -> NonNull<bindings::sk_buff> {
        ManuallyDrop::new(self).ptr
    }

    /// Returns the pointer; the reference stays with `self`.
    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::sk_buff {
        self.ptr.as_ptr()
    }

    /// Number of bytes in the packet: linear data, fragments and the fragment list.
    #[inline]
    #[expect(clippy::len_without_is_empty)]
    pub fn len(&self) -> u32 {
        // SAFETY: `self.ptr` is valid by the type invariants.
        unsafe { (*self.as_raw()).len }
    }

    /// Number of bytes in the linear part, see [`Self::data`].
    #[inline]
    pub fn head_len(&self) -> u32 {
        // SAFETY: `self.ptr` is valid by the type invariants.
        let data_len = unsafe { (*self.as_raw()).data_len };

        // The stack keeps `len >= data_len`.
        self.len().wrapping_sub(data_len)
    }

    /// The linear part of the packet.
    #[inline]
    pub fn data(&self) -> &[u8] {
        // SAFETY: By the type invariants, `data` points to `head_len` valid bytes. Data that
        // several owners share is not written by any of them, and `&self` keeps us from it.
        unsafe { slice::from_raw_parts((*self.as_raw()).data, self.head_len() as usize) }
    }

    /// Whether there are other owners of this very packet.
    #[inline]
    pub fn is_shared(&self) -> bool {
        // SAFETY: `self.ptr` is valid by the type invariants. `refcount_t` is an `atomic_t`, which
        // holds an `int`, and is only accessed with atomic operations.
        let users =
            unsafe { Atomic::<i32>::from_ptr((&raw mut (*self.as_raw()).users).cast::<i32>()) };
        users.load(Relaxed) != 1
    }

    /// Whether data of the packet can be replaced by a copy here.
    ///
    /// Memory that a page pool or user space has lent returns to its owner then. That must not
    /// interrupt the owner, which works with bottom halves disabled: interrupts have to be enabled.
    #[inline]
    fn can_be_copied(&self) -> bool {
        // SAFETY: `self.ptr` is valid by the type invariants, and so is the shared info. Owners of
        // clones write to other fields of that: there is no reference to it as a whole.
        let (is_pooled, flags, frag_list) = unsafe {
            (
                bindings::sk_buff::pp_recycle_raw(self.as_raw()) != 0,
                (*self.shared_info()).flags,
                (*self.shared_info()).frag_list,
            )
        };
        // Packets on a list of fragments have memory of their own.
        let is_lent = is_pooled
            || u32::from(flags) & bindings::SKBFL_ZEROCOPY_ENABLE != 0
            || !frag_list.is_null();

        // SAFETY: There are no requirements.
        !is_lent || !unsafe { bindings::irqs_disabled() }
    }

    /// Pads a short packet with zeroes to at least `len` bytes.
    ///
    /// Data that is shared is copied.
    ///
    /// # Errors
    ///
    /// [`EMSGSIZE`] if it would get longer than [`Self::MAX_LEN`], [`EBUSY`] if there are other
    /// references to the packet, or if interrupts are disabled and its memory is that of a page
    /// pool or of user space; [`ENOMEM`] if there is no memory. The packet is dropped.
    #[inline]
    pub fn pad_to(self, len: u32) -> Result<Self> {
        if self.len() >= len {
            return Ok(self);
        }
        if len > Self::MAX_LEN {
            return Err(EMSGSIZE);
        }
        if self.is_shared() || !self.can_be_copied() {
            return Err(EBUSY);
        }

        // SAFETY: The packet is valid, and there is no other reference to it. It grows by less than
        // `MAX_LEN`. It stays ours if this fails.
        to_result(unsafe { bindings::__skb_put_padto(self.as_raw(), len, false) })?;
        Ok(self)
    }

    /// Returns a clone, to which there is no other reference.
    #[cold]
    fn into_clone(self, flags: Flags) -> Result<Self, Self> {
        // SAFETY: The packet is valid, and `flags` allow the context.
        let clone = unsafe { bindings::skb_clone(self.as_raw(), allowed(flags)) };
        let Some(clone) = NonNull::new(clone) else {
            return Err(self);
        };

        self.consume();
        // SAFETY: The clone is new, so this is the only reference to it.
        Ok(unsafe { Self::from_raw(clone) })
    }

    /// Removes the state of the packet's sender, as `dev_forward_skb()` does, and its device.
    ///
    /// # Errors
    ///
    /// [`EBUSY`] if interrupts are disabled: a socket cannot be released then. [`ENOMEM`] if there
    /// is no memory for a copy of what user space may still write to.
    ///
    /// # Safety
    ///
    /// There must be no other reference to the packet.
    unsafe fn scrub(&self, flags: Flags) -> Result {
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
            offload::clear_priority(self);
        }
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

    /// Makes the packet ours alone, as if it had just come from a wire.
    ///
    /// Shared data is copied, and the state of its sender is removed: socket, route, connection,
    /// timestamps. A packet that was transmitted has to go through this before it is received.
    ///
    /// # Errors
    ///
    /// Returns the packet, or a clone of it, if there is no memory or if interrupts are disabled: a
    /// socket cannot be released then.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::net::skbuff::{
    ///     SkBuff,
    ///     UniqueSkBuff, //
    /// };
    ///
    /// let mut new = UniqueSkBuff::alloc(64, GFP_KERNEL)?;
    /// new.put(b"hello")?;
    ///
    /// let transmitted = SkBuff::from(new);
    /// let mut received = transmitted.into_unique(GFP_KERNEL).map_err(|_| ENOMEM)?;
    /// received.data_mut()[0] = b'j';
    /// assert_eq!(received.data(), b"jello");
    /// # Ok::<(), Error>(())
    /// ```
    #[inline]
    pub fn into_unique(self, flags: Flags) -> Result<UniqueSkBuff, Self> {
        let skb = if self.is_shared() {
            self.into_clone(flags)?
        } else {
            self
        };

        // SAFETY: The only reference is ours, and it takes a reference to make another one.
        if unsafe { skb.scrub(flags) }.is_err() {
            return Err(skb);
        }
        // SAFETY: The packet is valid, and there is no other reference to it. `flags` allow the
        // context.
        if unsafe { bindings::skb_unclone(skb.as_raw(), allowed(flags)) } != 0 {
            return Err(skb);
        }
        // SAFETY: This is the only reference, there are no clones any more, and the packet has been
        // scrubbed.
        Ok(unsafe { UniqueSkBuff::from_new(skb.into_raw()) })
    }

    #[inline]
    pub(crate) fn shared_info(&self) -> *mut bindings::skb_shared_info {
        // SAFETY: `self.ptr` is valid by the type invariants.
        let skb = unsafe { &*self.as_raw() };

        // `sk_buff_data_t` is an offset from `head` on 64 bit, and a pointer elsewhere.
        #[cfg(CONFIG_64BIT)]
        // SAFETY: The shared info is at the end of the head, in the same allocation.
        let end = unsafe { skb.head.add(skb.end as usize) };
        #[cfg(not(CONFIG_64BIT))]
        let end = skb.end;

        end.cast::<bindings::skb_shared_info>()
    }

    /// Number of page fragments behind the linear part.
    #[inline]
    pub fn nr_frags(&self) -> usize {
        // SAFETY: The shared info of a valid packet is valid.
        usize::from(unsafe { (*self.shared_info()).nr_frags })
    }

    /// Whether the packet has a fragment list, that is, further buffers.
    ///
    /// Devices without `NETIF_F_FRAGLIST` never get such a packet to transmit.
    #[inline]
    pub fn has_frag_list(&self) -> bool {
        // SAFETY: The shared info of a valid packet is valid.
        !unsafe { (*self.shared_info()).frag_list }.is_null()
    }

    /// The page fragments behind the linear part, in order.
    #[inline]
    pub fn frags(&self) -> impl ExactSizeIterator<Item = Frag<'_>> + '_ {
        let info = self.shared_info();
        let len = self.nr_frags().min(bindings::MAX_SKB_FRAGS as usize);

        // SAFETY: The first `nr_frags` fragments of a valid packet are valid, and do not change
        // while we own a reference: only a sole owner may change them.
        let frags = unsafe {
            slice::from_raw_parts(
                (&raw const (*info).frags).cast::<bindings::skb_frag_t>(),
                len,
            )
        };
        frags.iter().map(Frag)
    }

    /// The transmit queue that the stack chose for this packet.
    #[inline]
    pub fn queue_mapping(&self) -> u16 {
        // SAFETY: `self.ptr` is valid by the type invariants.
        unsafe { (*self.as_raw()).queue_mapping }
    }

    /// Frees the packet, and reports the loss with its reason.
    #[inline]
    pub fn drop_with(self, reason: DropReason) {
        // SAFETY: We own a reference, which `dev_kfree_skb_any_reason()` takes over. It may be
        // called from any context.
        unsafe { bindings::dev_kfree_skb_any_reason(self.into_raw().as_ptr(), reason as u32) };
    }

    /// Frees the packet without reporting a loss: it has reached its destination.
    ///
    /// On the completion path, prefer an [`SkbFreeList`](super::skb_free::SkbFreeList).
    #[inline]
    pub fn consume(self) {
        // SAFETY: As in `drop_with()`.
        unsafe {
            bindings::dev_kfree_skb_any_reason(
                self.into_raw().as_ptr(),
                bindings::skb_drop_reason_SKB_CONSUMED,
            )
        };
    }
}

impl Drop for SkBuff {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: We own a reference, which `dev_kfree_skb_any_reason()` takes over. It may be
        // called from any context.
        unsafe {
            bindings::dev_kfree_skb_any_reason(self.as_raw(), DropReason::NotSpecified as u32)
        };
    }
}

/// A page fragment of a packet.
///
/// The memory may belong to user space and change at any time; there is no access to its contents.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Frag<'a>(&'a bindings::skb_frag_t);

impl<'a> Frag<'a> {
    /// Number of bytes in the fragment.
    #[inline]
    #[expect(clippy::len_without_is_empty)]
    pub fn len(self) -> u32 {
        self.0.len
    }

    #[inline]
    pub(crate) fn as_raw(self) -> *const bindings::skb_frag_t {
        self.0
    }
}
