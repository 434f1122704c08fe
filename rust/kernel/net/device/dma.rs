// SPDX-License-Identifier: GPL-2.0

//! Whether a device may do DMA.

use super::{
    bus::{
        self,
        Parent, //
    },
    ops_lock::Locks,
    shared::Shared,
    Driver,
    Rtnl, //
};

use crate::prelude::*;

use core::mem;

impl<T: Driver> Shared<T> {
    /// Disables DMA of a NIC that its driver could not stop. From then on, the device cannot go up:
    /// the NIC holds stale addresses, and must not do DMA until it was reset.
    ///
    /// Returns whether it is certain that DMA has ended.
    pub(super) fn isolate(&self, error: Error, locks: &mut Locks<'static>) -> bool {
        *self.stuck.get_mut(locks.ops_mut()) = true;
        let is_certain = self.forbid_dma(locks);

        if is_certain {
            dev_err!(
                self.dev(),
                "DMA did not stop ({error:?}), bus mastering disabled\n"
            );
        } else {
            dev_err!(
                self.dev(),
                "DMA did not stop ({error:?}), rings stay allocated until a reset\n"
            );
        }
        is_certain
    }

    /// Disables DMA of a NIC of which only the configuration space can be accessed. It will be
    /// reset before it is used again.
    ///
    /// Returns whether it is certain that DMA has ended.
    pub(super) fn cut_off(&self, locks: &mut Locks<'static>) -> bool {
        let is_certain = self.forbid_dma(locks);

        if !is_certain {
            dev_err!(
                self.dev(),
                "device unreachable, rings stay allocated until a reset\n"
            );
        }
        is_certain
    }

    /// Fails if DMA of the bus device is blocked by another of its network devices.
    pub(super) fn check_bus(&self, rtnl: &Rtnl) -> Result {
        if bus::is_dma_blocked(self.bus_address(), rtnl) {
            dev_err!(
                self.dev(),
                "DMA of another port did not stop; unbind and rebind the device\n"
            );
            return Err(EIO);
        }
        Ok(())
    }

    /// Blocks DMA until the NIC was reset, as its rings and buffers are freed.
    ///
    /// Returns whether it is certain that DMA has ended.
    fn forbid_dma(&self, locks: &mut Locks<'static>) -> bool {
        // All virtual devices have the same parent, which is none.
        if !T::Bus::HAS_DMA {
            return true;
        }
        if !self.bus.forbid_dma() {
            return false;
        }
        if !*self.blocks_dma.get(locks.ops()) {
            if bus::dma_block_get(self.bus_address(), locks).is_err() {
                return false;
            }
            *self.blocks_dma.get_mut(locks.ops_mut()) = true;
        }
        true
    }

    /// Enables DMA of a NIC that has no addresses.
    ///
    /// Other network devices of the same bus device may not have been reset yet. Then the last one
    /// of them does this.
    pub(super) fn allow_dma(&self, locks: &mut Locks<'static>) {
        self.dma_block_put(locks);
        if !bus::is_dma_blocked(self.bus_address(), locks) {
            self.bus.allow_dma();
        }
    }

    pub(super) fn dma_block_put(&self, locks: &mut Locks<'static>) {
        if mem::take(self.blocks_dma.get_mut(locks.ops_mut())) {
            bus::dma_block_put(self.bus_address(), locks);
        }
    }
}
