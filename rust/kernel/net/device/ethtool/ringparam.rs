// SPDX-License-Identifier: GPL-2.0

//! Lengths of rings.

use super::super::{
    ops,
    ops_lock::{
        Configuring,
        OpsLocked, //
    },
    optional_ops::OptionalOps,
    rings::{
        RingLens,
        RingRange, //
    },
    Driver,
    ExtAck, //
};

use crate::{
    bindings,
    error::from_result,
    net::queue::RingLen,
    prelude::*, //
};

// ETHTOOL_OP_NEEDS_RTNL_SRINGPARAM: `bindgen` does not see through `BIT()`. The helpers in C check
// the value.
const NEEDS_RTNL: u32 = 1 << 2;

/// The number for users: the greatest one fits.
fn count(len: RingLen) -> u32 {
    // CAST: At most `RingLen::MAX`.
    len.get() as u32
}

/// The length for a user's number, or the reason for a refusal.
fn len(range: RingRange, number: u32, kind: &str, extack: &ExtAck<'_>) -> Result<RingLen> {
    let (least, most) = (range.least.get(), range.most.get());

    range.round(number).ok_or_else(|| {
        extack.refuse_with(
            ERANGE,
            fmt!("a {} ring has {} to {} descriptors", kind, least, most),
        )
    })
}

impl<T: Driver> OptionalOps<T> {
    /// Lets users change the lengths of rings within [`Driver::RINGS`], for `ethtool -G`.
    pub const fn ringparam(mut self) -> Self {
        const { assert!(T::RINGS.is_some(), "`ringparam` needs `RINGS`") };
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
        // SAFETY: The core calls us for a registered device, and gives us `rings` to fill in.
        let (inner, rings) = unsafe { (ops::inner::<T>(dev), &mut *rings) };
        // SAFETY: The lock of the device's operations is held.
        let lock = unsafe { OpsLocked::assume_held(inner.dev()) };

        if let Some(limits) = T::RINGS {
            let lens = inner.rings(&lock);

            rings.rx_max_pending = count(limits.rx.most);
            rings.tx_max_pending = count(limits.tx.most);
            rings.rx_pending = count(lens.rx);
            rings.tx_pending = count(lens.tx);
        }
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
        from_result(|| {
            // SAFETY: The core calls us for a registered device, with valid arguments.
            let (inner, rings, extack) =
                unsafe { (ops::inner::<T>(dev), &*rings, ExtAck::new(extack)) };
            // SAFETY: The core holds the lock of the device's operations, and RTNL: if the lock is
            // another one, `op_needs_rtnl` asks for that.
            let mut locks = unsafe { Configuring::assume_held(inner.dev()) };
            let limits = T::RINGS.ok_or(EOPNOTSUPP)?;

            // There are no such rings.
            if rings.rx_mini_pending != 0 || rings.rx_jumbo_pending != 0 {
                return Err(EINVAL);
            }
            let lens = RingLens {
                rx: len(limits.rx, rings.rx_pending, "receive", &extack)?,
                tx: len(limits.tx, rings.tx_pending, "transmit", &extack)?,
            };
            inner.check_reachable()?;
            inner.set_rings(lens, &mut locks)?;
            Ok(0)
        })
    }
}
