// SPDX-License-Identifier: GPL-2.0
//! The requests about traces, and their answers.

use nicmodel_device::device::Device;
use nicmodel_device::regs::Index;
use nicmodel_device::trace::Use;
use serde_json::{Value, json};

/// Most bytes of a phase's name.
const NAME: usize = 64;

/// Begins a phase of a trace, or ends the trace.
pub fn begin(device: &Device, phase: Option<&str>) -> Result<(), String> {
    let Some(name) = phase else {
        device.trace.end();
        return Ok(());
    };
    if name.is_empty() || name.len() > NAME {
        return Err(format!("trace: phase: a name has 1 to {NAME} bytes"));
    }
    let begun = device.trace.begin(name);
    begun.map_err(|error| format!("trace: phase: {error}"))
}

/// The accesses that were traced, by phase, and whether none was missed: no register is memory that
/// the guest has mapped.
pub fn accesses(device: &Device) -> Value {
    let phases = device.trace.phases().into_iter().map(|phase| {
        let used = phase.registers.into_iter();
        let registers: Vec<_> = used.map(|(offset, used)| register(offset, used)).collect();
        json!({ "name": phase.name, "registers": registers })
    });
    json!({ "complete": !device.ring_pages_mapped(), "phases": phases.collect::<Vec<_>>() })
}

/// The use of a register. One that is in an array has its place there, and the name of that.
fn register(offset: u32, used: Use) -> Value {
    let at = format!("{offset:#07x}");
    let (name, index) = match Index::get().lookup(offset) {
        Some((entry, index)) => (entry.name, (entry.count > 1).then_some(index)),
        None => (at.as_str(), None),
    };
    json!({
        "offset": at,
        "name": name,
        "index": index,
        "reads": used.reads,
        "writes": used.writes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicmodel_device::regs::offset;

    #[test]
    fn registers_have_their_names_and_places() {
        let used = Use {
            reads: 0,
            writes: 1,
        };
        for (at, name, index) in [
            (offset::STATUS, "STATUS", None),
            (offset::MTA + 8, "MTA", Some(2)),
            (0x1fffc, "0x1fffc", None),
        ] {
            let one = register(at, used);
            assert_eq!(
                (&one["name"], &one["index"], &one["writes"]),
                (&json!(name), &json!(index), &json!(1))
            );
        }
    }
}
