// SPDX-License-Identifier: GPL-2.0

//! Lengths of rings.

use super::super::{
    prelude::*,
    rings::{
        RingRange, //
        RingSizes,
    }, //
};

use crate::net::queue::RingSize;

// ETHTOOL_OP_NEEDS_RTNL_SRINGPARAM: `bindgen` does not see through `BIT()`. The helpers in C check
// the value.
const NEEDS_RTNL: u32 = 1 << 2;

/// The length for a user's number, or the reason for a refusal.
fn len(range: RingRange, number: u32, kind: &str, extack: &ExtAck<'_>) -> Result<RingSize> {
    let (min, max) = (range.min.get(), range.max.get());

    range.round(number).ok_or_else(|| {
        extack.refuse_with(
            ERANGE,
            fmt!("{} ring size must be {} to {}", kind, min, max),
        )
    })
}

/// A driver of a NIC whose rings can have several lengths, see [`OptionalOps::ringparam`].
pub trait RingparamOps: Driver {
    /// The lengths that users can choose by `ethtool -G`. [`Opening::ring_sizes`] are those of the
    /// rings to be made. A device with [queue management] that is up replaces its receive rings
    /// one by one, if only those change.
    ///
    /// [queue management]: super::super::queue_mgmt
    /// [`Opening::ring_sizes`]: super::super::Opening::ring_sizes
    const RINGS: RingRange;
}

impl<T: RingparamOps> OptionalOps<T> {
    /// Adds the lengths in [`RingparamOps`], and callbacks for them.
    pub const fn ringparam(mut self) -> Self {
        self.rings = Some(T::RINGS);
        self.ethtool.get_ringparam = Some(Self::get_ringparam);
        self.ethtool.set_ringparam = Some(Self::set_ringparam);
        self.ethtool.op_needs_rtnl |= NEEDS_RTNL;
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `rings`.
    unsafe extern "C" fn get_ringparam(
        dev: *mut bindings::net_device,
        rings: *mut bindings::ethtool_ringparam,
        _kernel: *mut bindings::kernel_ethtool_ringparam,
        _extack: *mut bindings::netlink_ext_ack,
    ) {
        // SAFETY: The core calls us for a registered device, and holds its lock.
        let (inner, lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: The core gives us `rings` to fill in.
        let rings = unsafe { &mut *rings };
        let sizes = inner.config.get(&lock).rings;

        rings.rx_max_pending = T::RINGS.max.get() as u32;
        rings.tx_max_pending = T::RINGS.max.get() as u32;
        rings.rx_pending = sizes.rx.get() as u32;
        rings.tx_pending = sizes.tx.get() as u32;
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `rings`.
    unsafe extern "C" fn set_ringparam(
        dev: *mut bindings::net_device,
        rings: *mut bindings::ethtool_ringparam,
        _kernel: *mut bindings::kernel_ethtool_ringparam,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: The core calls us for a registered device. It holds the lock of its
        // operations, and RTNL: if the lock is another one, `op_needs_rtnl` asks for that.
        let (inner, mut locks) = unsafe { ops::locked_rtnl::<T>(dev) };
        // SAFETY: The arguments are valid.
        let (rings, extack) = unsafe { (&*rings, ExtAck::new(extack)) };

        inner.if_reachable(|| {
            // There are no such rings.
            if rings.rx_mini_pending != 0 || rings.rx_jumbo_pending != 0 {
                return Err(EINVAL);
            }
            let sizes = RingSizes {
                rx: len(T::RINGS, rings.rx_pending, "RX", &extack)?,
                tx: len(T::RINGS, rings.tx_pending, "TX", &extack)?,
            };
            inner.reconfigure(|config| config.rings = sizes, &mut locks)
        })
    }
}
