// SPDX-License-Identifier: GPL-2.0

//! Changes to the settings of a device that may be up.

use super::{
    attributes::Attributes,
    inner::Inner,
    ops_lock::Locks,
    rings::{
        Config,
        RingSizes, //
    },
    up::SpareVectors,
    Device,
    Driver, //
};

use crate::{
    bindings,
    error::to_result,
    prelude::*,
    sync::atomic::Relaxed, //
};

impl<T: Driver> Inner<T> {
    /// Changes the settings. If the device is up, it goes on with them; if it cannot be up with
    /// them, it has the old ones.
    pub(super) fn reconfigure(
        &self,
        change: impl FnOnce(&mut Config),
        locks: &mut Locks<'static>,
    ) -> Result {
        let config = self.config.get_mut(locks.ops_mut());
        let old = *config;

        change(config);
        let new = *config;
        if new == old || !self.dev().is_running() {
            return Ok(());
        }
        let rx_only = Config {
            rings: RingSizes {
                rx: new.rings.rx,
                ..old.rings
            },
            ..old
        };
        if new == rx_only && T::OPS.queue_mgmt.is_some() && self.is_up(locks) {
            if self.replace_rx(old, locks)? {
                return Ok(());
            }
        }

        let same = Attributes::of(self.dev());
        self.restart_or_undo(same, locks, |locks| {
            *self.config.get_mut(locks.ops_mut()) = old;
        })
    }

    /// Has the receive queues get other memory one after another, while the device stays up, and so
    /// does its link. Returns false if the device has to be restarted for that: a queue has not
    /// stopped, or the NIC has to be reset first.
    ///
    /// If there is no memory for a queue, the settings are the `old` ones, and those before it get
    /// memory again.
    fn replace_rx(&self, old: Config, locks: &mut Locks<'static>) -> Result<bool> {
        for queue in 0..old.channels {
            let Err(error) = restart_rx_queue(self.dev(), queue, locks) else {
                continue;
            };
            if error == EAGAIN || self.wants_restart.load(Relaxed) {
                return Ok(false);
            }
            *self.config.get_mut(locks.ops_mut()) = old;
            for queue in 0..queue {
                if restart_rx_queue(self.dev(), queue, locks).is_err() {
                    // It has not the memory that the settings tell of.
                    let _ = self.restart_or_close(locks);
                    break;
                }
            }
            return Err(error);
        }
        Ok(true)
    }

    /// Has a device that the core believes to be up go on with settings that were changed, and
    /// with these attributes, which it gets while it is down: rings that were made with others are
    /// not used with them. If it cannot, `undo` takes the settings back, and the device is up with
    /// the old ones.
    pub(super) fn restart_or_undo(
        &self,
        attributes: Attributes,
        locks: &mut Locks<'static>,
        undo: impl FnOnce(&mut Locks<'static>),
    ) -> Result {
        let old = Attributes::of(self.dev());
        let spare = if T::OPEN_WHILE_UP && self.is_up(locks) {
            match SpareVectors::new(self, attributes, locks) {
                Ok(spare) => Some(spare),
                // The device does not notice.
                Err(error) => {
                    undo(locks);
                    return Err(error);
                }
            }
        } else {
            None
        };

        self.go_down(locks);
        attributes.apply(self.dev(), locks);
        self.restart_with(spare, locks).or_else(|error| {
            old.apply(self.dev(), locks);
            undo(locks);
            self.restart_or_close(locks).and(Err(error))
        })
    }
}

/// Restarts a receive queue with other memory.
///
/// Not generic, so that this is not part of a driver's module.
#[inline(never)]
pub(super) fn restart_rx_queue(dev: &Device, queue: u16, _locks: &mut Locks<'static>) -> Result {
    // SAFETY: The device is registered, and has the queue. Its lock is held, which drivers with
    // queue management have, and the token is lent to the callbacks.
    to_result(unsafe { bindings::netdev_rx_queue_restart(dev.as_raw(), queue.into()) })
}
