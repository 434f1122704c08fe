// SPDX-License-Identifier: GPL-2.0

//! Suspended network devices: the NIC sleeps, is reset, or its bus has failed.
//!
//! The device core does this for a driver, beside taking the device down and up as [`Up`]
//! describes:
//!
//! 1. The device is marked as absent: its queues are stopped, users can neither open nor configure
//!    it, and late callbacks are refused.
//! 2. It goes down. If the NIC cannot be reached, [`Driver::quiesce`] is left out, and memory is
//!    kept.
//! 3. The NIC may not access memory, which includes that it raises no interrupts. If it is to wake
//!    the machine from sleep, it gets ready for that.
//! 4. The bus does its part, until the NIC can be reached again.
//! 5. [`Driver::reset`]. Memory is freed that was kept, since the NIC may have accessed it.
//! 6. When the NICs of all network devices of the bus device are reset, they may access memory. If
//!    it was up, the device goes up. If that fails, it is closed.
//! 7. The device is marked as present.
//!
//! When the machine goes off, steps 1 to 3 are the last ones, and the device is closed.
//!
//! [`Up`]: super::up::Up

use super::{
    inner::Inner,
    ops_lock::Locks,
    registration::Registration,
    up::BusIo,
    Driver,
    Parent, //
};

use crate::{
    driver::registrations::{
        self,
        Shutdown,
        Suspension, //
    },
    prelude::*, //
};

impl<T: Driver> Inner<T> {
    /// Steps 1 to 3. If this fails, nothing has changed.
    fn suspend(&self, why: Suspension, locks: &mut Locks<'static>) -> Result {
        if !T::HAS_RESET && why.is_refusable() {
            crate::netdev_err!(self.dev(), "suspend refused: the driver has no reset()\n");
            return Err(EOPNOTSUPP);
        }

        self.dev().detach(locks);
        self.set_suspended(true, locks);
        if why.is_reachable() {
            self.end_up(BusIo::Normal, locks);
        } else {
            self.end_up(BusIo::Frozen, locks);
        }
        // The memory that the NIC knows of is kept, if there is any. So this is for interrupts, and
        // it does not matter if it has no effect.
        self.bus.forbid_dma();
        if why == Suspension::Sleep {
            self.arm_wake_up(locks);
        }
        Ok(())
    }

    /// Step 5.
    fn reset(&self, locks: &mut Locks<'static>) -> Result {
        if !T::HAS_RESET {
            return Err(EOPNOTSUPP);
        }
        T::reset(self.data(), self.dev(), locks)?;

        // It does not know of any memory.
        self.free_kept(locks);
        Ok(())
    }

    /// Steps 5 to 7; step 5 only if it has not been done.
    fn resume(&self, is_reset: bool, locks: &mut Locks<'static>) -> Result {
        let dev = self.dev();

        if !is_reset {
            self.reset(locks).inspect_err(|error| {
                crate::netdev_err!(
                    dev,
                    "reset failed ({error:?}), closing; unbind and rebind the device\n"
                );
                dev.close(locks);
            })?;
        }

        self.set_suspended(false, locks);
        self.bus.allow_dma();
        let result = if dev.is_running() {
            self.go_up(locks).inspect_err(|error| {
                crate::netdev_err!(dev, "resume failed, closing: {error:?}\n");
                dev.close(locks);
            })
        } else {
            Ok(())
        };
        dev.attach(locks);
        if dev.is_running() {
            dev.refresh_rx_mode(locks);
        }
        result
    }
}

// As `Registration` describes, there are no callbacks after it was dropped.
impl<T: Driver> registrations::Registration for Registration<T> {
    fn end(&self) {
        Self::end(self);
    }

    fn shutdown(&self, why: Shutdown) -> bool {
        let inner = self.inner();

        Locks::with(inner.dev(), |locks| {
            let was_reachable = inner.check_reachable().is_ok();

            // It cannot be opened again. And the bus may lower its power after this, while those
            // who read counters, for instance, do not know that the machine goes off.
            inner.dev().detach(locks);
            inner.set_suspended(true, locks);
            inner.dev().close(locks);
            why == Shutdown::PowerOff && was_reachable && inner.arm_wake_up(locks)
        })
    }

    fn suspend(&self, why: Suspension) -> Result {
        let inner = self.inner();

        Locks::with(inner.dev(), |locks| inner.suspend(why, locks))
    }

    fn reset(&self) -> Result {
        let inner = self.inner();

        Locks::with(inner.dev(), |locks| inner.reset(locks))
    }

    fn resume(&self, is_reset: bool) -> Result {
        let inner = self.inner();

        Locks::with(inner.dev(), |locks| inner.resume(is_reset, locks))
    }
}
