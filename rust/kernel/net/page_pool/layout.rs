// SPDX-License-Identifier: GPL-2.0

//! The layout of a receive buffer.

use crate::bindings;

/// The part of a page that the device writes.
///
/// # Invariants
///
/// `headroom + len` and the C side's `struct skb_shared_info` fit into a page, and `len` is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    headroom: u16,
    len: u16,
}

impl Layout {
    /// Bytes at the end of a page that are reserved for the SKB that is built around it.
    pub const TAILROOM: usize =
        size_of::<bindings::skb_shared_info>().next_multiple_of(1 << bindings::L1_CACHE_SHIFT);

    /// Creates a layout of `headroom` bytes that the device leaves alone, followed by `len` bytes
    /// that it may write.
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
    /// assert!(Layout::new(64, 4096).is_none());
    /// assert!(Layout::new(64, 0).is_none());
    /// # Ok::<(), Error>(())
    /// ```
    pub const fn new(headroom: u16, len: u16) -> Option<Self> {
        if len == 0 || headroom as usize + len as usize + Self::TAILROOM > bindings::PAGE_SIZE {
            return None;
        }

        // INVARIANT: Just checked.
        Some(Self { headroom, len })
    }

    /// Number of bytes in front of those that the device writes.
    #[inline]
    pub const fn headroom(self) -> u16 {
        self.headroom
    }

    /// Number of bytes that the device may write.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub const fn len(self) -> u16 {
        self.len
    }
}
