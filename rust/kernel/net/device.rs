// SPDX-License-Identifier: GPL-2.0

//! Network devices.
//!
//! C headers: [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h),
//! [`include/linux/etherdevice.h`](srctree/include/linux/etherdevice.h)
//!
//! The driver of a device without hardware implements [`VirtualDriver`], and
//! its module makes the device with [`VirtualDevices::add`].

mod address;
mod attributes;
mod bus;
pub mod deferring;
mod doorbell;
mod driver;
mod early;
pub mod ethtool;
mod exclusion;
mod extack;
pub mod features;
pub mod features_check;
mod gate;
mod handle;
pub mod hwtstamp;
mod info;
mod inner;
mod interrupt;
mod ops;
mod ops_lock;
mod optional_ops;
mod owned;
mod poll;
mod prelude;
mod print;
pub mod ptp_clock;
pub mod queue_mgmt;
pub mod queue_stats;
mod reconfigure;
mod registration;
mod restart;
mod rings;
mod rss;
mod rx_mode;
mod segments;
mod shared;
mod slots;
mod stats;
mod suspend;
mod targets;
mod tx_slot;
mod up;
mod vector;
mod vectors;
mod virtual_device;
mod virtual_driver;
mod virtual_queues;
pub mod vlan_filter;
mod wake_packets;
mod watchdog;
#[cfg(CONFIG_PAGE_POOL)]
pub mod xdp;
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
        DmaStopped,
        Driver,
        MtuChange,
        Opening, //
        WatchdogAction,
    },
    extack::ExtAck,
    handle::Device,
    info::{
        Feature,
        Features,
        Info, //
    },
    ops_lock::{
        Locks,
        OpsCell,
        OpsLocked,
        Rtnl,
        RtnlCell, //
    },
    optional_ops::OptionalOps,
    registration::register,
    rings::{
        RingRange, //
        RingSizes,
    },
    rss::{
        online_cpus,
        rss_key, //
    },
    rx_mode::RxMode,
    stats::Stats64,
    virtual_device::{
        VirtualDevices,
        VirtualModule, //
    },
    virtual_driver::VirtualDriver,
    virtual_queues::NoParent, //
};
