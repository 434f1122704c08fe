// SPDX-License-Identifier: GPL-2.0

//! Counters of queues.
//!
//! C header: [`include/net/netdev_queues.h`](srctree/include/net/netdev_queues.h)

use super::prelude::*;

/// The counters of a receive queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxQueueStats {
    /// Packets that were received.
    pub packets: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Times that there was no memory for a packet or a buffer.
    pub alloc_fail: u64,
    /// Packets whose checksum the NIC has verified.
    pub csum_unnecessary: u64,
}

/// The counters of a transmit queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxQueueStats {
    /// Packets that were sent, as they are on the wire.
    pub packets: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Packets that the NIC has split, if it can.
    pub gso: Option<GsoStats>,
    /// Times that the queue was stopped.
    pub stop: u64,
}

/// Packets that the NIC has split.
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
    fn fill(self, raw: &mut bindings::netdev_queue_stats_rx) {
        raw.packets = self.packets;
        raw.bytes = self.bytes;
        raw.alloc_fail = self.alloc_fail;
        raw.csum_unnecessary = self.csum_unnecessary;
    }
}

impl TxQueueStats {
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

        // CAST: The number of queues is a `u16`.
        T::rx_queue_stats(inner.data(), queue as u16, &mut lock).fill(stats);
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
        T::tx_queue_stats(inner.data(), queue as u16, &mut lock).fill(stats);
    }

    /// The core adds the queues that are in use to this.
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
        // CAST: The number of queues is a `u16`.
        let queues = inner.queues() as c_int;
        // The first queue shows which counters there are.
        let gso = T::tx_queue_stats(inner.data(), 0, &mut lock)
            .gso
            .map(|_| GsoStats::default());
        let none = TxQueueStats {
            gso,
            ..TxQueueStats::default()
        };

        // SAFETY: The core gives us both to fill in. The device is valid, and its lock keeps the
        // numbers of queues. This calls the callbacks above, for which it is held.
        unsafe {
            RxQueueStats::default().fill(&mut *rx);
            none.fill(&mut *tx);
            bindings::netdev_stat_queue_sum(
                dev,
                // CAST: As above.
                (*dev).real_num_rx_queues as c_int,
                queues,
                rx,
                (*dev).real_num_tx_queues as c_int,
                queues,
                tx,
            );
        }
    }
}
