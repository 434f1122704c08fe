// SPDX-License-Identifier: GPL-2.0

//! The data of a packet: its linear part and its fragments.

use super::SkBuff;

use crate::bindings;

use core::slice;

impl SkBuff {
    /// The most bytes that a packet has, `GSO_MAX_SIZE`.
    ///
    /// C code computes with lengths in types of 32 bits, with and without sign, and relies on it
    /// that nothing overflows: no greater length gets there.
    pub const MAX_LEN: u32 = 8 * 65535;

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

    #[inline]
    pub(crate) fn shared_info(&self) -> *mut bindings::skb_shared_info {
        // No reference to all of it: others may change the number of its users meanwhile.
        let skb = self.as_raw();

        // `sk_buff_data_t` is an offset from `head` on 64 bit, and a pointer elsewhere.
        #[cfg(CONFIG_64BIT)]
        // SAFETY: `self.ptr` is valid by the type invariants. The shared info is at the end of the
        // head, in the same allocation.
        let end = unsafe { (*skb).head.add((*skb).end as usize) };
        #[cfg(not(CONFIG_64BIT))]
        // SAFETY: As above.
        let end = unsafe { (*skb).end };

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
