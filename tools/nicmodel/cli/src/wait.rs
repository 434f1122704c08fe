// SPDX-License-Identifier: GPL-2.0
//! The request to wait for the driver.

use std::thread;
use std::time::{Duration, Instant};

use nicmodel_device::device::Device;
use nicmodel_device::regs;
use nicmodel_device::watch::Access;
use serde::Deserialize;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(1);
/// After this the guest has died, or does not do it.
const PATIENCE: Duration = Duration::from_secs(120);

/// The condition of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// Reads of a register.
    Reads,
    /// Writes of a register.
    Writes,
    /// The link is up, and the driver knows.
    Link,
}

/// Waits until the driver of a port has done something.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// The port.
    pub port: usize,
    /// The thing that the driver has to do.
    pub until: Until,
    /// The register that it has to use.
    pub register: Option<String>,
    /// How often.
    #[serde(default = "once")]
    pub count: u64,
}

fn once() -> u64 {
    1
}

impl Wait {
    /// Returns when it has happened.
    pub fn carry_out(&self, device: &Device) -> Result<(), String> {
        match self.until {
            Until::Reads => self.uses(device, Access::Read),
            Until::Writes => self.uses(device, Access::Write),
            Until::Link => until(|| device.is_link_settled())
                .map_err(|error| format!("wait: until: the link did not come up {error}")),
        }
    }

    fn uses(&self, device: &Device, access: Access) -> Result<(), String> {
        let Some(name) = &self.register else {
            return Err("wait: register: missing; reads and writes are those of one".to_owned());
        };
        let register = regs::find(name).ok_or_else(|| {
            format!("wait: register: {name:?} is none; names are those of the data sheet")
        })?;
        let watching = device.watches.begin(register, access);
        until(|| watching.seen() >= self.count).map_err(|error| {
            let seen = watching.seen();
            format!("wait: count: the driver has used {name} {seen} times {error}")
        })
    }
}

/// Waits for a condition. The error tells how long.
pub fn until(condition: impl Fn() -> bool) -> Result<(), String> {
    let since = Instant::now();
    while !condition() {
        if since.elapsed() > PATIENCE {
            return Err(format!("within {} s", PATIENCE.as_secs()));
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use nicmodel_device::clock::RealClock;
    use nicmodel_device::device::Identity;
    use nicmodel_device::regs::file::RegisterFile;
    use nicmodel_device::regs::offset;

    use super::*;

    #[test]
    fn the_answer_comes_after_the_accesses() {
        let identity = Identity {
            device_id: 0x10fb,
            mac: [2, 0, 0, 0, 0, 1],
            mapped: false,
        };
        let registers = RegisterFile::private().expect("memory");
        let device = Device::new(identity, registers, Arc::new(RealClock::new()));
        let wait = Wait {
            port: 0,
            until: Until::Reads,
            register: Some("LINKS".to_owned()),
            count: 3,
        };
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                wait.carry_out(&device).expect("it is read");
                over.store(true, Ordering::Release);
            });
            // The wait may not have begun at the first ones.
            let mut reads = 0;
            while !over.load(Ordering::Acquire) {
                device.register_read(offset::LINKS);
                reads += 1;
                thread::sleep(PAUSE);
            }
            assert!(reads >= 3, "{reads}");
        });
    }
}
