// SPDX-License-Identifier: GPL-2.0

//! The number of a transmit queue, for tests.

use super::TxQueue;

impl<D> TxQueue<'_, D> {
    pub(in crate::net) fn index(&self) -> usize {
        // SAFETY: By the type invariants, this is one of the queues of a device, which are an
        // array.
        unsafe { self.raw.offset_from((*(*self.raw).dev)._tx) as usize }
    }
}
