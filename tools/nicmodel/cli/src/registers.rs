// SPDX-License-Identifier: GPL-2.0
//! The register map as a table for the documentation.

use std::fmt::Write;

use nicmodel_device::config::DEVICE_IDS;
use nicmodel_device::regs::{Access, map};

/// Parses a device id that the model can be.
pub fn device_id(text: &str) -> Result<u16, String> {
    let digits = text.trim_start_matches("0x");
    let id = u16::from_str_radix(digits, 16).map_err(|_| format!("{text:?} is not hexadecimal"))?;
    if DEVICE_IDS.iter().any(|(known, _)| *known == id) {
        return Ok(id);
    }
    let known: Vec<String> = DEVICE_IDS
        .iter()
        .map(|(id, what)| format!("{id:04x} ({what})"))
        .collect();
    Err(format!(
        "the model cannot be {id:04x}, only {}",
        known.join(", ")
    ))
}

fn behaviour(access: Access) -> &'static str {
    match access {
        Access::Memory => "reads back, no behaviour",
        Access::Control => "reads back, acted upon",
        Access::Doorbell => "reads back, starts the engine",
        Access::ReadOnly => "read only",
        Access::Counter => "counter, cleared by a read",
        Access::WideLow(_) => "wide counter, low half: a read takes it",
        Access::WideHigh(_) => "wide counter, high half",
        Access::Effect => "behaviour of its own",
    }
}

/// The table in reStructuredText-neutral Markdown.
pub fn table() -> String {
    let mut entries: Vec<_> = map::REGISTERS.iter().collect();
    entries.sort_by_key(|entry| entry.offset);
    let mut text = String::from("| Offset | Register | Count | Stride | Reset | Access |\n");
    text.push_str("| --- | --- | --- | --- | --- | --- |\n");
    for entry in entries {
        let stride = if entry.count > 1 {
            format!("{:#x}", entry.stride)
        } else {
            String::new()
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| {:#07x} | {} | {} | {} | {:#x} | {} |",
            entry.offset,
            entry.name,
            entry.count,
            stride,
            entry.reset,
            behaviour(entry.access)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_ids() {
        assert_eq!(device_id("10fb"), Ok(0x10fb));
        assert_eq!(device_id("0x10fc"), Ok(0x10fc));
        assert!(
            device_id("1572")
                .expect_err("another card")
                .contains("10fb")
        );
        assert!(device_id("zz").is_err());
    }

    #[test]
    fn every_register_is_in_the_table() {
        let text = table();
        assert_eq!(text.lines().count(), map::REGISTERS.len() + 2);
        assert!(text.contains("| EICR |"));
    }
}
