// SPDX-License-Identifier: GPL-2.0

//! Registers of the descriptor rings, one set per queue.
//!
//! Datasheet 8.2.3.8 (receive DMA) and 8.2.3.9 (transmit).

use kernel::{
    io::register,
    prelude::*, //
};

/// Number of queues of which this driver knows the registers.
///
/// The device has 128 of each kind; the registers of the upper half lie elsewhere.
pub(crate) const QUEUES: usize = 64;

/// Number of queue pairs that the driver can use: RSS does not spread over more.
pub(crate) const MAX_PAIRS: u16 = 16;

const _: () = assert!(MAX_PAIRS.is_power_of_two() && MAX_PAIRS as usize <= QUEUES);

/// Number of a queue pair, less than [`MAX_PAIRS`].
#[derive(Clone, Copy)]
pub(crate) struct Pair(u16);

impl Pair {
    /// Returns the pair of that number, if there can be one.
    pub(crate) fn new(number: u16) -> Option<Self> {
        (number < MAX_PAIRS).then_some(Self(number))
    }

    /// Returns all pairs up to `count`.
    pub(crate) fn first(count: u16) -> impl Iterator<Item = Self> {
        (0..count.min(MAX_PAIRS)).map(Self)
    }

    /// The place of the pair's registers in their arrays.
    ///
    /// The compiler sees that this is within the arrays, so that they are accessed without a check
    /// at run time.
    #[inline(always)]
    pub(crate) fn at(self) -> usize {
        usize::from(self.0 & (MAX_PAIRS - 1))
    }

    /// The transmit queue of the pair.
    #[inline(always)]
    pub(crate) fn tx(self) -> TxNumber {
        TxNumber(self.0)
    }

    /// The transmit queue of the frames that programs send back, which the pair has received.
    #[inline(always)]
    pub(crate) fn xdp_tx(self) -> TxNumber {
        TxNumber(self.0 + MAX_PAIRS)
    }

    /// The transmit queue of the frames that others redirect to the port, on the CPUs of the pair.
    #[inline(always)]
    pub(crate) fn xdp_xmit(self) -> TxNumber {
        TxNumber(self.0 + 2 * MAX_PAIRS)
    }

    /// The vector of the pair has its number; this is the vector's bit where there is one for each.
    #[inline(always)]
    pub(crate) fn bit(self) -> u32 {
        1 << self.at()
    }
}

/// Number of transmit queues that the driver can use.
const TX_QUEUES: u16 = 3 * MAX_PAIRS;

const _: () = assert!(QUEUES.is_power_of_two() && TX_QUEUES as usize <= QUEUES);

/// Number of a transmit queue: those of the pairs, and behind them those for XDP, of frames that
/// programs send back and of those that others redirect to the port.
#[derive(Clone, Copy)]
pub(crate) struct TxNumber(u16);

impl TxNumber {
    /// Returns all of them.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..TX_QUEUES).map(Self)
    }

    /// The place of the queue's registers, as [`Pair::at`].
    #[inline(always)]
    pub(crate) fn at(self) -> usize {
        usize::from(self.0) & (QUEUES - 1)
    }
}

register! {
    /// Receive Descriptor Base Address Low.
    pub(crate) RDBAL(u32)[QUEUES, stride = 0x40] @ 0x01000 {}

    /// Receive Descriptor Base Address High.
    pub(crate) RDBAH(u32)[QUEUES, stride = 0x40] @ 0x01004 {}

    /// Receive Descriptor Length: size of the ring in bytes, a multiple of 128.
    pub(crate) RDLEN(u32)[QUEUES, stride = 0x40] @ 0x01008 {}

    /// Receive Descriptor Head: the next descriptor that the device uses.
    pub(crate) RDH(u32)[QUEUES, stride = 0x40] @ 0x01010 {}

    /// Direct Cache Access of received data, of the first 16 queues.
    pub(crate) DCA_RXCTRL(u32)[16] @ 0x02200 {
        /// Must be cleared after a reset (datasheet 4.6.7).
        12:12   must_be_0 => bool;
    }

    /// Split Receive Control, of the first 16 queues.
    pub(crate) SRRCTL(u32)[16] @ 0x02100 {
        /// Drop packets without a descriptor, so that other queues need not wait for this one.
        28:28   drop_en => bool;
        /// Format of the descriptors; 1 for advanced ones with one buffer.
        27:25   desctype;
        /// Size of the header buffer in units of 64 bytes; must not be 0.
        13:8    bsizeheader;
        /// Size of a buffer in KiB.
        4:0     bsizepacket;
    }

    /// Receive Descriptor Tail: one past the last descriptor that the device may use.
    pub(crate) RDT(u32)[QUEUES, stride = 0x40] @ 0x01018 {}

    /// Receive Descriptor Control.
    pub(crate) RXDCTL(u32)[QUEUES, stride = 0x40] @ 0x01028 {
        /// Strip VLAN tags and report them in the descriptor.
        30:30   vme => bool;
        /// Flush what the queue holds.
        26:26   swflsh => bool;
        /// The queue is enabled; reads 0 only when the device has stopped it.
        25:25   enable => bool;
    }

    /// Receive Side Coalescing Control.
    pub(crate) RSCCTL(u32)[QUEUES, stride = 0x40] @ 0x0102c {
        /// The most descriptors of a packet that is aggregated; 3 for 16.
        3:2     maxdesc;
        /// Aggregate packets of TCP connections.
        0:0     rscen => bool;
    }

    /// Transmit Descriptor Base Address Low.
    pub(crate) TDBAL(u32)[QUEUES, stride = 0x40] @ 0x06000 {}

    /// Transmit Descriptor Base Address High.
    pub(crate) TDBAH(u32)[QUEUES, stride = 0x40] @ 0x06004 {}

    /// Transmit Descriptor Length: size of the ring in bytes, a multiple of 128.
    pub(crate) TDLEN(u32)[QUEUES, stride = 0x40] @ 0x06008 {}

    /// Transmit Descriptor Head: the next descriptor that the device uses.
    pub(crate) TDH(u32)[QUEUES, stride = 0x40] @ 0x06010 {}

    /// Transmit Descriptor Tail: one past the last descriptor that the device may use.
    pub(crate) TDT(u32)[QUEUES, stride = 0x40] @ 0x06018 {}

    /// Transmit Descriptor Control.
    pub(crate) TXDCTL(u32)[QUEUES, stride = 0x40] @ 0x06028 {
        /// Flush what the queue holds.
        26:26   swflsh => bool;
        /// The queue is enabled; reads 0 only when the device has stopped it.
        25:25   enable => bool;
        /// Write-back threshold: completions to gather before they are written.
        22:16   wthresh;
        /// Host threshold: descriptors to fetch at least.
        14:8    hthresh;
        /// Pre-fetch threshold: fetch when fewer descriptors than that are at hand.
        6:0     pthresh;
    }

    /// Selects the transmit queue that [`RTTBCNRC`] is about.
    pub(crate) RTTDQSEL(u32) @ 0x04904 {
        /// Number of the queue.
        6:0     txdq_idx;
    }

    /// Rate limiter of the queue in [`RTTDQSEL`]; 0 for none.
    pub(crate) RTTBCNRC(u32) @ 0x04984 {}
}

#[kunit_tests(ixgbe_rust_pairs)]
mod tests {
    use super::*;

    #[test]
    fn pairs_end_where_their_registers_do() {
        assert!(Pair::new(MAX_PAIRS).is_none());
        assert!(Pair::new(MAX_PAIRS - 1).is_some_and(|pair| pair.at() == 15));
        assert_eq!(Pair::first(3).map(Pair::at).sum::<usize>(), 3);
        assert_eq!(Pair::first(u16::MAX).count(), usize::from(MAX_PAIRS));
        assert_eq!(Pair::first(2).fold(0, |bits, pair| bits | pair.bit()), 3);
    }

    #[test]
    fn no_transmit_queue_is_that_of_two() {
        let mut queues = 0_u64;

        for pair in Pair::first(MAX_PAIRS) {
            for number in [pair.tx(), pair.xdp_tx(), pair.xdp_xmit()] {
                assert_eq!(queues & 1 << number.at(), 0);
                queues |= 1 << number.at();
            }
        }
        assert_eq!(queues, (1 << 48) - 1);
        assert_eq!(TxNumber::all().map(TxNumber::at).sum::<usize>(), 47 * 24);
    }
}
