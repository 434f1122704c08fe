// SPDX-License-Identifier: GPL-2.0

//! Counters of a device.

use crate::bindings;

/// The counters that every device has, for the driver to fill in.
///
/// They are zero at first, and the driver adds to them, so that it can go
/// through its queues one by one.
pub struct Stats64<'a>(&'a mut bindings::rtnl_link_stats64);

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident => $field:ident;)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub fn $name(&mut self, count: u64) -> &mut Self {
                self.0.$field = self.0.$field.wrapping_add(count);
                self
            }
        )*
    };
}

impl Stats64<'_> {
    /// Has `fill` add to the counters that the core gets.
    ///
    /// # Safety
    ///
    /// `raw` must point to counters that are valid for reading and writing. It
    /// need not be aligned: in a message of netlink, they are aligned to four
    /// bytes.
    pub(super) unsafe fn fill(
        raw: *mut bindings::rtnl_link_stats64,
        fill: impl FnOnce(&mut Stats64<'_>),
    ) {
        // SAFETY: By the safety requirements. No reference may point there.
        let mut copy = unsafe { raw.read_unaligned() };

        fill(&mut Stats64(&mut copy));
        // SAFETY: As above.
        unsafe { raw.write_unaligned(copy) };
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
        /// Adds packets that the NIC received with an error.
        rx_errors => rx_errors;
        /// Adds packets that the NIC failed to transmit.
        tx_errors => tx_errors;
        /// Adds packets that were received and dropped by the driver, for want
        /// of memory.
        rx_dropped => rx_dropped;
        /// Adds packets that the driver dropped instead of transmitting them.
        tx_dropped => tx_dropped;
        /// Adds packets to groups that were received.
        multicast => multicast;
        /// Adds packets that the NIC received with a bad checksum of the frame.
        rx_crc_errors => rx_crc_errors;
        /// Adds packets that the NIC received with a bad length.
        rx_length_errors => rx_length_errors;
        /// Adds packets that the NIC dropped because it had no descriptor for
        /// them.
        rx_missed_errors => rx_missed_errors;
    }
}

#[macros::kunit_tests(rust_net_device_stats)]
mod tests {
    use super::*;

    #[test]
    fn counters_add_up_wherever_they_are() {
        let mut room = [0u64; size_of::<bindings::rtnl_link_stats64>() / 8 + 1];
        // SAFETY: There is room for that, behind the first four bytes.
        let raw = unsafe { room.as_mut_ptr().byte_add(4) };
        let raw = raw.cast::<bindings::rtnl_link_stats64>();

        for packets in [1, 2] {
            // SAFETY: This points to valid counters, of which any bits are.
            unsafe {
                Stats64::fill(raw, |stats| {
                    stats.tx_packets(packets).tx_bytes(60 * packets);
                })
            };
        }
        // SAFETY: As above.
        let stats = unsafe { raw.read_unaligned() };
        assert_eq!((stats.tx_packets, stats.tx_bytes), (3, 180));
        assert_eq!((stats.rx_packets, stats.tx_dropped), (0, 0));
    }
}
