// SPDX-License-Identifier: GPL-2.0

//! Packets that are ours alone.

use super::{
    allowed,
    SkBuff, //
};
use crate::{
    alloc::{
        AllocError,
        Flags, //
    },
    bindings,
    prelude::*, //
};
use core::{
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};

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
        let most = SkBuff::MAX_LEN.saturating_sub(self.len()) as usize;
        if usize::try_from(tailroom)?.min(most) < bytes.len() {
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

impl From<UniqueSkBuff> for SkBuff {
    #[inline]
    fn from(skb: UniqueSkBuff) -> Self {
        skb.0
    }
}
