// SPDX-License-Identifier: GPL-2.0
//! Counters: wide counters behind registers that a read clears, and totals for the control socket.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Numbers of the wide counters.
pub mod wide {
    /// Good octets received.
    pub const GORC: u16 = 0;
    /// Good octets transmitted.
    pub const GOTC: u16 = 1;
    /// All octets received.
    pub const TOR: u16 = 2;
    /// Octets received, one counter for each of 16 queues.
    pub const QBRC: u16 = 3;
    /// Octets transmitted, one counter for each of 16 queues.
    pub const QBTC: u16 = 19;
    /// How many there are.
    pub const COUNT: usize = 35;
}

/// 64-bit counters read as two registers.
#[derive(Debug)]
pub struct WideCounters {
    value: [AtomicU64; wide::COUNT],
    high: [AtomicU32; wide::COUNT],
}

impl Default for WideCounters {
    fn default() -> Self {
        Self {
            value: std::array::from_fn(|_| AtomicU64::new(0)),
            high: std::array::from_fn(|_| AtomicU32::new(0)),
        }
    }
}

impl WideCounters {
    /// Adds to counter `number`.
    pub fn add(&self, number: usize, amount: u64) {
        if let Some(value) = self.value.get(number) {
            value.fetch_add(amount, Ordering::Relaxed);
        }
    }

    /// Takes the counter; its high half waits for [`Self::read_high`].
    pub fn read_low(&self, number: usize) -> u32 {
        let (Some(value), Some(high)) = (self.value.get(number), self.high.get(number)) else {
            return 0;
        };
        let taken = value.swap(0, Ordering::AcqRel);
        high.store((taken >> 32) as u32, Ordering::Release);
        taken as u32
    }

    /// High half of the value that the last [`Self::read_low`] took.
    pub fn read_high(&self, number: usize) -> u32 {
        self.high
            .get(number)
            .map_or(0, |high| high.swap(0, Ordering::AcqRel))
    }

    /// Sets everything to zero.
    pub fn clear(&self) {
        for value in &self.value {
            value.store(0, Ordering::Release);
        }
        for high in &self.high {
            high.store(0, Ordering::Release);
        }
    }
}

macro_rules! totals {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Totals of one port since the start.
        #[derive(Debug, Default)]
        pub struct Totals { $($(#[$doc])* pub $name: AtomicU64,)* }

        impl Totals {
            /// Name and value of each.
            pub fn snapshot(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name.load(Ordering::Relaxed)),)*]
            }
        }
    };
}

totals! {
    /// Frames written to guest memory.
    rx_frames,
    /// Their bytes, without FCS.
    rx_bytes,
    /// Dropped: the packet buffer was full because the ring had no descriptor.
    rx_no_descriptor,
    /// Dropped: receiver or queue disabled.
    rx_disabled,
    /// Dropped by the address or VLAN filter.
    rx_filtered,
    /// Dropped: the link was down.
    rx_link_down,
    /// Dropped: shorter or longer than allowed.
    rx_length,
    /// Frames that left the port.
    tx_frames,
    /// Their bytes, without FCS.
    tx_bytes,
    /// Frames that the guest sent while the link was down.
    tx_link_down,
    /// Descriptors or rings that make no sense.
    malformed,
    /// DMA outside guest memory.
    dma_errors,
    /// MSI-X messages sent.
    interrupts,
    /// Resets of the function.
    resets,
    /// Accesses to registers of the function while it was in D3.
    asleep_accesses,
    /// Times that the function asked to be woken: PME_Status went from 0 to 1.
    wake_ups,
}

/// Adds to a total.
pub(crate) fn bump(total: &AtomicU64, amount: u64) {
    if amount != 0 {
        total.fetch_add(amount, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_of_the_low_half_takes_the_whole_counter() {
        let counters = WideCounters::default();
        counters.add(0, 0x1_0000_0005);
        assert_eq!(counters.read_low(0), 5);
        counters.add(0, 7);
        assert_eq!(counters.read_high(0), 1);
        assert_eq!(counters.read_high(0), 0);
        assert_eq!(counters.read_low(0), 7);
    }

    #[test]
    fn numbers_out_of_range_do_nothing() {
        let counters = WideCounters::default();
        counters.add(wide::COUNT, 1);
        assert_eq!(counters.read_low(wide::COUNT), 0);
    }
}
