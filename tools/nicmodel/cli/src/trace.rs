// SPDX-License-Identifier: GPL-2.0
//! The requests about traces, and their answers.

use nicmodel_device::device::Device;
use nicmodel_device::regs::Index;
use nicmodel_device::trace::Use;
use serde::{Deserialize, Serialize};

/// Most bytes of a phase's name.
const NAME: usize = 64;

/// Begins a phase of a trace, or ends the trace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// The port.
    pub port: usize,
    /// The phase that begins or goes on. Without it accesses count no longer.
    pub phase: Option<String>,
}

impl Trace {
    /// Carries the request out.
    pub fn carry_out(&self, device: &Device) -> Result<(), String> {
        let Some(name) = &self.phase else {
            device.trace.end();
            return Ok(());
        };
        if name.is_empty() || name.len() > NAME {
            return Err(format!("trace: phase: a name has 1 to {NAME} bytes"));
        }
        let begun = device.trace.begin(name);
        begun.map_err(|error| format!("trace: phase: {error}"))
    }
}

/// Tells the accesses that were traced.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accesses {
    /// The port.
    pub port: usize,
}

/// The answer to `accesses`.
#[derive(Debug, Serialize)]
pub struct AccessesAnswer {
    /// Whether no access was missed: none of the registers is memory that the guest has mapped.
    pub complete: bool,
    /// The phases in their order.
    pub phases: Vec<Phase>,
}

/// The accesses of a phase.
#[derive(Debug, Serialize)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// One entry for each register that was used, by offset.
    pub registers: Vec<Register>,
}

/// The use of a register.
#[derive(Debug, Serialize)]
pub struct Register {
    /// Its offset in BAR 0, in hexadecimal.
    pub offset: String,
    /// The name of the register, or of the array that it is in; its offset if it is unknown.
    pub name: String,
    /// Its place in the array.
    pub index: Option<u32>,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// The value that was read last, in hexadecimal.
    pub read: Option<String>,
    /// The value that was written last, in hexadecimal.
    pub written: Option<String>,
    /// The number of its first access in the trace.
    pub first: u64,
}

impl Register {
    fn of(offset: u32, used: Use) -> Self {
        let (name, index) = match Index::get().lookup(offset) {
            Some((entry, index)) => (entry.name.to_owned(), (entry.count > 1).then_some(index)),
            None => (format!("{offset:#07x}"), None),
        };
        let hexadecimal = |value| format!("{value:#010x}");
        Self {
            offset: format!("{offset:#07x}"),
            name,
            index,
            reads: used.reads,
            writes: used.writes,
            read: used.read.map(hexadecimal),
            written: used.written.map(hexadecimal),
            first: used.first,
        }
    }
}

impl AccessesAnswer {
    /// The trace of a device.
    pub fn of(device: &Device) -> Self {
        let phases = device.trace.phases().into_iter();
        Self {
            complete: !device.ring_pages_mapped(),
            phases: phases
                .map(|phase| Phase {
                    name: phase.name,
                    registers: phase
                        .registers
                        .into_iter()
                        .map(|(offset, used)| Register::of(offset, used))
                        .collect(),
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicmodel_device::regs::offset;

    fn used(written: Option<u32>) -> Use {
        Use {
            writes: u64::from(written.is_some()),
            written,
            ..Use::default()
        }
    }

    #[test]
    fn registers_have_their_names_and_places() {
        let one = Register::of(offset::STATUS, used(None));
        assert_eq!((one.name.as_str(), one.index), ("STATUS", None));
        assert_eq!(one.written, None);
        let one = Register::of(offset::MTA + 8, used(Some(0x80)));
        assert_eq!((one.name.as_str(), one.index), ("MTA", Some(2)));
        assert_eq!(one.written.as_deref(), Some("0x00000080"));
        let one = Register::of(0x1fffc, used(None));
        assert_eq!((one.name.as_str(), one.index), ("0x1fffc", None));
    }
}
