// SPDX-License-Identifier: GPL-2.0
//! The pages that a driver has mapped: what an IOMMU lets through, where a kernel has none.

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

const PAGE: u64 = 4096;

/// How often a page is mapped.
#[derive(Debug, Default)]
struct Page {
    any: AtomicU16,
    writable: AtomicU16,
}

/// The pages of a memory, and the accesses to others.
#[derive(Debug)]
pub struct Mapped {
    first: u64,
    pages: Vec<Page>,
    strays: AtomicU64,
}

impl Mapped {
    /// No page of `size` bytes from `address` on is mapped.
    pub fn new(address: u64, size: u64) -> Self {
        let first = address / PAGE;
        let end = (address + size).div_ceil(PAGE);
        Self {
            first,
            pages: (first..end).map(|_| Page::default()).collect(),
            strays: AtomicU64::new(0),
        }
    }

    fn pages(&self, address: u64, length: u64) -> Option<&[Page]> {
        let last = address.checked_add(length.max(1) - 1)? / PAGE;
        let first = usize::try_from((address / PAGE).checked_sub(self.first)?).ok()?;
        let last = usize::try_from(last.checked_sub(self.first)?).ok()?;
        self.pages.get(first..=last)
    }

    /// A mapping begins or ends.
    pub fn change(&self, address: u64, length: u64, writable: bool, is_mapped: bool) {
        let change = |count: &AtomicU16| {
            let now = count.load(Ordering::Relaxed);
            // The kernel notices by itself that something is unmapped twice.
            let next = if is_mapped {
                now.saturating_add(1)
            } else {
                now.saturating_sub(1)
            };
            count.store(next, Ordering::Relaxed);
        };
        for page in self.pages(address, length).into_iter().flatten() {
            change(&page.any);
            if writable {
                change(&page.writable);
            }
        }
    }

    /// Whether the card gets at all of it; it has strayed otherwise.
    pub(super) fn allows(&self, address: u64, length: usize, writes: bool) -> bool {
        let is_mapped = |page: &Page| {
            let count = if writes { &page.writable } else { &page.any };
            count.load(Ordering::Relaxed) != 0
        };
        let allows = self
            .pages(address, length as u64)
            .is_some_and(|pages| pages.iter().all(is_mapped));
        if !allows {
            self.strays.fetch_add(1, Ordering::Relaxed);
        }
        allows
    }

    /// Takes the number of accesses to pages that were not mapped.
    pub fn take_strays(&self) -> u64 {
        self.strays.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_mapped_until_its_last_mapping_ends() {
        let mapped = Mapped::new(0x1000, 0x4000);
        mapped.change(0x2f00, 0x200, true, true);
        mapped.change(0x3000, 0x1000, false, true);
        assert!(mapped.allows(0x2000, 0x2000, true));
        mapped.change(0x2f00, 0x200, true, false);
        assert!(!mapped.allows(0x3000, 1, true));
        assert!(mapped.allows(0x3000, 1, false));
        assert!(!mapped.allows(0x2fff, 2, false));
        assert_eq!((mapped.take_strays(), mapped.take_strays()), (2, 0));
    }

    #[test]
    fn nothing_beside_the_memory_is_mapped() {
        let mapped = Mapped::new(0x1000, 0x1000);
        mapped.change(0, u64::MAX, true, true);
        mapped.change(0x1000, 0x1000, true, true);
        for (address, length) in [(0, 1), (0xfff, 2), (0x1fff, 2), (0x2000, 1), (u64::MAX, 2)] {
            assert!(!mapped.allows(address, length, false), "{address:#x}");
        }
        assert!(mapped.allows(0x1fff, 1, true));
    }
}
