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

use self::ops_lock::Configuring;

use super::skbuff::{
    set_protocol,
    DropReason,
    OwnHead,
    SkBuff,
    UnsharedSkBuff, //
};

use crate::{
    bindings,
    device,
    prelude::*,
    types::Opaque, //
};
use core::ops::Range;

// The alternative to the default in `doorbell`, for drivers that choose it.
pub mod deferring;

mod address;
mod attributes;
mod bus;
mod checkup;
pub mod controls;
mod doorbell;
mod driver;
mod early;
mod ethtool;
mod extack;
mod gate;
mod info;
mod open;
mod opening;
mod ops;
mod ops_lock;
mod queue_mgmt;
mod queue_restart;
mod registration;
mod rings;
mod rss;
mod rx_mode;
mod stats;
mod suspend;
mod trigger;
mod tx_slot;
mod vector;
mod virtual_device;
mod xmit;

#[cfg(CONFIG_KUNIT)]
mod tests;

pub use self::{
    address::MacAddress,
    bus::{
        BusDevice,
        Parent, //
    },
    checkup::CheckUp,
    doorbell::{
        Doorbell,
        DoorbellOf,
        Immediate, //
    },
    driver::{
        CardStopped,
        Driver,
        FeaturesChange,
        MtuChange, //
    },
    ethtool::Statistics,
    extack::ExtAck,
    info::{
        Feature,
        Features,
        Info, //
    },
    opening::Opening,
    ops_lock::{
        Locks,
        OpsCell,
        OpsLocked, //
    },
    queue_mgmt::{
        QueueManagement,
        QueueOps,
        RxMaking, //
    },
    queue_restart::restart_rx_queue,
    registration::register,
    rings::{
        RingLens,
        RingRange,
        Rings, //
    },
    rss::{
        online_cpus,
        rss_key,
        Flow,
        FlowHash, //
    },
    rx_mode::RxMode,
    stats::{
        PollStats,
        Stats64, //
    },
    trigger::{
        Causes,
        Trigger, //
    },
    virtual_device::{
        NoParent,
        VirtualDevice, //
    }, //
};

pub use super::rtnl::{
    Rtnl,
    RtnlCell, //
};

/// A network device, registered or about to be.
///
/// Drivers get a reference to it in their callbacks, none of which comes before the device is being
/// registered.
///
/// # Invariants
///
/// `self.0` is a valid `struct net_device`. Unless the reference is known to this abstraction only,
/// the `struct device` in it has been initialised, and has references.
#[repr(transparent)]
pub struct Device(Opaque<bindings::net_device>);

// SAFETY: References to a `struct net_device` can be used from any context.
unsafe impl Send for Device {}

// SAFETY: As for `Send`; the methods of `Device` can be called concurrently.
unsafe impl Sync for Device {}

impl Device {
    /// Creates a reference to a network device.
    ///
    /// # Safety
    ///
    /// `raw` must be valid, and must remain so for `'a`. If the result is lent to a driver, the
    /// device must be registered, or the core be about to complete that.
    #[inline]
    pub(crate) unsafe fn from_raw<'a>(raw: *mut bindings::net_device) -> &'a Self {
        // SAFETY: `Device` is a transparent wrapper of `Opaque<bindings::net_device>`, and `raw` is
        // valid by the safety requirements.
        unsafe { &*raw.cast() }
    }

    /// Returns the pointer to the `struct net_device`.
    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::net_device {
        self.0.get()
    }

    /// Reports to the stack that there is a link: packets can be transmitted. Any context.
    #[inline]
    pub fn carrier_on(&self) {
        // SAFETY: By the type invariants, the device is valid.
        unsafe { bindings::netif_carrier_on(self.as_raw()) };
    }

    /// Reports to the stack that there is no link. Any context.
    #[inline]
    pub fn carrier_off(&self) {
        // SAFETY: By the type invariants, the device is valid.
        unsafe { bindings::netif_carrier_off(self.as_raw()) };
    }

    /// Whether there is a link, as far as the stack knows.
    #[inline]
    pub fn is_carrier_ok(&self) -> bool {
        // SAFETY: By the type invariants, the device is valid.
        unsafe { bindings::netif_carrier_ok(self.as_raw()) }
    }

    /// Whether the device is up, or about to be.
    #[inline]
    pub fn is_running(&self) -> bool {
        // SAFETY: By the type invariants, the device is valid.
        unsafe { bindings::netif_running(self.as_raw()) }
    }

    /// The largest payload of a frame, in bytes, without the Ethernet header.
    #[inline]
    pub fn mtu(&self) -> u32 {
        // SAFETY: By the type invariants, the device is valid. The MTU may change concurrently,
        // hence the volatile read, of an aligned word.
        unsafe { core::ptr::read_volatile(&raw const (*self.as_raw()).mtu) }
    }

    /// The address of the device. Process context.
    pub fn mac_address(&self) -> MacAddress {
        let mut address = [0; MacAddress::LEN];

        // SAFETY: By the type invariants, the device is valid. The helper copies `ETH_ALEN` bytes.
        unsafe { bindings::netdev_copy_mac(self.as_raw(), address.as_mut_ptr()) };
        MacAddress::from(address)
    }
}

impl Device {
    /// The features that are enabled, out of [`Info::features`]: users can turn features off.
    #[inline]
    pub fn features(&self) -> Features {
        // SAFETY: By the type invariants, the device is valid. The features may change
        // concurrently, as for all readers.
        Features::from_raw(unsafe {
            core::ptr::read_volatile(&raw const (*self.as_raw()).features)
        })
    }

    /// Assigns each of these transmit queues to a CPU of its own (XPS).
    ///
    /// Not generic, so that this is not part of a driver's module.
    #[inline(never)]
    fn spread_tx_queues(&self, queues: Range<u32>) {
        for index in queues {
            // If this fails, the queue is found by a hash, which is slower.
            //
            // SAFETY: By the type invariants, the device is valid.
            // CAST: The number of queues is a `u16`.
            let _ = unsafe { bindings::netif_spread_tx_queue(self.as_raw(), index as u16) };
        }
    }

    /// Whether GRO may merge UDP packets that this device receives.
    ///
    /// Not generic, so that this is not part of a driver's module: the symbol of the static key is
    /// not exported.
    #[inline(never)]
    pub(in crate::net) fn merges_udp(&self) -> bool {
        // SAFETY: By the type invariants, the device is valid.
        unsafe { bindings::udp_gro_wanted(self.as_raw()) }
    }

    /// Closes the device: users have to open it again.
    ///
    /// Not generic, so that this is not part of a driver's module.
    #[inline(never)]
    fn close(&self, _locks: &mut Configuring) {
        // SAFETY: By the type invariants, the device is valid. RTNL and the lock of its operations
        // are held, and the tokens lent to callbacks.
        unsafe { bindings::netif_close(self.as_raw()) };
    }

    /// Closes the device, which cannot be opened again.
    ///
    /// Not generic, so that this is not part of a driver's module.
    #[inline(never)]
    fn close_for_good(&self, locks: &mut Configuring) {
        self.detach(locks);
        self.close(locks);
    }

    /// Marks the device as absent: its queues are stopped, and users can neither open nor configure
    /// it.
    ///
    /// Not generic, so that this is not part of a driver's module.
    #[inline(never)]
    fn detach(&self, _rtnl: &mut Rtnl) {
        // SAFETY: By the type invariants, the device is valid. RTNL is held.
        unsafe { bindings::netif_device_detach(self.as_raw()) };
    }

    /// Marks the device as present. If it is up, its queues are woken.
    ///
    /// Not generic, so that this is not part of a driver's module.
    #[inline(never)]
    fn attach(&self, _rtnl: &mut Rtnl) {
        // SAFETY: By the type invariants, the device is valid. RTNL is held.
        unsafe { bindings::netif_device_attach(self.as_raw()) };
    }

    /// Lets [`Driver::set_rx_mode`] be called.
    ///
    /// Not generic, so that this is not part of a driver's module: the symbol is not exported.
    #[inline(never)]
    fn refresh_rx_mode(&self, _rtnl: &mut Rtnl) {
        // SAFETY: By the type invariants, the device is valid. RTNL is held, and the token lent to
        // a callback.
        unsafe { bindings::dev_set_rx_mode(self.as_raw()) };
    }
}

impl Device {
    /// Has a packet that was transmitted received by this device, through the backlog of the CPU
    /// (`netif_rx()`).
    ///
    /// For devices without a poll function, whose packets come from [`Driver::start_xmit`]. The
    /// packet may be a clone, as it bypasses GRO. The state of its sender is removed from it.
    /// Returns whether the stack has taken it: it is dropped if its linear part does not hold an
    /// Ethernet header, if the device is down, if the backlog is full, and with interrupts
    /// disabled. Else any context.
    pub fn receive_later(&self, mut skb: UnsharedSkBuff) -> bool {
        if skb.scrub(GFP_ATOMIC).is_err() {
            SkBuff::from(skb).drop_with(DropReason::NoMemory);
            return false;
        }
        let Some(skb) = self.take_in(skb) else {
            return false;
        };

        let skb = SkBuff::from(skb).into_raw().as_ptr();
        // SAFETY: The packet is ours, and ready for the stack. Interrupts are enabled. The device
        // is valid: if it is being unregistered, it is down, or the backlog is flushed after that.
        unsafe { bindings::netif_rx(skb) == bindings::NET_RX_SUCCESS as c_int }
    }

    /// Makes a frame one that this device has received, or drops it.
    ///
    /// It must have neither a socket nor a route.
    #[inline]
    pub(super) fn take_in<P: OwnHead>(&self, mut skb: P) -> Option<P> {
        if skb.head_len() < bindings::ETH_HLEN {
            drop_short(skb.into());
            return None;
        }

        // SAFETY: There is no other reference to the packet, and it has at least `ETH_HLEN` bytes
        // in its linear part. The device is valid.
        let protocol = unsafe { bindings::eth_type_trans(skb.as_raw(), self.as_raw()) };
        set_protocol(&mut skb, protocol);
        Some(skb)
    }
}

#[cold]
fn drop_short(skb: SkBuff) {
    skb.drop_with(DropReason::TruncatedHeader);
}

impl AsRef<device::Device> for Device {
    #[inline]
    fn as_ref(&self) -> &device::Device {
        // SAFETY: By the type invariants, the device is valid, and so is the `struct device` in it,
        // to which a driver may take a reference. That keeps the memory of the device.
        unsafe { device::Device::from_raw(&raw mut (*self.as_raw()).dev) }
    }
}
