// SPDX-License-Identifier: GPL-2.0

//! Counters of a device.

use crate::{
    bindings,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
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

    /// Adds packets that the card has sent.
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

/// The counters that every device has, for the driver to fill in.
///
/// They are zero at first, and the driver adds to them, so that it can go through its queues one by
/// one.
pub struct Stats64<'a> {
    raw: &'a mut bindings::rtnl_link_stats64,
    is_reachable: bool,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident => $field:ident;)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub fn $name(&mut self, count: u64) -> &mut Self {
                self.raw.$field = self.raw.$field.wrapping_add(count);
                self
            }
        )*
    };
}

impl<'a> Stats64<'a> {
    pub(super) fn new(raw: &'a mut bindings::rtnl_link_stats64, is_reachable: bool) -> Self {
        Self { raw, is_reachable }
    }

    /// Whether the counters of the card can be read. If not, it sleeps or is being reset, and what
    /// the driver has read before counts.
    #[inline]
    pub fn is_card_reachable(&self) -> bool {
        self.is_reachable
    }

    /// Adds the counters of a poll function.
    pub fn add(&mut self, stats: &PollStats) -> &mut Self {
        self.rx_packets(stats.rx_packets.get())
            .rx_bytes(stats.rx_bytes.get())
            .rx_dropped(stats.rx_dropped.get())
            .tx_packets(stats.tx_packets.get())
            .tx_bytes(stats.tx_bytes.get())
    }

    counters! {
        /// Adds good packets that were received.
        rx_packets => rx_packets;
        /// Adds bytes in good packets that were received.
        rx_bytes => rx_bytes;
        /// Adds packets that were transmitted.
        tx_packets => tx_packets;
        /// Adds bytes in packets that were transmitted.
        tx_bytes => tx_bytes;
        /// Adds packets that the card received with an error.
        rx_errors => rx_errors;
        /// Adds packets that the card failed to transmit.
        tx_errors => tx_errors;
        /// Adds packets that were received and dropped by the driver, for want of memory.
        rx_dropped => rx_dropped;
        /// Adds packets that the driver dropped instead of transmitting them.
        tx_dropped => tx_dropped;
        /// Adds packets to groups that were received.
        multicast => multicast;
        /// Adds packets that the card received with a bad checksum of the frame.
        rx_crc_errors => rx_crc_errors;
        /// Adds packets that the card received with a bad length.
        rx_length_errors => rx_length_errors;
        /// Adds packets that the card dropped because it had no descriptor for them.
        rx_missed_errors => rx_missed_errors;
    }
}
