// SPDX-License-Identifier: GPL-2.0

//! Resources that drivers and firmware share, and the semaphores around them (datasheet 10.5.4).

use kernel::{
    prelude::*,
    time::{
        Delta,
        Instant,
        Monotonic, //
    }, //
};

use crate::{
    mmio::{
        self,
        Bar0,
        Deadline, //
    },
    regs::medium::*, //
};

/// Pauses between two attempts to take a semaphore, and a resource.
const PAUSE: Delta = Delta::from_micros(50);
const RESOURCE_PAUSE: Delta = Delta::from_millis(5);

/// The longest that an owner of a semaphore, who needs microseconds, and of a resource may take.
const TURN: Delta = Delta::from_millis(100);
const RESOURCE_TURN: Delta = Delta::from_secs(1);

/// A shared resource, by its bit in [`SW_FW_SYNC`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// The management bus and the module of port 0.
    Bus0 = 1 << 1,
    /// Those of port 1.
    Bus1 = 1 << 2,
    /// Registers of the MAC, the link among them.
    Mac = 1 << 3,
}

impl Resource {
    /// The bus of a port.
    pub(crate) fn bus(port: u32) -> Self {
        if port == 0 {
            Self::Bus0
        } else {
            Self::Bus1
        }
    }
}

/// Ownership of a resource, until it is dropped.
pub(crate) struct Owned<'a, 'bound> {
    bar: &'a Bar0<'bound>,
    resource: Resource,
}

/// The semaphores that protect [`SW_FW_SYNC`] itself, until this is dropped.
struct Register<'a, 'bound>(&'a Bar0<'bound>);

impl<'a, 'bound> Register<'a, 'bound> {
    /// Takes the semaphore among drivers, then the one between software and firmware.
    fn take(bar: &'a Bar0<'bound>, deadline: Deadline) -> Result<Self> {
        let poll = |take: &dyn Fn() -> Result<bool>| {
            let turn = Deadline::after(TURN);

            deadline
                .min(turn)
                .poll(take, |taken| *taken, PAUSE)
                .map_err(|error| if error == ETIMEDOUT { EBUSY } else { error })
        };
        let begun = Instant::<Monotonic>::now();
        // Reading it as 0 takes it.
        let among_drivers = || Ok(!bar.try_read(SWSM)?.smbi());

        let taken = poll(&among_drivers);
        if taken == Err(EBUSY) && begun.elapsed() >= TURN {
            // Its owner has died.
            bar.write_reg(SWSM::zeroed());
            if !among_drivers()? {
                return Err(EBUSY);
            }
        } else {
            taken?;
        }
        // From here on, dropping it gives back whatever has been taken.
        let this = Self(bar);

        poll(&|| {
            bar.update(SWSM, |r| r.with_swesmbi(true))?;
            Ok(bar.try_read(SWSM)?.swesmbi())
        })?;
        Ok(this)
    }

    /// Takes a resource if it is free. Returns whether it has been taken.
    fn try_resource(&self, resource: Resource) -> Result<bool> {
        if !is_free(self.0.try_read(SW_FW_SYNC)?, resource) {
            return Ok(false);
        }
        self.set(resource, true)?;
        let owners = self.0.try_read(SW_FW_SYNC)?;
        Ok(owners.software().get() & resource as u32 != 0)
    }

    /// Takes a resource away from all owners.
    fn free(&self, resource: Resource) -> Result {
        self.set(resource, false)?;
        self.0.update(SW_FW_SYNC, |r| {
            let firmware = r.firmware().get() & !(resource as u32);
            r.try_with_firmware(firmware).unwrap_or(r)
        })
    }

    fn set(&self, resource: Resource, owned: bool) -> Result {
        self.0.update(SW_FW_SYNC, |r| {
            let bit = resource as u32;
            let software = r.software().get();
            let software = if owned {
                software | bit
            } else {
                software & !bit
            };
            r.try_with_software(software).unwrap_or(r)
        })
    }
}

impl Drop for Register<'_, '_> {
    fn drop(&mut self) {
        // If this fails, others wait, and take them.
        let _ = self
            .0
            .update(SWSM, |r| r.with_swesmbi(false).with_smbi(false));
        mmio::flush(self.0);
    }
}

fn is_free(owners: SW_FW_SYNC, resource: Resource) -> bool {
    (owners.software().get() | owners.firmware().get()) & resource as u32 == 0
}

/// Takes a resource; sleeps while another driver or the firmware has it or the semaphores, a second
/// at most.
///
/// After that, [`EBUSY`], and the resource is free if the semaphores are.
pub(crate) fn take<'a, 'bound>(
    bar: &'a Bar0<'bound>,
    resource: Resource,
) -> Result<Owned<'a, 'bound>> {
    let deadline = Deadline::after(RESOURCE_TURN);
    let take = || Register::take(bar, deadline)?.try_resource(resource);

    match deadline.poll(take, |taken| *taken, RESOURCE_PAUSE) {
        Ok(_) => Ok(Owned { bar, resource }),
        Err(error) if error == ETIMEDOUT => {
            // A driver or firmware that has died does not give it back. The caller may try again.
            let _ = Register::take(bar, deadline).and_then(|register| register.free(resource));
            Err(EBUSY)
        }
        Err(error) => Err(error),
    }
}

impl Drop for Owned<'_, '_> {
    fn drop(&mut self) {
        // If this fails, others wait for a second, and take it for granted then.
        let _ = Register::take(self.bar, Deadline::after(TURN))
            .and_then(|register| register.set(self.resource, false));
    }
}

#[kunit_tests(ixgbe_rust_semaphore)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_free_if_neither_side_has_it() {
        let owners = |raw: u32| SW_FW_SYNC::from(raw);

        assert!(is_free(owners(0), Resource::Mac));
        assert!(is_free(owners(0x2), Resource::Mac));
        assert!(!is_free(owners(0x8), Resource::Mac));
        assert!(!is_free(owners(0x100), Resource::Mac));
        assert!(!is_free(owners(0x80), Resource::bus(1)));
        assert!(is_free(owners(0x80), Resource::bus(0)));
    }
}
