// SPDX-License-Identifier: GPL-2.0

//! Devices of the plain driver, and operations of the core on them.

use super::{
    super::{
        super::{
            ops,
            Features, //
        },
        fixture,
        irq::Irq,
        registered::Registered, //
    },
    Plain,
    Plan, //
};

use crate::{
    bindings,
    prelude::*,
    sync::Arc, //
};

use core::ops::{
    Deref,
    DerefMut, //
};

/// A registered device of the driver.
pub(in super::super) struct PlainDevice<const OPS_LOCK: bool> {
    device: Registered<Plain<OPS_LOCK>>,
    pub(in super::super) plan: Arc<Plan>,
}

impl<const OPS_LOCK: bool> Deref for PlainDevice<OPS_LOCK> {
    type Target = Registered<Plain<OPS_LOCK>>;

    fn deref(&self) -> &Self::Target {
        &self.device
    }
}

impl<const OPS_LOCK: bool> DerefMut for PlainDevice<OPS_LOCK> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.device
    }
}

impl<const OPS_LOCK: bool> PlainDevice<OPS_LOCK> {
    pub(in super::super) fn new(plan: Plan) -> Result<Self> {
        let plan = Arc::new(plan, GFP_KERNEL)?;

        Ok(Self {
            device: Registered::new("rust_net_plain", plan.clone())?,
            plan,
        })
    }

    /// Runs `f` with the lock of the device's operations held.
    pub(in super::super) fn with_ops_lock<R>(
        &self,
        f: impl FnOnce(*mut bindings::net_device) -> R,
    ) -> R {
        if !OPS_LOCK {
            return self.with_rtnl(f);
        }
        // SAFETY: The device is registered, and this is process context.
        unsafe { bindings::netdev_lock_ops(self.dev()) };
        let result = f(self.dev());
        // SAFETY: Locked above.
        unsafe { bindings::netdev_unlock_ops(self.dev()) };
        result
    }

    /// Runs `f` with bottom halves disabled; softirqs that it raised run before this returns, or
    /// soon after that.
    pub(in super::super) fn settle(&self, f: impl FnOnce()) {
        // SAFETY: The device has a queue, and `f` does not transmit.
        unsafe {
            let queue = bindings::netdev_get_tx_queue(self.dev(), 0);
            bindings::__netif_tx_lock_bh(queue);
            f();
            bindings::__netif_tx_unlock_bh(queue);
        }
        self.wait_for_polls();
    }

    /// Raises an interrupt. Handlers and poll functions have run when this returns.
    pub(in super::super) fn raise(&self, irq: &Irq) {
        self.settle(|| irq.raise());
    }

    /// Calls `ndo_start_xmit` for a packet, without the checks of the core.
    pub(in super::super) fn transmit(&self, queue: u16) -> Result {
        let skb = fixture::packet(GFP_KERNEL)?.into_raw().as_ptr();
        let mut result = None;

        // SAFETY: The packet is ours, and is given away. The queue exists.
        unsafe {
            let locked = bindings::netdev_get_tx_queue(self.dev(), queue.into());
            bindings::__netif_tx_lock_bh(locked);
            (*skb).queue_mapping = queue;
            let xmit = (*(*self.dev()).netdev_ops).ndo_start_xmit;
            result = xmit.map(|xmit| xmit(skb, self.dev())).or(result);
            bindings::__netif_tx_unlock_bh(locked);
        }
        if result == Some(bindings::netdev_tx::NETDEV_TX_OK) {
            Ok(())
        } else {
            Err(EIO)
        }
    }

    pub(in super::super) fn is_stopped(&self, queue: u16) -> bool {
        // SAFETY: The device is registered, and has this queue.
        unsafe {
            bindings::netif_tx_queue_stopped(bindings::netdev_get_tx_queue(
                self.dev(),
                queue.into(),
            ))
        }
    }

    /// The number of receive and of transmit queues that are in use.
    pub(in super::super) fn real_queues(&self) -> (u32, u32) {
        // SAFETY: The device is registered, and tests alone change this.
        unsafe {
            (
                (*self.dev()).real_num_rx_queues,
                (*self.dev()).real_num_tx_queues,
            )
        }
    }

    pub(in super::super) fn channels(&self) -> bindings::ethtool_channels {
        let mut channels = bindings::ethtool_channels::default();

        self.with_ops_lock(|dev| {
            // SAFETY: The device is registered, and the lock of its operations is held.
            unsafe {
                if let Some(get) = (*(*dev).ethtool_ops).get_channels {
                    get(dev, &mut channels);
                }
            }
        });
        channels
    }

    pub(in super::super) fn set_channels(&self, count: u32) -> c_int {
        let mut channels = self.channels();

        channels.combined_count = count;
        self.with_both_locks(|dev| {
            // SAFETY: The device is registered, and both locks are held.
            unsafe {
                (*(*dev).ethtool_ops)
                    .set_channels
                    .map(|set| set(dev, &mut channels))
            }
        })
    }

    pub(in super::super) fn rings(&self) -> bindings::ethtool_ringparam {
        let mut rings = bindings::ethtool_ringparam::default();
        let (kernel, extack) = (core::ptr::null_mut(), core::ptr::null_mut());

        self.with_ops_lock(|dev| {
            // SAFETY: As in `channels()`.
            unsafe {
                if let Some(get) = (*(*dev).ethtool_ops).get_ringparam {
                    get(dev, &mut rings, kernel, extack);
                }
            }
        });
        rings
    }

    pub(in super::super) fn set_rings(
        &self,
        rx: u32,
        tx: u32,
        extack: &mut bindings::netlink_ext_ack,
    ) -> c_int {
        let mut rings = self.rings();

        (rings.rx_pending, rings.tx_pending) = (rx, tx);
        self.with_both_locks(|dev| {
            // SAFETY: As in `set_channels()`.
            unsafe {
                (*(*dev).ethtool_ops)
                    .set_ringparam
                    .map(|set| set(dev, &mut rings, core::ptr::null_mut(), extack))
            }
        })
    }

    pub(in super::super) fn mtu(&self) -> u32 {
        // SAFETY: The device is registered, and tests alone change this.
        unsafe { (*self.dev()).mtu }
    }

    /// Changes what users want. Returns the features that they can change and that are on.
    pub(in super::super) fn want(&self, features: Features) -> u64 {
        let got = self.with_both_locks(|dev| {
            // SAFETY: The device is registered, and both locks are held.
            unsafe {
                (*dev).wanted_features = features.0;
                bindings::netdev_update_features(dev);
            }
            Some(0)
        });

        assert_eq!(got, 0);
        // SAFETY: The device is registered, and tests alone change this.
        unsafe { (*self.dev()).features & (*self.dev()).hw_features }
    }

    /// Runs `f` with RTNL and the lock of the device's operations held. Without a result, there is
    /// no such callback.
    fn with_both_locks(&self, f: impl FnOnce(*mut bindings::net_device) -> Option<c_int>) -> c_int {
        let result = self.with_rtnl(|dev| {
            // SAFETY: The device is registered, and this is process context. Nothing is locked if
            // the device has no lock of its own.
            unsafe { bindings::netdev_lock_ops(dev) };
            let result = f(dev);
            // SAFETY: Locked above.
            unsafe { bindings::netdev_unlock_ops(dev) };
            result
        });

        result.unwrap_or(EOPNOTSUPP.to_errno())
    }

    /// Whether the stack believes that there is a link.
    pub(in super::super) fn is_linked(&self) -> bool {
        // SAFETY: The device is registered.
        unsafe { bindings::netif_carrier_ok(self.dev()) }
    }

    /// The counters of receive queue `index`.
    pub(in super::super) fn rx_stats(&self, index: c_int) -> (u64, u64) {
        let mut stats = bindings::netdev_queue_stats_rx::default();

        self.with_ops_lock(|dev| {
            // SAFETY: As above.
            unsafe {
                if let Some(get) = (*(*dev).stat_ops).get_queue_stats_rx {
                    get(dev, index, &mut stats);
                }
            }
        });
        (stats.packets, stats.bytes)
    }

    /// Lets the watchdog find a queue that hangs, and waits for the restart.
    pub(in super::super) fn time_out(&self) {
        let dev = self.dev();

        // SAFETY: The device is registered.
        unsafe {
            if let Some(timeout) = (*(*dev).netdev_ops).ndo_tx_timeout {
                timeout(dev, 0);
            }
        }
        self.wait_for_restart();
    }

    /// Waits for a restart that has been scheduled.
    pub(in super::super) fn wait_for_restart(&self) {
        // SAFETY: The device is registered.
        unsafe { bindings::flush_work(ops::inner::<Plain<OPS_LOCK>>(self.dev()).restart.get()) };
    }
}
