// SPDX-License-Identifier: GPL-2.0

//! Counters.
//!
//! Each counter has one writer: a poll function, or the holder of a transmit queue's lock. So there
//! is one set per queue pair, and statistics report the sums. Readers need no lock; they get a
//! consistent value of each counter, but no snapshot of all of them.

use kernel::{
    io::register::Array,
    net::{
        device::{
            ethtool::statistics::Statistics,
            queue_stats::{
                GsoStats,
                RxQueueStats,
                TxQueueStats, //
            },
            Stats64, //
        },
        inflight::Completed,
        skb_free::BulkStats, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    sync::{
        new_spinlock,
        Arc,
        SpinLock, //
    }, //
};

use crate::{
    mmio::Bar0,
    regs::{
        counter::*,
        director::*,
        queue::MAX_PAIRS, //
    }, //
};

use self::mac::MacCounters;
pub(crate) use self::mac::RMON_RANGES;

/// A counter with one writer.
pub(crate) struct Counter(Atomic<u64>);

impl Default for Counter {
    fn default() -> Self {
        Self(Atomic::new(0))
    }
}

impl Counter {
    /// Adds `count`. Concurrent writers would lose counts.
    #[inline]
    pub(crate) fn add(&self, count: u64) {
        self.0
            .store(self.0.load(Relaxed).wrapping_add(count), Relaxed);
    }

    /// Returns the value.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Declares a struct of [`Counter`]s that knows their names.
macro_rules! counters {
    (
        $(#[$attr:meta])* $name:ident {
            $( $(#[$field_attr:meta])* $field:ident, )*
        }
    ) => {
        $(#[$attr])*
        #[derive(Default)]
        pub(crate) struct $name {
            $( $(#[$field_attr])* pub(crate) $field: Counter, )*
        }

        impl $name {
            /// Calls `f` with the name and the value of each counter.
            pub(crate) fn for_each(&self, mut f: impl FnMut(&'static str, u64)) {
                $( f(stringify!($field), self.$field.get()); )*
            }

            /// Adds the values of `other`.
            #[allow(dead_code, reason = "not all sets are summed up")]
            fn add_all(&self, other: &Self) {
                $( self.$field.add(other.$field.get()); )*
            }
        }
    };
}

// Below the macro that it uses.
mod mac;

counters! {
    /// Counters of the poll function. Closing the device also writes them, when polling has ended.
    #[repr(align(64))]
    PollCounters {
        /// Frames received.
        rx_packets,
        /// Bytes received, without frame check sequence.
        rx_bytes,
        /// Frames whose checksum the NIC has verified.
        rx_csum_good,
        /// Frames with a bad checksum according to the NIC. The stack receives them as well.
        rx_csum_errors,
        /// Frames that the NIC has reported as damaged.
        rx_frame_errors,
        /// Descriptors with invalid contents.
        rx_bad_descriptors,
        /// Frames lost because there was no memory for an SKB.
        rx_no_skb,
        /// Times that a buffer could not be allocated, or that a user had given none.
        rx_no_buffer,
        /// Frames that a program has dropped.
        rx_xdp_dropped,
        /// Frames that a program has sent back, which count as sent.
        rx_xdp_transmitted,
        /// Such frames that the NIC had not sent when the queue was stopped.
        rx_xdp_lost,
        /// Times that the NIC was told of such frames.
        rx_xdp_doorbells,
        /// Frames that a program has redirected.
        rx_xdp_redirected,
        /// Frames that were dropped as their program has failed.
        rx_xdp_aborted,
        /// Frames of users' memory that were sent, which count as sent.
        tx_xsk_frames,
        /// Frames of users' memory that the NIC cannot send.
        tx_xsk_refused,
        /// Packets sent.
        tx_packets,
        /// Bytes sent, without frame check sequence.
        tx_bytes,
        /// Packets that the NIC had not sent when the device was closed.
        tx_lost,
        /// Packets that the NIC has split.
        tx_gso_packets,
        /// Bytes in them.
        tx_gso_bytes,
        /// Packets on the wire that have come of it, without the first one of each.
        tx_gso_more_packets,
        /// Bytes of the headers of those.
        tx_gso_more_bytes,
        /// Packets of TCP that the NIC has aggregated.
        rx_lro_segments,
        /// The larger packets that have come of it. In `rx_packets`, they are one each.
        rx_lro_packets,
    }
}

impl PollCounters {
    /// Adds packets that the NIC has sent.
    #[inline(always)]
    pub(crate) fn add_sent(&self, sent: &Completed) {
        self.tx_packets.add(sent.packets as u64);
        self.tx_bytes.add(sent.bytes as u64);
        // Not by a function, which would have all of `sent` in memory.
        let split = sent.split;
        if split.packets != 0 {
            self.tx_gso_packets.add(split.packets as u64);
            self.tx_gso_bytes.add(split.bytes as u64);
            self.tx_gso_more_packets.add(split.more_packets as u64);
            self.tx_gso_more_bytes.add(split.more_bytes as u64);
        }
    }
}

counters! {
    /// Counters of the holder of a transmit queue's lock.
    #[repr(align(64))]
    XmitCounters {
        /// Times that the queue was stopped because the ring was full.
        tx_ring_full,
        /// Packets that could not be mapped or that the NIC cannot send.
        tx_refused,
        /// Number of doorbells.
        tx_doorbells,
    }
}

counters! {
    /// Counters of frames that others redirect to the port. Their writer holds the lock of the
    /// ring for these.
    #[repr(align(64))]
    XdpCounters {
        /// Frames sent. They count as sent packets, too.
        tx_xdp_packets,
        /// Bytes sent, without frame check sequence.
        tx_xdp_bytes,
        /// Frames that there was no room for, or that the NIC cannot send.
        tx_xdp_refused,
        /// Frames that the NIC had not sent when the device was closed.
        tx_xdp_lost,
        /// Times that the NIC was told of frames.
        tx_xdp_doorbells,
    }
}

counters! {
    /// Counters of time stamps. Their writer holds the lock of the clock.
    StampCounters {
        /// Received frames with a time stamp.
        rx_hwtstamps,
        /// Frames whose stamp was not there, or not of the last seconds.
        rx_hwtstamp_invalid,
        /// Stamps that were left in the NIC, as their frames were lost.
        rx_hwtstamp_cleared,
        /// Sent packets with a time stamp.
        tx_hwtstamps,
        /// Packets whose stamp was not of the last seconds.
        tx_hwtstamp_invalid,
        /// Stamps that were left in the NIC, of packets that were given up or that had not asked.
        tx_hwtstamp_cleared,
        /// Packets whose stamp has not come.
        tx_hwtstamp_timeouts,
        /// Packets that got no stamp, as another one waited for its own.
        tx_hwtstamp_skipped,
    }
}

counters! {
    /// Sums of the NIC's own counters, which clear on read.
    HwCounters {
        /// Frames lost for want of descriptors: the packet buffer was full, or a queue without
        /// descriptors dropped them rather than stalling the others.
        hw_rx_missed,
        /// Frames with a wrong frame check sequence.
        hw_rx_crc_errors,
        /// Frames whose length field does not match their length.
        hw_rx_length_errors,
        /// Frames that were too short, with a good frame check sequence.
        hw_rx_undersize,
        /// Frames that were too long, with a good one.
        hw_rx_oversize,
        /// Frames that were too short, with a wrong one.
        hw_rx_fragments,
        /// Frames that were too long, with a wrong one.
        hw_rx_jabbers,
        /// Good frames to multicast addresses.
        hw_rx_multicast,
        /// Good frames that passed the filters.
        hw_rx_good,
        /// Good frames sent.
        hw_tx_good,
        /// Local faults: loss of signal on this side.
        hw_local_faults,
        /// Remote faults: loss of signal on the link partner's side.
        hw_remote_faults,
        /// Frames that match a rule.
        hw_fdir_match,
        /// Frames that match none, while there can be rules.
        hw_fdir_miss,
    }
}

/// Adds the value that a counter of the NIC had when it was read. Of one that is gone, all ones.
fn add_read(sum: &Counter, value: u32) {
    if value != u32::MAX {
        sum.add(value.into());
    }
}

/// Returns the number of good frames without those that the NIC has missed, which it counts, too.
/// Either may be of a NIC that is gone.
fn without_missed(good: u32, missed: u32) -> u32 {
    if good == u32::MAX || missed == u32::MAX {
        good
    } else {
        good.saturating_sub(missed)
    }
}

impl HwCounters {
    /// The number of frames that were shorter or longer than allowed.
    fn size_errors(&self) -> u64 {
        let short = self.hw_rx_undersize.get() + self.hw_rx_fragments.get();

        short + self.hw_rx_oversize.get() + self.hw_rx_jabbers.get()
    }

    /// Reads and clears the NIC's counters, and adds them up.
    fn update(&self, bar: &Bar0<'_>) {
        let missed = bar.read_atomic(RXMPC::at(0)).into_raw();
        add_read(&self.hw_rx_missed, missed);
        for index in 0..usize::from(MAX_PAIRS) {
            // PANIC: `try_at()` never fails here, but the compiler cannot prove it in a loop.
            if let Some(dropped) = QPRDC::try_at(index) {
                add_read(&self.hw_rx_missed, bar.read_atomic(dropped).into_raw());
            }
        }
        add_read(&self.hw_rx_crc_errors, bar.read_atomic(CRCERRS).into_raw());
        add_read(&self.hw_rx_length_errors, bar.read_atomic(RLEC).into_raw());
        add_read(&self.hw_rx_undersize, bar.read_atomic(RUC).into_raw());
        add_read(&self.hw_rx_fragments, bar.read_atomic(RFC).into_raw());
        add_read(&self.hw_rx_oversize, bar.read_atomic(ROC).into_raw());
        add_read(&self.hw_rx_jabbers, bar.read_atomic(RJC).into_raw());
        add_read(&self.hw_rx_multicast, bar.read_atomic(MPRC).into_raw());
        let good = bar.read_atomic(GPRC).into_raw();
        add_read(&self.hw_rx_good, without_missed(good, missed));
        add_read(&self.hw_tx_good, bar.read_atomic(GPTC).into_raw());
        add_read(&self.hw_local_faults, bar.read_atomic(MLFC).into_raw());
        add_read(&self.hw_remote_faults, bar.read_atomic(MRFC).into_raw());
        add_read(&self.hw_fdir_match, bar.read_atomic(FDIRMATCH).into_raw());
        add_read(&self.hw_fdir_miss, bar.read_atomic(FDIRMISS).into_raw());
    }
}

/// The counters of a queue pair.
#[derive(Default)]
pub(crate) struct PairStats {
    pub(crate) poll: PollCounters,
    pub(crate) xmit: XmitCounters,
    pub(crate) xdp: XdpCounters,
    pub(crate) bulk_free: BulkStats,
}

/// All counters of a port.
#[pin_data]
pub(crate) struct PortStats {
    /// One for each possible queue pair. They keep their values when the port is closed.
    pairs: KVec<Arc<PairStats>>,
    hw: HwCounters,
    mac: MacCounters,
    /// Held while `hw` or `mac` is updated, which makes its holder the only writer.
    #[pin]
    hw_update: SpinLock<()>,
}

impl PortStats {
    /// Allocates counters for this many queue pairs, all zero.
    pub(crate) fn new(pairs: u16) -> Result<impl PinInit<Self>> {
        let mut all = KVec::with_capacity(pairs.into(), GFP_KERNEL)?;
        for _ in 0..pairs {
            all.push(Arc::new(PairStats::default(), GFP_KERNEL)?, GFP_KERNEL)?;
        }

        Ok(pin_init!(Self {
            pairs: all,
            hw: HwCounters::default(),
            mac: MacCounters::default(),
            hw_update <- new_spinlock!((), "ixgbe_rust::hw_update"),
        }))
    }

    /// Returns the counters of a queue pair.
    pub(crate) fn pair(&self, number: u16) -> Result<Arc<PairStats>> {
        Ok(self.pairs.get(usize::from(number)).ok_or(EINVAL)?.clone())
    }

    /// Returns the counters of frames that others redirect to the port, on the CPUs of a pair.
    #[inline]
    pub(crate) fn xdp(&self, number: u16) -> Option<&XdpCounters> {
        self.pairs.get(usize::from(number)).map(|pair| &pair.xdp)
    }

    /// Returns the NIC's counters.
    ///
    /// Context: any. If another CPU is reading them right now, these are the previous values.
    fn hw(&self, bar: &Bar0<'_>) -> &HwCounters {
        self.with_update(bar, || self.hw.update(bar));
        &self.hw
    }

    /// As [`Self::hw`], with the counters that only users ask for.
    pub(crate) fn mac(&self, bar: &Bar0<'_>) -> (&HwCounters, &MacCounters) {
        self.with_update(bar, || {
            self.hw.update(bar);
            self.mac.update(bar);
        });
        (&self.hw, &self.mac)
    }

    /// Lets `update` read counters, unless another CPU does, or they are those of a NIC that is
    /// gone: each read of that may take a while.
    fn with_update(&self, bar: &Bar0<'_>, update: impl FnOnce()) {
        if let Some(_guard) = self.hw_update.try_lock() {
            if bar.answers_now() {
                update();
            }
        }
    }

    /// Saves the NIC's counters before a reset clears them, or before they are full.
    pub(crate) fn save_hw(&self, bar: &Bar0<'_>) {
        self.mac(bar);
    }

    /// Returns the sums over all queue pairs.
    fn sums(&self) -> (PollCounters, XmitCounters, XdpCounters) {
        let sums = (
            PollCounters::default(),
            XmitCounters::default(),
            XdpCounters::default(),
        );

        for pair in &self.pairs {
            sums.0.add_all(&pair.poll);
            sums.1.add_all(&pair.xmit);
            sums.2.add_all(&pair.xdp);
        }
        sums
    }

    /// Returns the counters of a receive queue.
    pub(crate) fn rx_queue(&self, number: u16) -> RxQueueStats {
        let Some(PairStats { poll, .. }) = self.pairs.get(usize::from(number)).map(|pair| &**pair)
        else {
            return RxQueueStats::default();
        };

        RxQueueStats {
            packets: poll.rx_packets.get(),
            bytes: poll.rx_bytes.get(),
            alloc_fail: poll.rx_no_skb.get() + poll.rx_no_buffer.get(),
            csum_unnecessary: poll.rx_csum_good.get(),
        }
    }

    /// Returns the counters of a transmit queue.
    pub(crate) fn tx_queue(&self, number: u16) -> TxQueueStats {
        let Some(PairStats {
            poll, xmit, xdp, ..
        }) = self.pairs.get(usize::from(number)).map(|pair| &**pair)
        else {
            return TxQueueStats::default();
        };
        let (packets, bytes) = (poll.tx_gso_packets.get(), poll.tx_gso_bytes.get());
        let more_packets = poll.tx_gso_more_packets.get();
        let more_bytes = poll.tx_gso_more_bytes.get();

        TxQueueStats {
            packets: poll.tx_packets.get() + more_packets + xdp.tx_xdp_packets.get(),
            bytes: poll.tx_bytes.get() + more_bytes + xdp.tx_xdp_bytes.get(),
            gso: Some(GsoStats {
                packets,
                bytes,
                wire_packets: packets + more_packets,
                wire_bytes: bytes + more_bytes,
            }),
            stop: xmit.tx_ring_full.get(),
        }
    }

    /// Fills in the standard counters of the network device; those of the NIC as they were read
    /// last, unless that `is_reachable`.
    pub(crate) fn fill(&self, bar: &Bar0<'_>, stats: &mut Stats64<'_>, is_reachable: bool) {
        let hw = if is_reachable { self.hw(bar) } else { &self.hw };
        let (poll, xmit, xdp) = self.sums();
        let more_packets = poll.tx_gso_more_packets.get() + xdp.tx_xdp_packets.get();
        let more_bytes = poll.tx_gso_more_bytes.get() + xdp.tx_xdp_bytes.get();
        let refused = xmit.tx_refused.get() + xdp.tx_xdp_refused.get() + poll.tx_xsk_refused.get();
        let lost = poll.tx_lost.get() + xdp.tx_xdp_lost.get() + poll.rx_xdp_lost.get();
        let damaged = poll.rx_frame_errors.get() + poll.rx_bad_descriptors.get();
        let crc = hw.hw_rx_crc_errors.get();
        let len = hw.hw_rx_length_errors.get() + hw.size_errors();

        stats
            .rx_packets(poll.rx_packets.get())
            .rx_bytes(poll.rx_bytes.get())
            .tx_packets(poll.tx_packets.get() + more_packets)
            .tx_bytes(poll.tx_bytes.get() + more_bytes)
            .rx_dropped(poll.rx_no_skb.get())
            .tx_dropped(refused + lost)
            .rx_errors(damaged + crc + len)
            .rx_crc_errors(crc)
            .rx_length_errors(len)
            .rx_missed_errors(hw.hw_rx_missed.get())
            .multicast(hw.hw_rx_multicast.get());
    }

    /// Lists all counters for `ethtool -S`: the sums over all queue pairs, the NIC's own counters,
    /// and packets and bytes of each pair.
    pub(crate) fn list(
        &self,
        bar: &Bar0<'_>,
        stamps: &StampCounters,
        statistics: &mut Statistics<'_>,
    ) {
        let mut add = |name, value| statistics.add(fmt!("{}", name), value);
        let (poll, xmit, xdp) = self.sums();

        poll.for_each(&mut add);
        xmit.for_each(&mut add);
        xdp.for_each(&mut add);
        stamps.for_each(&mut add);
        let (hw, mac) = self.mac(bar);
        hw.for_each(&mut add);
        mac.for_each(&mut add);

        let bulk_free = || self.pairs.iter().map(|pair| &pair.bulk_free);
        let packets = bulk_free().map(BulkStats::packets).sum();
        let alone = bulk_free().map(BulkStats::alone).sum();
        statistics.add(fmt!("bulk_free_packets"), packets);
        statistics.add(fmt!("bulk_free_alone"), alone);
        for (index, class) in BulkStats::CLASS_NAMES.iter().enumerate() {
            let calls = bulk_free().filter_map(|stats| stats.calls().get(index).copied());
            statistics.add(fmt!("bulk_free_calls_{}", class), calls.sum());
        }

        for (number, pair) in self.pairs.iter().enumerate() {
            let poll = &pair.poll;
            for (name, counter) in [
                ("rx", [&poll.rx_packets, &poll.rx_bytes]),
                ("tx", [&poll.tx_packets, &poll.tx_bytes]),
            ] {
                let [packets, bytes] = counter.map(Counter::get);
                statistics.add(fmt!("{}_queue_{}_packets", name, number), packets);
                statistics.add(fmt!("{}_queue_{}_bytes", name, number), bytes);
            }
        }
    }
}

#[kunit_tests(ixgbe_rust_stats)]
mod tests {
    use super::*;

    #[test]
    fn missed_frames_are_not_good() {
        assert_eq!(without_missed(100, 30), 70);
        // One was missed between the two reads.
        assert_eq!(without_missed(30, 31), 0);
        // Lost reads.
        assert_eq!(without_missed(100, u32::MAX), 100);
        assert_eq!(without_missed(u32::MAX, 30), u32::MAX);
    }
}
