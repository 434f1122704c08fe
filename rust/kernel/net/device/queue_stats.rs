// SPDX-License-Identifier: GPL-2.0

//! Counters of queues.
//!
//! C header: [`include/net/netdev_queues.h`](srctree/include/net/netdev_queues.h)

use super::{
    inner::Inner,
    ops,
    ops_lock::OpsLocked,
    optional_ops::OptionalOps,
    Driver, //
};

use crate::{
    bindings,
    prelude::*, //
};

/// The counters of a receive queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxQueueStats {
    /// Packets that were received.
    pub packets: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Times that there was no memory for a packet or a buffer.
    pub alloc_fail: u64,
    /// Packets whose checksum the card has verified.
    pub csum_unnecessary: u64,
}

/// The counters of a transmit queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxQueueStats {
    /// Packets that were sent, as they are on the wire.
    pub packets: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Packets that the card has split, if it can.
    pub gso: Option<GsoStats>,
    /// Times that the queue was stopped.
    pub stop: u64,
}

/// Packets that the card has split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GsoStats {
    /// Packets that it was given.
    pub packets: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Packets that it made of them.
    pub wire_packets: u64,
    /// Bytes in those.
    pub wire_bytes: u64,
}

impl RxQueueStats {
    fn add(self, other: Self) -> Self {
        Self {
            packets: self.packets.wrapping_add(other.packets),
            bytes: self.bytes.wrapping_add(other.bytes),
            alloc_fail: self.alloc_fail.wrapping_add(other.alloc_fail),
            csum_unnecessary: self.csum_unnecessary.wrapping_add(other.csum_unnecessary),
        }
    }

    fn fill(self, raw: &mut bindings::netdev_queue_stats_rx) {
        raw.packets = self.packets;
        raw.bytes = self.bytes;
        raw.alloc_fail = self.alloc_fail;
        raw.csum_unnecessary = self.csum_unnecessary;
    }
}

impl TxQueueStats {
    fn add(self, other: Self) -> Self {
        Self {
            packets: self.packets.wrapping_add(other.packets),
            bytes: self.bytes.wrapping_add(other.bytes),
            gso: match (self.gso, other.gso) {
                (Some(one), Some(other)) => Some(one.add(other)),
                (one, other) => one.or(other),
            },
            stop: self.stop.wrapping_add(other.stop),
        }
    }

    fn fill(self, raw: &mut bindings::netdev_queue_stats_tx) {
        raw.packets = self.packets;
        raw.bytes = self.bytes;
        raw.stop = self.stop;
        if let Some(gso) = self.gso {
            raw.hw_gso_packets = gso.packets;
            raw.hw_gso_bytes = gso.bytes;
            raw.hw_gso_wire_packets = gso.wire_packets;
            raw.hw_gso_wire_bytes = gso.wire_bytes;
        }
    }
}

impl GsoStats {
    fn add(self, other: Self) -> Self {
        Self {
            packets: self.packets.wrapping_add(other.packets),
            bytes: self.bytes.wrapping_add(other.bytes),
            wire_packets: self.wire_packets.wrapping_add(other.wire_packets),
            wire_bytes: self.wire_bytes.wrapping_add(other.wire_bytes),
        }
    }
}

/// A driver that counts by queues, see [`OptionalOps::queue_stats`].
///
/// Its callbacks run in process context with the lock of the device's operations held; the device
/// may be up, down or suspended.
pub trait QueueStatsOps: Driver {
    /// The counters of a receive queue, which may be one that is not in use now.
    fn rx_queue_stats<'bound>(
        data: Pin<&Self::Data<'bound>>,
        queue: u16,
        lock: &mut OpsLocked<'bound>,
    ) -> RxQueueStats;

    /// The counters of a transmit queue, which may be one that is not in use now.
    fn tx_queue_stats<'bound>(
        data: Pin<&Self::Data<'bound>>,
        queue: u16,
        lock: &mut OpsLocked<'bound>,
    ) -> TxQueueStats;
}

impl<T: QueueStatsOps> OptionalOps<T> {
    /// Adds the callbacks of [`QueueStatsOps`].
    pub const fn queue_stats(mut self) -> Self {
        self.stat = Some(bindings::netdev_stat_ops {
            get_queue_stats_rx: Some(Self::get_queue_stats_rx),
            get_queue_stats_tx: Some(Self::get_queue_stats_tx),
            get_base_stats: Some(Self::get_base_stats),
        });
        self
    }

    fn rx(inner: &Inner<T>, queue: usize, lock: &mut OpsLocked<'static>) -> RxQueueStats {
        // CAST: The number of queues is a `u16`.
        //
        // SAFETY: Our callers have made the token for this device.
        T::rx_queue_stats(inner.data(), queue as u16, unsafe { lock.lend() })
    }

    fn tx(inner: &Inner<T>, queue: usize, lock: &mut OpsLocked<'static>) -> TxQueueStats {
        // CAST: As above.
        //
        // SAFETY: As above.
        T::tx_queue_stats(inner.data(), queue as u16, unsafe { lock.lend() })
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a queue of a device of driver `T`.
    unsafe extern "C" fn get_queue_stats_rx(
        dev: *mut bindings::net_device,
        queue: c_int,
        stats: *mut bindings::netdev_queue_stats_rx,
    ) {
        // SAFETY: The core calls us for a registered device, and holds its lock.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: The core gives us `stats` to fill in.
        let stats = unsafe { &mut *stats };

        // CAST: The number of a queue is not negative.
        Self::rx(inner, queue as usize, &mut lock).fill(stats);
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a queue of a device of driver `T`.
    unsafe extern "C" fn get_queue_stats_tx(
        dev: *mut bindings::net_device,
        queue: c_int,
        stats: *mut bindings::netdev_queue_stats_tx,
    ) {
        // SAFETY: As above.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let stats = unsafe { &mut *stats };

        // CAST: As above.
        Self::tx(inner, queue as usize, &mut lock).fill(stats);
    }

    /// Adds up the queues that are not in use. The core adds those that are.
    ///
    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    unsafe extern "C" fn get_base_stats(
        dev: *mut bindings::net_device,
        rx: *mut bindings::netdev_queue_stats_rx,
        tx: *mut bindings::netdev_queue_stats_tx,
    ) {
        // SAFETY: As above.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let (rx, tx) = unsafe { (&mut *rx, &mut *tx) };
        // SAFETY: The device is valid, and its lock keeps the numbers of queues.
        let (live_rx, live_tx) = unsafe { ((*dev).real_num_rx_queues, (*dev).real_num_tx_queues) };

        (live_rx as usize..inner.queues())
            .map(|queue| Self::rx(inner, queue, &mut lock))
            .fold(RxQueueStats::default(), RxQueueStats::add)
            .fill(rx);
        // The first queue shows which counters there are.
        let none = TxQueueStats {
            gso: Self::tx(inner, 0, &mut lock)
                .gso
                .map(|_| GsoStats::default()),
            ..TxQueueStats::default()
        };
        (live_tx as usize..inner.queues())
            .map(|queue| Self::tx(inner, queue, &mut lock))
            .fold(none, TxQueueStats::add)
            .fill(tx);
    }
}

#[macros::kunit_tests(rust_net_queue_stats)]
mod tests {
    use super::*;

    #[test]
    fn queues_add_up() {
        let gso = GsoStats {
            packets: 1,
            bytes: 3000,
            wire_packets: 3,
            wire_bytes: 3100,
        };
        let one = TxQueueStats {
            packets: 3,
            bytes: 3100,
            gso: Some(gso),
            stop: 1,
        };
        let sum = one.add(one).add(TxQueueStats::default());

        assert_eq!((sum.packets, sum.bytes, sum.stop), (6, 6200, 2));
        assert_eq!(sum.gso.map(|gso| gso.wire_bytes), Some(6200));
        assert_eq!(TxQueueStats::default().add(one), one);
    }
}
