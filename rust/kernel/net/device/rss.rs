// SPDX-License-Identifier: GPL-2.0

//! Receive side scaling: spreading received packets over several queues.
//!
//! C headers: [`include/linux/ethtool.h`](srctree/include/linux/ethtool.h),
//! [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h)

use crate::bindings;

/// Returns the key for the hash over received packets, the same one each time until the next boot.
///
/// It is random, so that a remote host cannot craft packets that all go to one queue.
pub fn rss_key<const N: usize>() -> [u8; N] {
    const { assert!(N <= bindings::NETDEV_RSS_KEY_LEN as usize) };
    let mut key = [0; N];

    // SAFETY: The buffer has `N` bytes, which is not more than the key has.
    unsafe { bindings::netdev_rss_key_fill(key.as_mut_ptr().cast(), N) };
    key
}

/// Returns the number of CPUs that are online now, at most [`u16::MAX`]: a NIC has no use for more
/// queues than that.
pub fn online_cpus() -> u16 {
    // SAFETY: There are no requirements.
    u16::try_from(unsafe { bindings::num_online_cpus() }).unwrap_or(u16::MAX)
}
