// SPDX-License-Identifier: GPL-2.0

//! Flow control by pause frames.

use super::{
    super::{
        ops,
        optional_ops::OptionalOps, //
    },
    Controls, //
};

use crate::{
    bindings,
    error::from_result,
    prelude::*, //
};

/// The use of pause frames (IEEE 802.3 annex 31B), see [`Controls::pause`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The link partners negotiate it.
    pub autoneg: bool,
    /// The card stops sending when its partner asks for that.
    pub rx: bool,
    /// The card asks its partner to stop when its memory is short.
    pub tx: bool,
}

impl<T: Controls> OptionalOps<T> {
    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `pause`.
    pub(super) unsafe extern "C" fn get_pauseparam(
        dev: *mut bindings::net_device,
        pause: *mut bindings::ethtool_pauseparam,
    ) {
        // SAFETY: The core calls us for a registered device, gives us `pause` to fill in, and holds
        // its lock.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let to = unsafe { &mut *pause };
        let from = T::pause(inner.data(), &mut lock);

        to.autoneg = from.autoneg.into();
        to.rx_pause = from.rx.into();
        to.tx_pause = from.tx.into();
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `pause`.
    pub(super) unsafe extern "C" fn set_pauseparam(
        dev: *mut bindings::net_device,
        pause: *mut bindings::ethtool_pauseparam,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The core calls us for a registered device, with a valid `pause`, and holds
            // its lock.
            let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
            // SAFETY: As above.
            let from = unsafe { &*pause };
            let pause = Pause {
                autoneg: from.autoneg != 0,
                rx: from.rx_pause != 0,
                tx: from.tx_pause != 0,
            };

            inner.check_reachable()?;
            T::set_pause(inner.data(), inner.dev(), pause, &mut lock)?;
            Ok(0)
        })
    }
}
