// SPDX-License-Identifier: GPL-2.0

//! Network devices.
//!
//! C headers: [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h),
//! [`include/linux/etherdevice.h`](srctree/include/linux/etherdevice.h)
//!
//! A driver implements [`Driver`] and calls [`register`] when it is bound to a device. From then on
//! the abstraction owns the driver's data, the queue vectors with their NAPI instances and
//! interrupts, and the transmit queues, and takes them down in the right order when the device is
//! closed, or unbound while it is open. There is no registration object that a driver could drop
//! too late or forget. A virtual device has a handle, but its registration ends with the module at
//! the latest.
//!
//! The card is told of packets in its ring by a [`Doorbell`].
//!
//! Documentation/rust/netdev.rst has two drivers to start from, the order of locks, and a table of
//! the objects with their owners.

// The alternative to the default in `doorbell`, for drivers that choose it.
pub mod deferring;

mod address;
mod attributes;
mod bus;
mod capability;
mod checkup;
mod dma;
mod doorbell;
mod driver;
mod early;
pub mod ethtool;
mod extack;
mod features;
mod features_check;
mod gate;
mod handle;
mod info;
mod inner;
mod interrupt;
mod ops;
mod ops_lock;
mod optional_ops;
mod poll;
mod queue_mgmt;
mod queue_restart;
mod queue_stats;
mod reconfigure;
mod registration;
mod restart;
mod rings;
mod rss;
mod rx_mode;
mod shared;
mod slots;
mod stats;
mod suspend;
mod tx_slot;
mod up;
mod vector;
mod vectors;
mod virtual_device;
mod vlan_filter;
mod wake_packets;
mod xmit;

#[cfg(CONFIG_KUNIT)]
mod tests;

pub use self::{
    address::MacAddress,
    bus::{
        BusDevice,
        Parent, //
    },
    doorbell::{
        Doorbell,
        Immediate,
        QueueRef, //
    },
    driver::{
        CardStopped,
        CheckUp,
        Driver,
        MtuChange,
        Opening, //
    },
    extack::ExtAck,
    features::{
        FeaturesChange,
        FeaturesOps, //
    },
    features_check::FeaturesCheckOps,
    handle::Device,
    info::{
        Feature,
        Features,
        Info, //
    },
    ops_lock::{
        Locks,
        OpsCell,
        OpsLocked, //
    },
    optional_ops::OptionalOps,
    queue_mgmt::{
        QueueMgmtOps,
        RxMaking, //
    },
    queue_restart::restart_rx_queue,
    queue_stats::{
        GsoStats,
        QueueStatsOps,
        RxQueueStats,
        TxQueueStats, //
    },
    registration::register,
    rings::{
        RingLens,
        RingRange, //
    },
    rss::{
        online_cpus,
        rss_key, //
    },
    rx_mode::RxMode,
    stats::{
        PollStats,
        Stats64, //
    },
    virtual_device::{
        NoParent,
        VirtualDevice, //
    },
    vlan_filter::VlanFilterOps, //
};

pub use super::rtnl::{
    Rtnl,
    RtnlCell, //
};
