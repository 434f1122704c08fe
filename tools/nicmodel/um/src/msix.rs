// SPDX-License-Identifier: GPL-2.0
//! The MSI-X table, and the messages that wait to be sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nicmodel_device::function::Notifier;
use nicmodel_device::irq::VECTORS;

/// Bytes of an entry of the table.
const ENTRY: usize = 16;
/// In an entry, the data of its message and the word with the mask.
const DATA: usize = 8;
const CONTROL: usize = 12;

/// Sets the bit of a vector whose message is to be sent.
pub(crate) struct Line {
    pub(crate) vector: u32,
    pub(crate) pending: Arc<AtomicU64>,
}

impl Notifier for Line {
    fn signal(&self) {
        self.pending.fetch_or(1 << self.vector, Ordering::Relaxed);
    }
}

/// The table, as the kernel has written it.
pub(crate) struct Table {
    bytes: [u8; VECTORS * ENTRY],
    /// A bit for each vector.
    pub(crate) pending: Arc<AtomicU64>,
}

impl Table {
    pub(crate) fn new() -> Self {
        let mut bytes = [0; VECTORS * ENTRY];
        for entry in bytes.chunks_mut(ENTRY) {
            entry[CONTROL] = 1;
        }
        Self {
            bytes,
            pending: Arc::default(),
        }
    }

    pub(crate) fn read(&self, at: u32, data: &mut [u8]) {
        for (byte, at) in data.iter_mut().zip(at as usize..) {
            *byte = self.bytes.get(at).copied().unwrap_or(0);
        }
    }

    pub(crate) fn write(&mut self, at: u32, data: &[u8]) {
        for (byte, at) in data.iter().zip(at as usize..) {
            if let Some(place) = self.bytes.get_mut(at) {
                *place = *byte;
            }
        }
    }

    /// Whether messages wait, masked or not.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed) != 0
    }

    /// Takes the data of a message whose vector is not masked, or 0.
    pub(crate) fn take(&mut self) -> u32 {
        let mut left = self.pending.load(Ordering::Relaxed);
        while left != 0 {
            let vector = left.trailing_zeros();
            left &= left - 1;
            let entry = &self.bytes[vector as usize * ENTRY..][..ENTRY];
            if entry[CONTROL] & 1 == 0 {
                self.pending.fetch_and(!(1 << vector), Ordering::Relaxed);
                let data = entry[DATA..CONTROL].try_into().unwrap_or_default();
                return u32::from_le_bytes(data);
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_message_waits() {
        let mut table = Table::new();
        table.write(16 + 8, &[77, 0, 0, 0]);
        Line {
            vector: 1,
            pending: Arc::clone(&table.pending),
        }
        .signal();
        assert_eq!(table.take(), 0);
        table.write(16 + 12, &[0]);
        assert_eq!((table.take(), table.take()), (77, 0));
    }
}
