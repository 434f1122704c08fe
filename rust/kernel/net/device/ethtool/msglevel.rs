// SPDX-License-Identifier: GPL-2.0

//! The kinds of messages that a driver logs.

use super::super::prelude::*;

use crate::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// A kind of messages, as `netif_msg_link()` and others ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum MsgClass {
    /// About the link.
    Link = bindings::NETIF_MSG_LINK_BIT,
    /// About errors in transmission.
    TxError = bindings::NETIF_MSG_TX_ERR_BIT,
    /// About the NIC.
    Hardware = bindings::NETIF_MSG_HW_BIT,
}

/// All of them.
const KINDS: u32 =
    1 << MsgClass::Link as u32 | 1 << MsgClass::TxError as u32 | 1 << MsgClass::Hardware as u32;

/// The kinds of messages that a driver logs now, see [`MsgLevelOps::msglevel`].
///
/// # Examples
///
/// ```
/// use kernel::net::device::ethtool::msglevel::{
///     MsgClass,
///     MsgLevel, //
/// };
///
/// let level = MsgLevel::new(&[MsgClass::Link, MsgClass::Hardware]);
///
/// assert!(level.has(MsgClass::Link));
/// assert!(!level.has(MsgClass::TxError));
/// ```
pub struct MsgLevel(Atomic<u32>);

impl MsgLevel {
    /// These kinds, until users choose others.
    pub const fn new(kinds: &[MsgClass]) -> Self {
        let (mut bits, mut index) = (0, 0);

        while index < kinds.len() {
            bits |= 1 << kinds[index] as u32;
            index += 1;
        }
        Self(Atomic::new(bits))
    }

    /// Whether messages of this kind are logged.
    #[inline]
    pub fn has(&self, kind: MsgClass) -> bool {
        self.0.load(Relaxed) & 1 << kind as u32 != 0
    }
}

/// A driver whose messages users choose, see [`OptionalOps::msglevel`].
pub trait MsgLevelOps: Driver {
    /// The kinds of messages that the driver logs, which users change by `ethtool -s DEV msglvl`.
    ///
    /// Any context; the device may be suspended.
    fn msglevel<'a>(data: &'a Self::Data<'_>) -> &'a MsgLevel;
}

impl<T: MsgLevelOps> OptionalOps<T> {
    /// Adds the callbacks of [`MsgLevelOps`].
    pub const fn msglevel(mut self) -> Self {
        self.ethtool.get_msglevel = Some(Self::get_msglevel);
        self.ethtool.set_msglevel = Some(Self::set_msglevel);
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    unsafe extern "C" fn get_msglevel(dev: *mut bindings::net_device) -> u32 {
        // SAFETY: The core calls us for a registered device.
        let inner = unsafe { ops::inner::<T>(dev) };

        T::msglevel(inner.data().get_ref()).0.load(Relaxed)
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    unsafe extern "C" fn set_msglevel(dev: *mut bindings::net_device, bits: u32) {
        // SAFETY: The core calls us for a registered device.
        let inner = unsafe { ops::inner::<T>(dev) };

        T::msglevel(inner.data().get_ref())
            .0
            .store(bits & KINDS, Relaxed);
        // This callback cannot fail: users see what they got, and find the reason in the log.
        if bits & !KINDS != 0 {
            crate::netdev_notice!(
                inner.dev(),
                "msglvl: no messages of kind {:#x}\n",
                bits & !KINDS
            );
        }
    }
}
