// SPDX-License-Identifier: GPL-2.0

//! Counters of poll functions.

use super::Stats64;

use crate::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// A counter with one writer at a time.
///
/// Adding takes no atomic instruction of the CPU.
struct Counter(Atomic<u64>);

impl Counter {
    const fn new() -> Self {
        Self(Atomic::new(0))
    }

    #[inline(always)]
    fn add(&self, count: usize) {
        // CAST: `usize` has at most 64 bits.
        let sum = self.0.load(Relaxed).wrapping_add(count as u64);
        self.0.store(sum, Relaxed);
    }

    #[inline]
    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The counters of a poll function, for [`Stats64::add`].
///
/// Poll functions add to them, once per poll, and any context may read them. One poll function at a
/// time adds to the same ones: if there were several, counts would get lost.
pub struct PollStats {
    rx_packets: Counter,
    rx_bytes: Counter,
    rx_dropped: Counter,
    tx_packets: Counter,
    tx_bytes: Counter,
}

impl PollStats {
    /// Zero counters.
    pub const fn new() -> Self {
        Self {
            rx_packets: Counter::new(),
            rx_bytes: Counter::new(),
            rx_dropped: Counter::new(),
            tx_packets: Counter::new(),
            tx_bytes: Counter::new(),
        }
    }

    /// Adds packets that were received, and those that were dropped instead.
    #[inline]
    pub fn received(&self, packets: usize, bytes: usize, dropped: usize) {
        self.rx_packets.add(packets);
        self.rx_bytes.add(bytes);
        self.rx_dropped.add(dropped);
    }

    /// Adds packets that the NIC has sent.
    #[inline]
    pub fn sent(&self, packets: usize, bytes: usize) {
        self.tx_packets.add(packets);
        self.tx_bytes.add(bytes);
    }
}

impl Default for PollStats {
    fn default() -> Self {
        Self::new()
    }
}

impl Stats64<'_> {
    /// Adds the counters of a poll function.
    pub fn add(&mut self, stats: &PollStats) -> &mut Self {
        self.rx_packets(stats.rx_packets.get())
            .rx_bytes(stats.rx_bytes.get())
            .rx_dropped(stats.rx_dropped.get())
            .tx_packets(stats.tx_packets.get())
            .tx_bytes(stats.tx_bytes.get())
    }
}
