// SPDX-License-Identifier: GPL-2.0

//! Flow control by pause frames.

use super::{
    super::prelude::*,
    mac_stats::put, //
};

/// The use of pause frames (IEEE 802.3 annex 31B), see [`PauseOps::pause`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The link partners negotiate it.
    pub autoneg: bool,
    /// The NIC stops sending when its partner asks for that.
    pub rx: bool,
    /// The NIC asks its partner to stop when its memory is short.
    pub tx: bool,
}

/// Counters of pause frames, for `ethtool -I -a DEV`.
///
/// Fields are [`None`] if the NIC does not count that; users then do not see them.
#[derive(Clone, Copy, Debug, Default)]
pub struct PauseStats {
    /// Frames sent.
    pub tx_frames: Option<u64>,
    /// Frames received.
    pub rx_frames: Option<u64>,
}

/// A driver of a NIC that pauses, see [`OptionalOps::pause`].
pub trait PauseOps: Driver {
    /// The setting, for `ethtool -a`.
    fn pause<'bound>(data: Pin<&Self::Data<'bound>>, lock: &mut OpsLocked<'bound>) -> Pause;

    /// Changes the setting, for `ethtool -A`. By [`Device::refuse`], users get to know why not.
    fn set_pause<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        pause: Pause,
        lock: &mut OpsLocked<'bound>,
    ) -> Result;

    /// The counters of pause frames.
    fn pause_stats<'bound>(
        data: Pin<&Self::Data<'bound>>,
        lock: &mut OpsLocked<'bound>,
    ) -> PauseStats;
}

impl<T: PauseOps> OptionalOps<T> {
    /// Adds the callbacks of [`PauseOps`].
    pub const fn pause(mut self) -> Self {
        self.ethtool.get_pauseparam = Some(Self::get_pauseparam);
        self.ethtool.set_pauseparam = Some(Self::set_pauseparam);
        self.ethtool.get_pause_stats = Some(Self::get_pause_stats);
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `pause`.
    unsafe extern "C" fn get_pauseparam(
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
    unsafe extern "C" fn set_pauseparam(
        dev: *mut bindings::net_device,
        pause: *mut bindings::ethtool_pauseparam,
    ) -> c_int {
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

        inner.if_reachable(|| T::set_pause(inner.data(), inner.dev(), pause, &mut lock))
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with valid `stats`.
    unsafe extern "C" fn get_pause_stats(
        dev: *mut bindings::net_device,
        stats: *mut bindings::ethtool_pause_stats,
    ) {
        // SAFETY: The core calls us for a registered device, gives us `stats` to fill in, of which
        // both views are plain numbers, and holds its lock.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let to = unsafe { &mut (*stats).__bindgen_anon_1.__bindgen_anon_1 };
        if inner.check_reachable().is_err() {
            return;
        }
        let from = T::pause_stats(inner.data(), &mut lock);

        put(&mut to.tx_pause_frames, from.tx_frames);
        put(&mut to.rx_pause_frames, from.rx_frames);
    }
}
