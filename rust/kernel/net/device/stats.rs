// SPDX-License-Identifier: GPL-2.0

//! Counters of a device.

use crate::bindings;

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
