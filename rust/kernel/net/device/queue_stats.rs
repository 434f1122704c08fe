// SPDX-License-Identifier: GPL-2.0

//! The counters of single queues.
//!
//! C header: [`include/net/netdev_queues.h`](srctree/include/net/netdev_queues.h)

use super::{
    ops,
    ops_lock::OpsLocked,
    Driver, //
};

use crate::{
    bindings,
    ffi::c_int, //
};

use core::marker::PhantomData;

/// A queue of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// The receive queue of this number.
    Rx(u16),
    /// The transmit queue of this number.
    Tx(u16),
}

/// The counters of a queue, see [`Driver::queue_stats`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Packets that the stack got, or gave.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The callbacks of `struct netdev_stat_ops`.
struct StatOps<T>(PhantomData<T>);

/// The table of a driver, if it counts by queue.
pub(super) const fn ops<T: Driver>() -> *const bindings::netdev_stat_ops {
    if T::HAS_QUEUE_STATS {
        &StatOps::<T>::TABLE
    } else {
        core::ptr::null()
    }
}

impl<T: Driver> StatOps<T> {
    const TABLE: bindings::netdev_stat_ops = bindings::netdev_stat_ops {
        get_queue_stats_rx: Some(Self::rx),
        get_queue_stats_tx: Some(Self::tx),
        get_base_stats: None,
    };

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    unsafe fn count(dev: *mut bindings::net_device, queue: Queue) -> QueueStats {
        // SAFETY: The core calls us for a registered device.
        let inner = unsafe { ops::inner::<T>(dev) };
        // SAFETY: The lock of the device's operations is held.
        let mut lock = unsafe { OpsLocked::assume_held(inner) };

        // SAFETY: The callback is for this device.
        T::queue_stats(inner.data(), queue, unsafe { lock.lend() })
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with valid `stats`.
    unsafe extern "C" fn rx(
        dev: *mut bindings::net_device,
        index: c_int,
        stats: *mut bindings::netdev_queue_stats_rx,
    ) {
        // CAST: The number of queues is a `u16`.
        //
        // SAFETY: By the safety requirements.
        let counted = unsafe { Self::count(dev, Queue::Rx(index as u16)) };

        // SAFETY: The core gives us `stats` to fill in. What is not counted stays as it is.
        unsafe {
            (*stats).packets = counted.packets;
            (*stats).bytes = counted.bytes;
        }
    }

    /// # Safety
    ///
    /// As for [`Self::rx`].
    unsafe extern "C" fn tx(
        dev: *mut bindings::net_device,
        index: c_int,
        stats: *mut bindings::netdev_queue_stats_tx,
    ) {
        // CAST: The number of queues is a `u16`.
        //
        // SAFETY: By the safety requirements.
        let counted = unsafe { Self::count(dev, Queue::Tx(index as u16)) };

        // SAFETY: As above.
        unsafe {
            (*stats).packets = counted.packets;
            (*stats).bytes = counted.bytes;
        }
    }
}
