// SPDX-License-Identifier: GPL-2.0

//! The test of a NIC that is in loopback: frames that it sends come back to it.
//!
//! The device goes up with its own rings, interrupts and poll functions, and each transmit queue
//! sends frames of several lengths to the address of the device. Nothing in the stack sees them,
//! sniffers included, since they are taken from GRO. A generic XDP program would see them, so with
//! one the test fails with `EBUSY`.
//!
//! Queueing disciplines are deactivated meanwhile, and keep their packets. The carrier is off, for
//! the sake of those who pass queueing disciplines by. The driver receives by
//! [`Poll::receive`](crate::net::napi::Poll::receive) or an `RxList`, and does not turn the carrier
//! on in loopback. The frames count as packets of the device.
//!
//! C header: [`include/net/selftests.h`](srctree/include/net/selftests.h)

use super::{
    super::super::{
        inner::Inner,
        ops_lock::Locks,
        Device,
        Driver,
        Features,
        Rtnl, //
    },
    Switch,
    TestFailure,
    TestResult, //
};

use crate::{
    bindings,
    error::to_result,
    prelude::*, //
};

/// Sends frames by each transmit queue, each of which has to come back before the next one is sent.
#[inline]
fn exchange(dev: &Device, _rtnl: &mut Rtnl) -> TestResult {
    // SAFETY: The device is valid, and RTNL is held.
    let queues = unsafe { (*dev.as_raw()).real_num_tx_queues };

    // CAST: The number of queues is a `u16`.
    for queue in 0..queues as u16 {
        // SAFETY: The device has its rings and this queue, and RTNL is held.
        to_result(unsafe { bindings::net_test_offline(dev.as_raw(), queue) }).map_err(|error| {
            let errno = error.to_errno().unsigned_abs();
            TestFailure::with_code((u32::from(queue) + 1) << 16 | errno)
        })?;
    }
    Ok(())
}

/// [`exchange`] with GRO on, whatever users want.
///
/// Inlined into the driver, which selects `CONFIG_NET_SELFTESTS`: that may be a module.
#[inline]
fn exchange_by_gro(dev: &Device, rtnl: &mut Rtnl) -> TestResult {
    let before = dev.features();
    let gro = Features::from_raw(1 << bindings::NETIF_F_GRO_BIT);

    dev.set_features(before.union(gro), rtnl);
    // SAFETY: The device is valid.
    let result = if unsafe { bindings::netif_elide_gro(dev.as_raw()) } {
        // A program for XDP, which the driver knows nothing of, would get the frames.
        Err(EBUSY.into())
    } else {
        exchange(dev, rtnl)
    };
    dev.set_features(before, rtnl);
    result
}

/// Lets the queueing disciplines of a device pass on no packets: they keep those that they have,
/// and take no others.
fn stop_disciplines(dev: &Device, _rtnl: &mut Rtnl) {
    // SAFETY: The device is registered, and RTNL is held.
    unsafe { bindings::dev_deactivate(dev.as_raw(), false) };
}

/// Makes the test with a device that is down, and takes it down again.
pub(super) fn run<T: Driver>(
    inner: &Inner<T>,
    switch: Switch<T>,
    locks: &mut Locks<'static>,
) -> TestResult {
    let dev = inner.dev();

    // If the device is to go on after this, the stack believes that it is up.
    if dev.is_running() {
        stop_disciplines(dev, locks);
    }
    inner.go_up(locks)?;
    let result = match switch(inner.data(), dev, true, locks) {
        Ok(()) => {
            // The stack has no use for the link of a loopback.
            dev.carrier_off();
            exchange_by_gro(dev, locks)
        }
        Err(error) => Err(error.into()),
    };
    // Before the switch, or frames that the NIC has not sent yet would leave.
    inner.go_down(locks);
    result.and(switch(inner.data(), dev, false, locks).map_err(Into::into))
}
