// SPDX-License-Identifier: GPL-2.0

//! The table and the key by which received packets are spread over queues.

use super::{
    super::{
        ops,
        ops_lock::OpsLocked,
        optional_ops::OptionalOps,
        Device, //
    },
    Controls,
    ExtAck, //
};

use crate::{
    bindings,
    error::from_result,
    prelude::*, //
};

use core::slice;

/// The hash of Toeplitz, as a bit.
const TOEPLITZ: u8 = 1 << bindings::ETH_RSS_HASH_TOP_BIT;

/// A change of the table or the key, see [`Controls::set_rss`].
pub struct RssChange<'a> {
    /// The queue for each entry of the table, if it changes.
    pub table: Option<&'a [u32]>,
    /// The key, if it changes.
    pub key: Option<&'a [u8]>,
}

impl Device {
    /// Whether users have set the table by which received packets are spread over queues. If not,
    /// the driver spreads them evenly.
    pub fn is_rss_configured(&self, _lock: &OpsLocked<'_>) -> bool {
        // SAFETY: By the type invariants, the device is valid. The lock of its operations is held.
        unsafe { bindings::netif_is_rxfh_configured(self.as_raw()) }
    }
}

/// A buffer of the core, if there is one. The core does not always tell its length, which is that
/// of the table or the key.
///
/// # Safety
///
/// `ptr` must be null, or be valid for reads and writes of `len` values during the lifetime, with
/// no other users.
unsafe fn buffer<'a, V>(ptr: *mut V, len: usize) -> Option<&'a mut [V]> {
    if ptr.is_null() {
        return None;
    }
    // SAFETY: By the safety requirements.
    Some(unsafe { slice::from_raw_parts_mut(ptr, len) })
}

impl<T: Controls> OptionalOps<T> {
    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    pub(super) unsafe extern "C" fn get_rx_ring_count(dev: *mut bindings::net_device) -> u32 {
        // SAFETY: The core calls us for a registered device.
        let inner = unsafe { ops::inner::<T>(dev) };
        // SAFETY: The lock of the device's operations is held.
        let lock = unsafe { OpsLocked::assume_held(inner.dev()) };

        // The core divides by this.
        inner.channels(&lock).into()
    }

    /// # Safety
    ///
    /// Must only be called by the core.
    pub(super) unsafe extern "C" fn get_rxfh_key_size(_dev: *mut bindings::net_device) -> u32 {
        const { assert!(T::RSS_KEY_LEN <= bindings::NETDEV_RSS_KEY_LEN as usize) };

        // CAST: It has just been checked.
        T::RSS_KEY_LEN as u32
    }

    /// # Safety
    ///
    /// Must only be called by the core.
    pub(super) unsafe extern "C" fn get_rxfh_indir_size(_dev: *mut bindings::net_device) -> u32 {
        const { assert!(T::RSS_ENTRIES <= u16::MAX as usize) };

        // CAST: It has just been checked.
        T::RSS_ENTRIES as u32
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `param`.
    pub(super) unsafe extern "C" fn get_rxfh(
        dev: *mut bindings::net_device,
        param: *mut bindings::ethtool_rxfh_param,
    ) -> c_int {
        // SAFETY: The core calls us for a registered device, and holds its lock. The buffers of
        // `param` are ours to fill in.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let (table, key) = unsafe {
            (*param).hfunc = TOEPLITZ;
            (
                buffer((*param).indir, T::RSS_ENTRIES),
                buffer((*param).key, T::RSS_KEY_LEN),
            )
        };

        T::rss(inner.data(), table, key, &mut lock);
        0
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `param`.
    pub(super) unsafe extern "C" fn set_rxfh(
        dev: *mut bindings::net_device,
        param: *mut bindings::ethtool_rxfh_param,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The core calls us for a registered device, with valid arguments, and holds
            // its lock.
            let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
            // SAFETY: As above.
            let (param, extack) = unsafe { (&*param, ExtAck::new(extack)) };
            // Zero leaves it as it is.
            if !matches!(param.hfunc, 0 | TOEPLITZ) {
                return Err(extack.refuse(EOPNOTSUPP, c"the card has the hash of Toeplitz only"));
            }

            // SAFETY: The buffers are those of the core, which does not use them meanwhile.
            let (table, key) = unsafe {
                (
                    buffer(param.indir, T::RSS_ENTRIES),
                    buffer(param.key, T::RSS_KEY_LEN),
                )
            };
            let table = table.map(|table| &*table);
            let queues = u32::from(inner.channels(&lock));
            if table.is_some_and(|table| table.iter().any(|queue| *queue >= queues)) {
                return Err(extack.refuse(EINVAL, c"there is no such queue"));
            }
            let key = key.map(|key| &*key);
            let change = RssChange { table, key };

            inner.check_reachable()?;
            T::set_rss(inner.data(), inner.dev(), change, &mut lock, &extack)?;
            Ok(0)
        })
    }
}
