// SPDX-License-Identifier: GPL-2.0
//! Descriptor rings.

use crate::descriptor::SIZE;
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
