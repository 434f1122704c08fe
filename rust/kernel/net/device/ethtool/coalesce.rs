// SPDX-License-Identifier: GPL-2.0

//! Coalescing of interrupts.

use super::super::prelude::*;

/// The coalescing of the interrupts of queue vectors.
///
/// A vector has one interrupt for what its queues have received and sent. For users these are the
/// parameters of reception, `rx-usecs` and `adaptive-rx`, as for other drivers with such vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coalesce {
    /// The least time between two interrupts, in µs. If the driver adapts it, the last that users
    /// have set, or a typical one.
    pub usecs: u32,
    /// The driver adapts the time to the load.
    pub adaptive: bool,
}

/// The parameters that users can set. The core refuses others.
// ETHTOOL_COALESCE_RX_USECS and ETHTOOL_COALESCE_USE_ADAPTIVE_RX: `bindgen` does not see through
// `BIT()`. The helpers in C check the values.
const PARAMS: u32 = 1 << 0 | 1 << 9;

/// A driver that coalesces interrupts, see [`OptionalOps::coalesce`].
pub trait CoalesceOps: Driver {
    /// The setting, for `ethtool -c`.
    fn coalesce<'bound>(data: Pin<&Self::Data<'bound>>, lock: &mut OpsLocked<'bound>) -> Coalesce;

    /// Changes the setting of all queue vectors, for `ethtool -C`. Another time comes only if the
    /// driver is not to adapt it: with that it has no effect, and is refused before.
    fn set_coalesce<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        coalesce: Coalesce,
        lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result;
}

impl<T: CoalesceOps> OptionalOps<T> {
    /// Adds the callbacks of [`CoalesceOps`].
    pub const fn coalesce(mut self) -> Self {
        self.ethtool.supported_coalesce_params = PARAMS;
        self.ethtool.get_coalesce = Some(Self::get_coalesce);
        self.ethtool.set_coalesce = Some(Self::set_coalesce);
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `coalesce`.
    unsafe extern "C" fn get_coalesce(
        dev: *mut bindings::net_device,
        coalesce: *mut bindings::ethtool_coalesce,
        _kernel: *mut bindings::kernel_ethtool_coalesce,
        _extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: The core calls us for a registered device, gives us `coalesce` to fill in, and
        // holds its lock.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let coalesce = unsafe { &mut *coalesce };
        let setting = T::coalesce(inner.data(), &mut lock);

        coalesce.rx_coalesce_usecs = setting.usecs;
        coalesce.use_adaptive_rx_coalesce = setting.adaptive.into();
        0
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `coalesce`.
    unsafe extern "C" fn set_coalesce(
        dev: *mut bindings::net_device,
        coalesce: *mut bindings::ethtool_coalesce,
        _kernel: *mut bindings::kernel_ethtool_coalesce,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        // SAFETY: The core calls us for a registered device, with valid arguments, and holds
        // its lock.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let (coalesce, extack) = unsafe { (&*coalesce, ExtAck::new(extack)) };
        let wanted = Coalesce {
            usecs: coalesce.rx_coalesce_usecs,
            adaptive: coalesce.use_adaptive_rx_coalesce != 0,
        };

        inner.if_reachable(|| {
            let now = T::coalesce(inner.data(), &mut lock);
            if wanted.adaptive && now.usecs != wanted.usecs {
                return Err(extack.refuse(
                    EINVAL,
                    c"rx-usecs has no effect with adaptive-rx: turn that off, too",
                ));
            }
            T::set_coalesce(inner.data(), inner.dev(), wanted, &mut lock, &extack)
        })
    }
}
