// SPDX-License-Identifier: GPL-2.0

//! The callbacks of a driver beyond those of [`Driver`](super::Driver).

use super::{
    ethtool::strings::StringSets,
    ops_lock::{
        Locks,
        OpsLocked, //
    },
    rings::RingRange,
    targets::Target,
    wake_packets::WakePackets,
    Device, //
};

use crate::{
    bindings,
    prelude::*,
    ptp_clock::PtpClock, //
};

use core::marker::PhantomData;

/// See [`OptionalOps`].
pub(super) type SetupXsk =
    unsafe fn(&Device, *mut bindings::xsk_buff_pool, u16, &mut Locks<'static>) -> Result;

/// A reason for which a device can have neither LRO, nor an MTU above a limit.
pub(super) struct Exclusion {
    /// A name for users.
    pub(super) by: &'static CStr,
    pub(super) max_mtu: u32,
}

/// The callbacks that a driver has beyond those of [`Driver`](super::Driver), for
/// [`Driver::OPS`](super::Driver::OPS).
///
/// A trait of optional callbacks adds those of the drivers that implement it by a method of its
/// own, in its own file. `T` is the driver: there is no way to get the callbacks of another one
/// into the set.
pub struct OptionalOps<T> {
    pub(super) netdev: bindings::net_device_ops,
    pub(super) ethtool: bindings::ethtool_ops,
    pub(super) stat: Option<bindings::netdev_stat_ops>,
    pub(super) queue_mgmt: Option<bindings::netdev_queue_mgmt_ops>,
    pub(super) strings: StringSets,
    /// The lengths that the rings can have.
    pub(super) rings: Option<RingRange>,
    /// The features of XDP, of type `NETDEV_XDP_ACT_*`.
    pub(super) xdp_features: bindings::xdp_features_t,
    /// Registers the clock of the NIC, and returns it.
    ///
    /// Its safety requirement: the device is one of driver `T`, about to be registered, and the
    /// clock is unregistered before its data is dropped.
    pub(super) register_clock: Option<unsafe fn(&Device) -> Result<&'static PtpClock>>,
    /// The hints for programs.
    pub(super) xdp_hints: Option<&'static bindings::xdp_metadata_ops>,
    /// Takes back frames that were redirected to the device, and that the NIC has sent.
    ///
    /// Its safety requirement: this is the poll function of a vector of that number, of a device of
    /// driver `T`, and not netpoll. The target is that of the vector.
    pub(super) complete_xdp: Option<unsafe fn(&Device, u16, Target)>,
    /// Takes back all such frames of a vector that has gone down.
    ///
    /// Its safety requirement: the device is one of driver `T`, whose NIC was stopped or reset. The
    /// target is that of the vector, and nobody finds it any more. Process context.
    pub(super) finish_xdp: Option<unsafe fn(&Device, u16, Target)>,
    /// Binds a pool of users' memory to a queue, or unbinds the one that it has if it is null.
    ///
    /// Its safety requirement: the device is one of driver `T`. C keeps the pool until it is
    /// unbound, or until binding it has failed.
    pub(super) setup_xsk: Option<SetupXsk>,
    /// Requests that users can make with a frame that they send from such memory.
    pub(super) xsk_tx_metadata: Option<&'static bindings::xsk_tx_metadata_ops>,
    /// The most descriptors of a frame in memory of users; 0 if there are no such frames.
    pub(super) max_xsk_parts: u32,
    /// The exclusion with the lowest limit, if there is any.
    ///
    /// Its safety requirement: the device is one of driver `T`.
    pub(super) exclusion: Option<unsafe fn(&Device) -> Option<Exclusion>>,
    /// Ends exclusions by those who are about to go.
    ///
    /// Its safety requirement: the device is one of driver `T`.
    pub(super) end_exclusions: Option<unsafe fn(&Device, &mut Locks<'static>)>,
    /// Restarts all receive queues.
    ///
    /// Its safety requirement: the device is one of driver `T`, and up.
    pub(super) restart_rx: Option<unsafe fn(&Device, &mut OpsLocked<'static>)>,
    /// Gets a NIC ready to wake the machine.
    ///
    /// Its safety requirement: the device is one of driver `T`.
    pub(super) arm_wake_up: Option<unsafe fn(&Device, WakePackets, &mut Locks<'static>)>,
    // Invariant: a type that `T` is a subtype of can be another driver, and the other way round.
    pub(super) _driver: PhantomData<fn(T) -> T>,
}

impl<T> OptionalOps<T> {
    /// None.
    pub const NONE: Self = Self {
        netdev: pin_init::zeroed(),
        ethtool: pin_init::zeroed(),
        stat: None,
        queue_mgmt: None,
        strings: [None; 2],
        rings: None,
        xdp_features: 0,
        register_clock: None,
        xdp_hints: None,
        complete_xdp: None,
        finish_xdp: None,
        setup_xsk: None,
        xsk_tx_metadata: None,
        max_xsk_parts: 0,
        exclusion: None,
        end_exclusions: None,
        restart_rx: None,
        arm_wake_up: None,
        _driver: PhantomData,
    };
}
