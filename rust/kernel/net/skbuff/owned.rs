// SPDX-License-Identifier: GPL-2.0

//! Packets that have one owner each.

use crate::bindings;

use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};

/// Why a packet was not delivered.
///
/// The kernel reports the reason through the `skb:kfree_skb` tracepoint and
/// drop monitor.
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
/// There may be other references to the packet, and its data may be shared with
/// clones: it is neither written to nor merged with another packet.
///
/// Dropping it frees the packet with [`DropReason::NotSpecified`], in any
/// context.
///
/// # Invariants
///
/// `ptr` points to a valid `struct sk_buff` and we own one of its references.
/// Its length fields describe memory that stays valid as long as the reference
/// is held.
///
/// # Examples
///
/// ```
/// use kernel::net::skbuff::{
///     DropReason,
///     SkBuff, //
/// };
///
/// fn transmit(skb: SkBuff, is_ready: bool) -> u32 {
///     let len = skb.len();
///
///     if is_ready {
///         skb.consume();
///     } else {
///         skb.drop_with(DropReason::DeviceNotReady);
///     }
///     len
/// }
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

// SAFETY: A reference to a `struct sk_buff` can be dropped from any context,
// and nothing in it is tied to a CPU or task.
unsafe impl Send for SkBuff {}

// SAFETY: With a shared reference, a `SkBuff` can be read only.
unsafe impl Sync for SkBuff {}

impl SkBuff {
    /// Takes over a reference to a `struct sk_buff`.
    ///
    /// # Safety
    ///
    /// `ptr` must point to a valid `struct sk_buff`, and the caller must own a
    /// reference to it, which it must not use afterwards.
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

    /// Number of bytes in the packet: linear data, fragments and the fragment
    /// list.
    #[inline]
    #[expect(clippy::len_without_is_empty)]
    pub fn len(&self) -> u32 {
        // SAFETY: `self.ptr` is valid by the type invariants.
        unsafe { (*self.as_raw()).len }
    }

    /// Frees the packet, and reports the loss with its reason.
    #[inline]
    pub fn drop_with(self, reason: DropReason) {
        let skb = self.into_raw().as_ptr();

        // SAFETY: We own a reference, which `dev_kfree_skb_any_reason()` takes
        // over. It may be called from any context.
        unsafe { bindings::dev_kfree_skb_any_reason(skb, reason as u32) };
    }

    /// Frees the packet without reporting a loss: it has reached its
    /// destination.
    #[inline]
    pub fn consume(self) {
        let skb = self.into_raw().as_ptr();
        let reason = bindings::skb_drop_reason_SKB_CONSUMED;

        // SAFETY: As in `drop_with()`.
        unsafe { bindings::dev_kfree_skb_any_reason(skb, reason) };
    }
}

impl Drop for SkBuff {
    #[inline]
    fn drop(&mut self) {
        let reason = DropReason::NotSpecified as u32;

        // SAFETY: As in `drop_with()`.
        unsafe { bindings::dev_kfree_skb_any_reason(self.as_raw(), reason) };
    }
}

#[macros::kunit_tests(rust_skbuff_owned)]
mod tests {
    use super::*;

    use crate::{
        prelude::*,
        sync::atomic::{
            Atomic,
            Relaxed, //
        }, //
    };

    /// Counts a packet that is freed.
    ///
    /// # Safety
    ///
    /// To be called by C, with a packet whose control block begins with a
    /// pointer to a counter.
    unsafe extern "C" fn freed(skb: *mut bindings::sk_buff) {
        // SAFETY: By the safety requirements.
        let count = unsafe { *(&raw const (*skb).cb).cast::<&Atomic<u32>>() };
        count.fetch_add(1, Relaxed);
    }

    /// A packet of ten bytes that is counted when it is freed.
    fn packet(count: &Atomic<u32>) -> Result<SkBuff> {
        // SAFETY: Tests run in process context. The packet is new: there is
        // room for its data, and for a pointer in its control block. The
        // counter outlives it.
        unsafe {
            let no_dev = core::ptr::null_mut();
            let raw = bindings::__netdev_alloc_skb(no_dev, 64, bindings::GFP_KERNEL);
            let skb = SkBuff::from_raw(NonNull::new(raw).ok_or(ENOMEM)?);

            bindings::skb_put(raw, 10);
            (&raw mut (*raw).cb)
                .cast::<*const Atomic<u32>>()
                .write(count);
            (*raw).__bindgen_anon_3.__bindgen_anon_1.destructor = Some(freed);
            Ok(skb)
        }
    }

    #[test]
    fn a_packet_is_freed_once_however_it_ends() -> Result {
        let count = Atomic::new(0);

        drop(packet(&count)?);
        assert_eq!(count.load(Relaxed), 1);
        packet(&count)?.consume();
        assert_eq!(count.load(Relaxed), 2);
        packet(&count)?.drop_with(DropReason::FullRing);
        assert_eq!(count.load(Relaxed), 3);
        Ok(())
    }

    #[test]
    fn what_is_given_away_is_not_freed() -> Result {
        let count = Atomic::new(0);
        let raw = packet(&count)?.into_raw();

        assert_eq!(count.load(Relaxed), 0);
        // SAFETY: The reference is still ours.
        let skb = unsafe { SkBuff::from_raw(raw) };
        assert_eq!((skb.as_raw(), skb.len()), (raw.as_ptr(), 10));
        drop(skb);
        assert_eq!(count.load(Relaxed), 1);
        Ok(())
    }
}
