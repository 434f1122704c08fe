// SPDX-License-Identifier: GPL-2.0

//! Changes to the settings of a device that may be up.

use super::{
    attributes::Attributes,
    inner::Inner,
    ops_lock::Locks,
    rings::Config,
    up::SpareVectors,
    Driver, //
};

use crate::prelude::*;

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
        if *config == old || !self.dev().is_running() {
            return Ok(());
        }

        let same = Attributes::of(self.dev());
        self.restart_or_undo(same, locks, |locks| {
            *self.config.get_mut(locks.ops_mut()) = old;
        })
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
