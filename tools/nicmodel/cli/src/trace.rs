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
    let hexadecimal = |value| format!("{value:#010x}");
    json!({
        "offset": at,
        "name": name,
        "index": index,
        "reads": used.reads,
        "writes": used.writes,
        "read": used.read.map(hexadecimal),
        "written": used.written.map(hexadecimal),
        "first": used.first,
    })
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
        for (at, written, name, index, told) in [
            (offset::STATUS, None, "STATUS", None, None),
            (
                offset::MTA + 8,
                Some(0x80),
                "MTA",
                Some(2),
                Some("0x00000080"),
            ),
            (0x1fffc, None, "0x1fffc", None, None),
        ] {
            let one = register(at, used(written));
            assert_eq!(
                (&one["name"], &one["index"], &one["written"]),
                (&json!(name), &json!(index), &json!(told))
            );
        }
    }
}
