// SPDX-License-Identifier: GPL-2.0

//! The kinds of messages that a driver logs.

use super::{
    super::{
        ops,
        optional_ops::OptionalOps, //
    },
    Controls, //
};

use crate::{
    bindings,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

/// A kind of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Message {
    /// About the driver as such.
    Driver = bindings::NETIF_MSG_DRV_BIT,
    /// About the search for cards.
    Probe = bindings::NETIF_MSG_PROBE_BIT,
    /// About the link.
    Link = bindings::NETIF_MSG_LINK_BIT,
    /// About errors in reception.
    RxError = bindings::NETIF_MSG_RX_ERR_BIT,
    /// About errors in transmission.
    TxError = bindings::NETIF_MSG_TX_ERR_BIT,
    /// About the card.
    Hardware = bindings::NETIF_MSG_HW_BIT,
}

/// The kinds of messages that a driver logs now, see [`Controls::messages`].
///
/// # Examples
///
/// ```
/// use kernel::net::device::controls::{
///     Message,
///     Messages, //
/// };
///
/// let messages = Messages::new(&[Message::Link, Message::Hardware]);
///
/// assert!(messages.have(Message::Link));
/// assert!(!messages.have(Message::TxError));
/// ```
pub struct Messages(Atomic<u32>);

impl Messages {
    /// These kinds, until users choose others.
    pub const fn new(kinds: &[Message]) -> Self {
        let (mut bits, mut index) = (0, 0);

        while index < kinds.len() {
            bits |= 1 << kinds[index] as u32;
            index += 1;
        }
        Self(Atomic::new(bits))
    }

    /// Whether messages of this kind are logged.
    #[inline]
    pub fn have(&self, kind: Message) -> bool {
        self.0.load(Relaxed) & 1 << kind as u32 != 0
    }
}

impl<T: Controls> OptionalOps<T> {
    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    pub(super) unsafe extern "C" fn get_msglevel(dev: *mut bindings::net_device) -> u32 {
        // SAFETY: The core calls us for a registered device.
        let inner = unsafe { ops::inner::<T>(dev) };

        T::messages(inner.data().get_ref()).0.load(Relaxed)
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    pub(super) unsafe extern "C" fn set_msglevel(dev: *mut bindings::net_device, bits: u32) {
        // SAFETY: The core calls us for a registered device.
        let inner = unsafe { ops::inner::<T>(dev) };

        // Bits without a kind stay as they are, for users to find them again.
        T::messages(inner.data().get_ref()).0.store(bits, Relaxed);
    }
}
