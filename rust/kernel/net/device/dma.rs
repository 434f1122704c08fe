// SPDX-License-Identifier: GPL-2.0

//! Whether the card of a device may access memory.

use super::{
    bus::{
        self,
        Parent, //
    },
    ops_lock::Configuring,
    shared::Shared,
    Driver,
    Rtnl, //
};

use crate::prelude::*;

use core::mem;

impl<T: Driver> Shared<T> {
    /// Keeps a card that its driver could not stop from accessing memory. From then on, the device
    /// cannot go up: the addresses that the card holds are stale, and it must not access memory
    /// until it was reset.
    ///
    /// Returns whether it is certain that the card accesses none.
    pub(super) fn isolate(&self, error: Error, locks: &mut Configuring) -> bool {
        *self.stuck.get_mut(locks.ops_mut()) = true;
        let is_certain = self.forbid_dma(locks);

        if is_certain {
            dev_err!(
                self.dev(),
                "the card does not stop ({error:?}); it is kept from accessing memory\n"
            );
        } else {
            dev_err!(
                self.dev(),
                "the card does not stop ({error:?}); its rings are not freed before a reset\n"
            );
        }
        is_certain
    }

    /// Keeps a card from accessing memory that cannot be reached, other than by its configuration
    /// space. It will be reset before it is used again.
    ///
    /// Returns whether it is certain that the card does not.
    pub(super) fn cut_off(&self, locks: &mut Configuring) -> bool {
        let is_certain = self.forbid_dma(locks);

        if !is_certain {
            dev_err!(
                self.dev(),
                "the card cannot be reached; its rings are not freed before a reset\n"
            );
        }
        is_certain
    }

    /// Fails if a card of the bus device is kept from accessing memory that was freed.
    pub(super) fn check_bus(&self, rtnl: &Rtnl) -> Result {
        if bus::is_relied_on(self.bus_address(), rtnl) {
            dev_err!(
                self.dev(),
                "another card of the bus device did not stop; it has to be bound again\n"
            );
            return Err(EIO);
        }
        Ok(())
    }

    /// Keeps a card from accessing memory until it was reset, as its rings and buffers are freed.
    ///
    /// Returns whether it is certain that it does not.
    fn forbid_dma(&self, locks: &mut Configuring) -> bool {
        // All virtual devices have the same parent, which is none.
        if !T::Bus::HAS_CARD {
            return true;
        }
        if !self.bus.forbid_dma() {
            return false;
        }
        if !*self.relies.get(locks.ops()) {
            if bus::rely_on_no_access(self.bus_address(), locks).is_err() {
                return false;
            }
            *self.relies.get_mut(locks.ops_mut()) = true;
        }
        true
    }

    /// Lets the card access memory, of which it knows none.
    ///
    /// The same bus device may have other network devices, with cards or parts of one that have not
    /// been reset yet. Then the last one of them does this.
    pub(super) fn allow_dma(&self, locks: &mut Configuring) {
        self.rely_no_more(locks);
        if !bus::is_relied_on(self.bus_address(), locks) {
            self.bus.allow_dma();
        }
    }

    pub(super) fn rely_no_more(&self, locks: &mut Configuring) {
        if mem::take(self.relies.get_mut(locks.ops_mut())) {
            bus::rely_no_more(self.bus_address(), locks);
        }
    }
}
