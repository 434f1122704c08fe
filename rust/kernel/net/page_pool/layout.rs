// SPDX-License-Identifier: GPL-2.0

//! The layout of a receive buffer.

use crate::bindings;

/// A receive buffer, and the part of it that the device writes.
///
/// A buffer is a page ([`Layout::new`]), or half of one ([`Layout::half_page`]), so that a page
/// serves two short packets.
///
/// Two halves share a mapping: an IOMMU does not protect one of them from a device that writes too
/// much into the other. The device gets both at the same time. If both are freed in the same batch,
/// as forwarded packets are, the page returns to its pool without an atomic operation.
///
/// A device that knows only coarse sizes of buffers may be kept within [`Layout::len`] by its limit
/// to the length of frames, if nothing gets past that: neither loopback, nor a feature that merges
/// frames, nor frames in its own memory when the limit was lowered. A driver that relies on this
/// has to say so.
///
/// # Invariants
///
/// `size` is a page, or half of one. `headroom + len` and the C side's
/// `struct skb_shared_info` fit into it, and `len` is not 0. `headroom + len` is less than
/// `u16::MAX`: an SKB has the offsets of its headers in 16 bits, of which all ones are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    headroom: u16,
    len: u16,
    size: u32,
}

impl Layout {
    /// Bytes at the end of a buffer that are reserved for the SKB that is built around it.
    const TAILROOM: usize =
        size_of::<bindings::skb_shared_info>().next_multiple_of(1 << bindings::L1_CACHE_SHIFT);

    /// Creates a layout of a page: `headroom` bytes that the device leaves alone, followed by `len`
    /// bytes that it may write.
    ///
    /// Returns [`None`] if `len` is 0, or if an SKB could not be built around such a page.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::net::page_pool::Layout;
    ///
    /// let layout = Layout::new(64, 3072).ok_or(EINVAL)?;
    /// assert_eq!(layout.len(), 3072);
    /// assert!(Layout::new(64, 4096).is_none() || kernel::page::PAGE_SIZE > 4096);
    /// assert!(Layout::new(64, 0).is_none());
    /// # Ok::<(), Error>(())
    /// ```
    pub const fn new(headroom: u16, len: u16) -> Option<Self> {
        Self::of_size(bindings::PAGE_SIZE, headroom, len)
    }

    /// As [`Self::new`], of half a page.
    ///
    /// # Examples
    ///
    /// ```
    /// use kernel::net::page_pool::Layout;
    ///
    /// let layout = Layout::half_page(64, 1536).ok_or(EINVAL)?;
    /// assert_eq!(layout.size(), kernel::page::PAGE_SIZE / 2);
    /// assert!(Layout::half_page(64, 2048).is_none() || kernel::page::PAGE_SIZE > 4096);
    /// # Ok::<(), Error>(())
    /// ```
    pub const fn half_page(headroom: u16, len: u16) -> Option<Self> {
        Self::of_size(bindings::PAGE_SIZE / 2, headroom, len)
    }

    /// `size` must be that of a buffer.
    const fn of_size(size: usize, headroom: u16, len: u16) -> Option<Self> {
        let end = headroom as usize + len as usize;

        if len == 0 || end + Self::TAILROOM > size || end >= u16::MAX as usize {
            return None;
        }

        // INVARIANT: Just checked. Sizes fit: pages are of 64 KiB at most.
        Some(Self {
            headroom,
            len,
            size: size as u32,
        })
    }

    /// Number of bytes of the whole buffer.
    #[inline]
    pub const fn size(self) -> usize {
        self.size as usize
    }

    /// Whether two buffers share a page.
    #[inline]
    pub(super) const fn is_half(self) -> bool {
        self.size() < bindings::PAGE_SIZE
    }

    /// Number of buffers that are allocated together, since they share a page.
    #[inline]
    pub(super) const fn per_page(self) -> usize {
        if self.is_half() {
            2
        } else {
            1
        }
    }

    /// Number of bytes in front of those that the device writes.
    #[inline]
    pub const fn headroom(self) -> u16 {
        self.headroom
    }

    /// Number of bytes in front of the C side's `struct skb_shared_info`.
    #[inline]
    pub(in crate::net) const fn shared_info(self) -> usize {
        self.size() - Self::TAILROOM
    }

    /// Number of bytes that the device may write.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub const fn len(self) -> u16 {
        self.len
    }
}
