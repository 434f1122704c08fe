// SPDX-License-Identifier: GPL-2.0
//! Descriptor rings.

use crate::descriptor::{Descriptor, SIZE};
use crate::memory::{DmaError, View};
use crate::regs::bits::{Rdlen, Register};
use crate::regs::file::RegisterFile;
use crate::regs::offset;

/// A descriptor ring as its registers describe it at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ring {
    base: u64,
    count: u32,
    pub head: u32,
    pub tail: u32,
}

impl Ring {
    pub(crate) fn receive(regs: &RegisterFile, queue: u32) -> Option<Self> {
        let at = queue * offset::QUEUE;
        Self::load(regs, at + offset::RDBAL)
    }

    pub(crate) fn transmit(regs: &RegisterFile, queue: u32) -> Option<Self> {
        let at = queue * offset::QUEUE;
        Self::load(regs, at + offset::TDBAL)
    }

    /// Both directions have their registers at the same distances. None if they make no sense.
    fn load(regs: &RegisterFile, at: u32) -> Option<Self> {
        let ring = Self {
            base: regs.pair(at, at + 4) & !0x7f,
            count: Rdlen::from_raw(regs.load(at + 8)).descriptors(),
            head: regs.load(at + 0x10),
            tail: regs.load(at + 0x18),
        };
        (ring.head < ring.count && ring.tail < ring.count).then_some(ring)
    }

    /// Descriptors between head and tail.
    pub(crate) fn filled(&self) -> usize {
        ((self.tail + self.count - self.head) % self.count) as usize
    }

    pub(crate) fn descriptor(&self, index: u32) -> u64 {
        self.base.wrapping_add(u64::from(index * SIZE))
    }

    pub(crate) fn next(&self, index: u32) -> u32 {
        if index + 1 >= self.count {
            0
        } else {
            index + 1
        }
    }
}

/// Descriptors that a card reads at once: a block of memory, which does not cross the end of a page.
const BLOCK: u32 = 16;

/// Descriptors that have been read and not been used.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    descriptors: [Descriptor; BLOCK as usize],
    next: usize,
    end: usize,
}

impl Fetched {
    /// The next descriptor of `ring`, from its head on; there must be one.
    pub(crate) fn next(&mut self, view: &View, ring: &Ring) -> Result<Descriptor, DmaError> {
        if self.next == self.end {
            self.fetch(view, ring)?;
        }
        let found = self.descriptors[self.next];
        self.next += 1;
        Ok(found)
    }

    pub(crate) fn fetch(&mut self, view: &View, ring: &Ring) -> Result<(), DmaError> {
        self.clear();
        let at = ring.descriptor(ring.head);
        let in_block = BLOCK - (at / u64::from(SIZE)) as u32 % BLOCK;
        let to_end = in_block.min(ring.count - ring.head) as usize;
        let filled = ring.filled().clamp(1, to_end);
        view.load_descriptors(at, &mut self.descriptors[..filled])?;
        self.end = filled;
        Ok(())
    }

    /// Those that [`Self::next`] returns without a look at memory.
    pub(crate) fn rest(&self) -> &[Descriptor] {
        &self.descriptors[self.next..self.end]
    }

    /// Forgets what has been read.
    pub(crate) fn clear(&mut self) {
        self.next = 0;
        self.end = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::device;

    fn ring(base: u64, count: u32, head: u32, tail: u32) -> Ring {
        Ring {
            base,
            count,
            head,
            tail,
        }
    }

    /// Uses the descriptors of a ring one by one; returns how many were read each time that some
    /// were.
    fn blocks(mut ring: Ring) -> Vec<usize> {
        let view = device().memory.view();
        for i in 0..ring.count {
            let number = u64::from(i);
            view.store_descriptor(ring.descriptor(i), [number, !number])
                .expect("in memory");
        }
        let mut fetched = Fetched::default();
        let mut found = Vec::new();
        while ring.head != ring.tail {
            let left = fetched.rest().len();
            let number = u64::from(ring.head);
            assert_eq!(fetched.next(&view, &ring), Ok([number, !number]));
            if left == 0 {
                found.push(1 + fetched.rest().len());
            }
            ring.head = ring.next(ring.head);
        }
        found
    }

    #[test]
    fn descriptors_are_read_by_the_block_and_only_those_that_are_filled() {
        assert_eq!(blocks(ring(0x1000, 64, 0, 40)), [16, 16, 8]);
        assert_eq!(blocks(ring(0x1000, 64, 5, 6)), [1]);
        assert_eq!(blocks(ring(0x1000, 64, 14, 20)), [2, 4]);
    }

    #[test]
    fn blocks_end_with_the_ring_and_with_a_page() {
        assert_eq!(blocks(ring(0x1000, 24, 20, 3)), [4, 3]);
        // The page ends eight descriptors behind the base.
        assert_eq!(blocks(ring(0x1f80, 64, 0, 30)), [8, 16, 6]);
    }
}
