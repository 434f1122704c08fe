// SPDX-License-Identifier: GPL-2.0

//! Packets that are ours alone.
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
//! [`TxSkBuff`]: super::TxSkBuff

use super::{
    users::is_sole,
    SkBuff, //
};

use crate::{
    alloc::{
        AllocError,
        Flags, //
    },
    bindings,
    error::to_result,
    prelude::*,
    sync::atomic::Atomic, //
};
use core::{
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};

/// `flags` without memory that the kernel reaches by mappings for a while only: it could not copy a
/// packet there.
pub(super) fn allowed(flags: Flags) -> bindings::gfp_t {
    flags.as_raw() & !__GFP_HIGHMEM.as_raw()
}

/// A packet that is ours alone: there is no other reference to it, and its data is not shared.
///
/// It can be edited, and handed to the stack as received: GRO merges packets by editing them. It is
/// either new, or has been made so by [`SkBuff::into_unique`].
///
/// # Invariants
///
/// - There is no other reference to the packet.
/// - There is no clone of it: its linear part and its shared info have no other owner.
/// - It has neither a socket nor a route.
///
/// # Examples
///
/// ```
/// use kernel::net::skbuff::UniqueSkBuff;
///
/// let mut skb = UniqueSkBuff::alloc(64, GFP_KERNEL)?;
/// skb.put(b"hello")?;
/// skb.data_mut()[0] = b'j';
/// assert_eq!(skb.data(), b"jello");
/// assert_eq!(skb.len(), 5);
///
/// // There is not that much room.
/// assert!(skb.put(&[0; 4096]).is_err());
/// # Ok::<(), Error>(())
/// ```
#[repr(transparent)]
pub struct UniqueSkBuff(SkBuff);

impl UniqueSkBuff {
    /// Allocates an empty packet with room for `size` bytes of linear data.
    ///
    /// Fails if that is more than [`SkBuff::MAX_LEN`].
    pub fn alloc(size: u32, flags: Flags) -> Result<Self, AllocError> {
        // C code rounds the size up, in 32 bits.
        if size > SkBuff::MAX_LEN {
            return Err(AllocError);
        }

        // SAFETY: `alloc_skb()` has no requirements apart from the context, which `flags` give.
        let skb = unsafe { bindings::alloc_skb(size, allowed(flags)) };
        let skb = NonNull::new(skb).ok_or(AllocError)?;
        // SAFETY: `alloc_skb()` returned the only reference to a valid `struct sk_buff`, which is
        // new.
        Ok(unsafe { Self::from_new(skb) })
    }

    /// Takes over a packet that is new, or has been made as good as new.
    ///
    /// # Safety
    ///
    /// `ptr` must point to a valid `struct sk_buff`, and the caller must own the only reference to
    /// it, which it must not use afterwards. The packet must have neither clones, nor a socket, nor
    /// a route.
    #[inline]
    pub(in crate::net) unsafe fn from_new(ptr: NonNull<bindings::sk_buff>) -> Self {
        // SAFETY: By the safety requirements.
        // INVARIANT: The safety requirements are the type invariants.
        Self(unsafe { SkBuff::from_raw(ptr) })
    }

    /// The linear part of the packet for writing.
    #[inline]
    pub fn data_mut(&mut self) -> &mut [u8] {
        let len = self.head_len() as usize;

        // SAFETY: By the type invariants, `data` points to `head_len` valid bytes, and neither the
        // packet nor its data have another owner.
        unsafe { slice::from_raw_parts_mut((*self.as_raw()).data, len) }
    }

    /// Appends `bytes` to the linear part.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if the buffer is too small, or if the packet would get longer than
    /// [`SkBuff::MAX_LEN`]; `EINVAL` if it has data behind its linear part already.
    pub fn put(&mut self, bytes: &[u8]) -> Result {
        if self.head_len() != self.len() {
            return Err(EINVAL);
        }

        // SAFETY: By the type invariants, the packet is valid.
        let tailroom = unsafe { bindings::skb_tailroom(self.as_raw()) };
        // The allocator may have given more room than was asked for.
        //
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        let max = SkBuff::MAX_LEN.saturating_sub(self.len()) as usize;
        if usize::try_from(tailroom)?.min(max) < bytes.len() {
            return Err(ENOSPC);
        }

        // CAST: The length is at most `MAX_LEN`.
        //
        // SAFETY: The packet is ours alone and linear, and has at least `bytes.len()` bytes of room
        // at its end, which `skb_put()` returns. `bytes` cannot overlap with it, since `self` is
        // exclusive.
        unsafe {
            let tail = bindings::skb_put(self.as_raw(), bytes.len() as u32);
            ptr::copy_nonoverlapping(bytes.as_ptr(), tail.cast::<u8>(), bytes.len());
        }
        Ok(())
    }
}

impl Deref for UniqueSkBuff {
    type Target = SkBuff;

    #[inline]
    fn deref(&self) -> &SkBuff {
        &self.0
    }
}

/// A packet that is ours alone can be used as any other.
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
impl From<UniqueSkBuff> for SkBuff {
    #[inline]
    fn from(skb: UniqueSkBuff) -> Self {
        skb.0
    }
}

impl SkBuff {
    /// Whether there are other owners of this very packet.
    #[inline]
    pub fn is_shared(&self) -> bool {
        // SAFETY: `self.ptr` is valid by the type invariants. `refcount_t` is an `atomic_t`, which
        // holds an `int`, and is only accessed with atomic operations.
        let users =
            unsafe { Atomic::<i32>::from_ptr((&raw mut (*self.as_raw()).users).cast::<i32>()) };
        !is_sole(users)
    }

    /// Whether data of the packet can be replaced by a copy here.
    ///
    /// Memory that a page pool or user space has lent returns to its owner then. That must not
    /// interrupt the owner, which works with bottom halves disabled: interrupts have to be enabled.
    #[inline]
    pub(super) fn can_be_copied(&self) -> bool {
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
        }
        // It is on no device until one receives it: no queue takes it for one of its own, and the
        // number of the queue that has transmitted it is not taken for that of a receive queue. Nor
        // does its priority go on.
        //
        // SAFETY: The packet is valid, and there is no other reference to it.
        unsafe {
            let header = &raw mut (*self.as_raw()).__bindgen_anon_4.__bindgen_anon_1;

            (*header.cast::<bindings::sk_buff__bindgen_ty_4__bindgen_ty_1>()).priority = 0;
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
}
