// SPDX-License-Identifier: GPL-2.0

//! Features that users switch.

use super::{
    attributes::Attributes,
    ops_lock::Locks,
    prelude::*,
    Features, //
};

/// How a driver wants a new set of features to take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeaturesChange {
    /// It is in effect already, or with the next packet.
    Live,
    /// The device has to be stopped and started again.
    Restart,
    /// Its receive queues have to be, one by one, with the memory that they have, see
    /// [`QueueMgmtOps`](super::queue_mgmt::QueueMgmtOps): descriptors mean something else from then
    /// on. The device stays up, and [`Device::features`] returns the new set while some of the
    /// queues still are as they were: each of them has to know. This is for features of which a
    /// received frame does not tell whether they were in effect, as the tag that it was stripped
    /// of. Without that trait, the device is restarted.
    RestartRx,
}

/// A driver of a NIC with features that take more to switch than a look at them for each packet,
/// see [`OptionalOps::features`].
pub trait FeaturesOps: Driver {
    /// Applies a new set of features, which [`Device::features`] returns if this succeeds.
    ///
    /// It takes effect at once, or when the device is started again if this asks for
    /// [`FeaturesChange::Restart`]: [`Device::features`] returns it from [`Driver::start`] on, and
    /// what the device was before until then, see
    /// [`Opening::features`](super::Opening::features). If there is no memory to restart it, this
    /// is called with the old set. Process context, RTNL held, while the device is up: else
    /// [`Driver::start`] applies them.
    fn set_features<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        features: Features,
        locks: &mut Locks<'bound>,
    ) -> Result<FeaturesChange>;

    /// Returns which of the features that are wanted the device can have, with its other settings.
    ///
    /// Those that it cannot have stay wanted: the next change of features asks again. The other
    /// features of the change are not refused for them. Process context, RTNL held; the device may
    /// be up or down, or about to be registered.
    fn fix_features<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        wanted: Features,
    ) -> Features;
}

impl<T: FeaturesOps> OptionalOps<T> {
    /// Adds the callbacks of [`FeaturesOps`].
    pub const fn features(mut self) -> Self {
        self.netdev.ndo_set_features = Some(Self::set_features);
        self.netdev.ndo_fix_features = Some(Self::fix_features);
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T` that is registered, or about to
    /// be.
    unsafe extern "C" fn fix_features(
        dev: *mut bindings::net_device,
        features: bindings::netdev_features_t,
    ) -> bindings::netdev_features_t {
        // SAFETY: The device is registered, or has all that it needs to be.
        let inner = unsafe { ops::inner::<T>(dev) };
        let wanted = inner.without_excluded(Features::from_raw(features));

        // The driver cannot add any.
        wanted
            .common(T::fix_features(inner.data(), inner.dev(), wanted))
            .consistent()
            .0
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`. RTNL and the lock of the
    /// device's operations must be held.
    unsafe extern "C" fn set_features(
        dev: *mut bindings::net_device,
        features: bindings::netdev_features_t,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The device is registered, and both locks are held.
            let (inner, mut locks) = unsafe { ops::locked_rtnl::<T>(dev) };
            let locks = &mut locks;

            if !inner.dev().is_running() || inner.check_reachable().is_err() {
                return Ok(0);
            }
            let (old, new) = (inner.dev().features(), Features::from_raw(features));
            let change = T::set_features(inner.data(), inner.dev(), new, locks)?;
            match (change, T::OPS.restart_rx) {
                (FeaturesChange::Live, _) => return Ok(0),
                (FeaturesChange::RestartRx, Some(restart_rx)) => {
                    inner.dev().set_features(new, locks);
                    // SAFETY: The device is one of this driver, and up.
                    unsafe { restart_rx(inner.dev(), locks.ops_mut()) };
                }
                (FeaturesChange::Restart | FeaturesChange::RestartRx, _) => {
                    let new = Attributes {
                        features: new,
                        ..Attributes::of(inner.dev())
                    };
                    inner.restart_or_undo(new, locks, |locks| {
                        // If it is up, it was not restarted, and may do some of them already.
                        if inner.is_up(locks) {
                            let _ = T::set_features(inner.data(), inner.dev(), old, locks);
                        }
                    })?;
                }
            }

            // The queues go on with the new set, which the core sets after this.
            inner.dev().set_features(new.before_core(old), locks);
            Ok(0)
        })
    }
}
