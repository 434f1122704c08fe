// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::net::page_pool`: buffers that count where they are.

pub(crate) mod ring;

use crate::net::skbuff::UniqueSkBuff;
use crate::prelude::Result;
use std::cell::Cell;
use std::marker::PhantomData;
use std::rc::Rc;

/// A buffer of the pool, which returns there when it is dropped.
pub(crate) struct DeviceBuffer {
    /// As many as were ever taken of the pool before.
    pub(crate) number: usize,
    out: Rc<Cell<usize>>,
}

impl DeviceBuffer {
    pub(crate) fn new(number: usize, out: Rc<Cell<usize>>) -> Self {
        out.set(out.get() + 1);
        Self { number, out }
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        self.out.set(self.out.get() - 1);
    }
}

/// A buffer that a packet is made of, and its length.
pub(crate) struct Buffer {
    pub(crate) number: usize,
    pub(crate) len: u16,
}

/// A buffer that the CPU has.
pub(crate) struct CpuBuffer<'p> {
    pub(crate) buffer: Buffer,
    _poll: PhantomData<&'p ()>,
}

impl CpuBuffer<'_> {
    fn new(buffer: DeviceBuffer, len: u16) -> Self {
        Self {
            buffer: Buffer {
                number: buffer.number,
                len,
            },
            _poll: PhantomData,
        }
    }

    pub(crate) fn into_skb(self) -> Option<UniqueSkBuff> {
        let mut skb = UniqueSkBuff::new(Vec::new(), self.buffer.len.into());
        skb.buffers.push(self.buffer);
        Some(skb)
    }

    pub(crate) fn add_to(self, skb: &mut UniqueSkBuff) -> Result {
        skb.more += u32::from(self.buffer.len);
        skb.buffers.push(self.buffer);
        Ok(())
    }
}
