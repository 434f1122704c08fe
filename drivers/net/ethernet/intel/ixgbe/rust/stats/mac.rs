// SPDX-License-Identifier: GPL-2.0

//! The counters of the MAC that only users ask for, and the ones that standards define.

use kernel::{
    io::register::Array,
    net::device::ethtool::{
        mac_stats::MacStats,
        pause::PauseStats,
        rmon_stats::{
            RmonHistRange,
            RmonHistRanges,
            RmonStats, //
        }, //
    }, //
};

use super::{
    add_read,
    Counter,
    HwCounters, //
};

use crate::{
    mmio::Bar0,
    regs::counter::*, //
};

/// Bytes of a pause frame.
const PAUSE_LEN: u64 = 64;

/// The ranges of lengths by which the NIC counts frames.
const RANGES: &[RmonHistRange] = &[
    RmonHistRanges::range(0, 64),
    RmonHistRanges::range(65, 127),
    RmonHistRanges::range(128, 255),
    RmonHistRanges::range(256, 511),
    RmonHistRanges::range(512, 1023),
    RmonHistRanges::range(1024, u16::MAX),
    RmonHistRanges::END,
];

/// The same, as `ethtool` takes them.
pub(crate) const RMON_RANGES: RmonHistRanges = RmonHistRanges::new(RANGES);

counters! {
    /// Sums of the NIC's own counters, which clear on read.
    MacCounters {
        /// Bytes of good frames received, with frame check sequence.
        hw_rx_bytes,
        /// Good frames to the broadcast address.
        hw_rx_broadcast,
        /// Requests of the link partner to go on.
        hw_rx_xon,
        /// Requests of the link partner to pause.
        hw_rx_xoff,
        /// Bytes of frames sent, with frame check sequence.
        hw_tx_bytes,
        /// Frames sent to multicast addresses.
        hw_tx_multicast,
        /// Frames sent to the broadcast address.
        hw_tx_broadcast,
        /// Requests to the link partner to go on.
        hw_tx_xon,
        /// Requests to the link partner to pause.
        hw_tx_xoff,
        /// Good frames received with a length of 64 bytes.
        hw_rx_up_to_64,
        /// Up to 127.
        hw_rx_up_to_127,
        /// Up to 255.
        hw_rx_up_to_255,
        /// Up to 511.
        hw_rx_up_to_511,
        /// Up to 1023.
        hw_rx_up_to_1023,
        /// And longer ones.
        hw_rx_longer,
        /// Frames sent with a length of 64 bytes.
        hw_tx_up_to_64,
        /// Up to 127.
        hw_tx_up_to_127,
        /// Up to 255.
        hw_tx_up_to_255,
        /// Up to 511.
        hw_tx_up_to_511,
        /// Up to 1023.
        hw_tx_up_to_1023,
        /// And longer ones.
        hw_tx_longer,
    }
}

impl MacCounters {
    /// Reads and clears the NIC's counters, and adds them up. The caller is the only writer.
    pub(super) fn update(&self, bar: &Bar0<'_>) {
        // The upper half has four bits, and is latched by the read of the lower one.
        let add_wide = |sum: &Counter, low: u32, high: u32| {
            add_read(sum, low);
            if high != u32::MAX {
                sum.add(u64::from(high) << 32);
            }
        };

        let low = bar.read_atomic(GORCL).into_raw();
        add_wide(&self.hw_rx_bytes, low, bar.read_atomic(GORCH).into_raw());
        let low = bar.read_atomic(GOTCL).into_raw();
        add_wide(&self.hw_tx_bytes, low, bar.read_atomic(GOTCH).into_raw());
        add_read(&self.hw_rx_broadcast, bar.read_atomic(BPRC).into_raw());
        add_read(&self.hw_rx_xon, bar.read_atomic(LXONRXCNT).into_raw());
        add_read(&self.hw_rx_xoff, bar.read_atomic(LXOFFRXCNT).into_raw());
        add_read(&self.hw_tx_multicast, bar.read_atomic(MPTC).into_raw());
        add_read(&self.hw_tx_broadcast, bar.read_atomic(BPTC).into_raw());
        add_read(&self.hw_tx_xon, bar.read_atomic(LXONTXC).into_raw());
        add_read(&self.hw_tx_xoff, bar.read_atomic(LXOFFTXC).into_raw());
        for (index, (rx, tx)) in self
            .rx_lengths()
            .into_iter()
            .zip(self.tx_lengths())
            .enumerate()
        {
            // PANIC: `try_at()` never fails here, but the compiler cannot prove it in a loop.
            if let (Some(received), Some(sent)) = (PRC::try_at(index), PTC::try_at(index)) {
                add_read(rx, bar.read_atomic(received).into_raw());
                add_read(tx, bar.read_atomic(sent).into_raw());
            }
        }
    }

    fn rx_lengths(&self) -> [&Counter; 6] {
        [
            &self.hw_rx_up_to_64,
            &self.hw_rx_up_to_127,
            &self.hw_rx_up_to_255,
            &self.hw_rx_up_to_511,
            &self.hw_rx_up_to_1023,
            &self.hw_rx_longer,
        ]
    }

    fn tx_lengths(&self) -> [&Counter; 6] {
        [
            &self.hw_tx_up_to_64,
            &self.hw_tx_up_to_127,
            &self.hw_tx_up_to_255,
            &self.hw_tx_up_to_511,
            &self.hw_tx_up_to_1023,
            &self.hw_tx_longer,
        ]
    }

    /// Pause frames that the NIC has sent. Its counters of frames include them.
    fn tx_pauses(&self) -> u64 {
        self.hw_tx_xon.get() + self.hw_tx_xoff.get()
    }

    fn rx_pauses(&self) -> u64 {
        self.hw_rx_xon.get() + self.hw_rx_xoff.get()
    }

    /// The counters of the MAC.
    pub(crate) fn mac(&self, hw: &HwCounters) -> MacStats {
        let pauses = self.tx_pauses();
        let sent = hw.hw_tx_good.get().saturating_sub(pauses);
        let sent_bytes = self.hw_tx_bytes.get().saturating_sub(pauses * PAUSE_LEN);

        MacStats {
            tx_frames: Some(sent),
            tx_octets: Some(sent_bytes),
            // Pause frames go to a multicast address.
            tx_multicast: Some(self.hw_tx_multicast.get().saturating_sub(pauses)),
            tx_broadcast: Some(self.hw_tx_broadcast.get()),
            rx_frames: Some(hw.hw_rx_good.get()),
            rx_octets: Some(self.hw_rx_bytes.get()),
            rx_multicast: Some(hw.hw_rx_multicast.get()),
            rx_broadcast: Some(self.hw_rx_broadcast.get()),
            rx_fcs_errors: Some(hw.hw_rx_crc_errors.get()),
            rx_length_errors: Some(hw.hw_rx_length_errors.get()),
            rx_too_long: Some(hw.hw_rx_oversize.get()),
        }
    }

    /// The counters of pause frames.
    pub(crate) fn pauses(&self) -> PauseStats {
        PauseStats {
            tx_frames: Some(self.tx_pauses()),
            rx_frames: Some(self.rx_pauses()),
        }
    }

    /// The counters of frames by their lengths.
    pub(crate) fn rmon(&self, hw: &HwCounters) -> RmonStats {
        let mut stats = RmonStats {
            undersize: Some(hw.hw_rx_undersize.get()),
            oversize: Some(hw.hw_rx_oversize.get()),
            fragments: Some(hw.hw_rx_fragments.get()),
            jabbers: Some(hw.hw_rx_jabbers.get()),
            ..RmonStats::default()
        };

        for (to, from) in [
            (&mut stats.hist, self.rx_lengths()),
            (&mut stats.hist_tx, self.tx_lengths()),
        ] {
            for (to, from) in to.iter_mut().zip(from) {
                *to = from.get();
            }
        }
        if let Some(shortest) = stats.hist_tx.first_mut() {
            *shortest = shortest.saturating_sub(self.tx_pauses());
        }
        stats
    }
}
