// SPDX-License-Identifier: GPL-2.0

//! The text that describes a window: its label and where modules lie.

use std::fmt::Write as _;
use std::path::Path;

/// Where the kernel shows the sections of loaded modules.
pub const MODULES: &str = "/sys/module";

/// The window's text: a JSON object with `label` and, per module, the
/// addresses of its sections as the kernel placed them.
pub fn describe(root: &Path, label: &str, modules: &[String]) -> Result<String, String> {
    let mut text = String::from("{\"label\":");
    quote(&mut text, label);
    text.push_str(",\"modules\":{");
    for (number, module) in modules.iter().enumerate() {
        if number != 0 {
            text.push(',');
        }
        quote(&mut text, module);
        text.push_str(":{");
        for (number, (section, address)) in sections(root, module)?.iter().enumerate() {
            if number != 0 {
                text.push(',');
            }
            quote(&mut text, section);
            text.push(':');
            quote(&mut text, address);
        }
        text.push('}');
    }
    text.push_str("}}");
    Ok(text)
}

fn sections(root: &Path, module: &str) -> Result<Vec<(String, String)>, String> {
    // The kernel spells names with underscores whatever the file is called.
    let folder = root.join(module.replace('-', "_")).join("sections");
    let entries = std::fs::read_dir(&folder).map_err(|error| {
        format!(
            "module {module} shows no sections ({}: {error}); is it loaded?",
            folder.display()
        )
    })?;
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        // Only code is attributed; data sections would lengthen the text.
        if !name.contains(".text") {
            continue;
        }
        let address = std::fs::read_to_string(entry.path())
            .map_err(|error| format!("cannot read {}: {error}", entry.path().display()))?;
        found.push((name, address.trim().to_owned()));
    }
    found.sort();
    Ok(found)
}

fn quote(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' | '\\' => text.extend(['\\', character]),
            control if control < ' ' => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(control));
            }
            plain => text.push(plain),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_sections_are_listed() {
        let root = std::env::temp_dir().join(format!("insn-mark-{}", std::process::id()));
        let folder = root.join("my_driver/sections");
        std::fs::create_dir_all(&folder).unwrap();
        for (name, address) in [
            (".text", "0x10\n"),
            (".init.text", "0x30\n"),
            (".data", "0x50\n"),
        ] {
            std::fs::write(folder.join(name), address).unwrap();
        }
        let text = describe(&root, "a \"b\"", &["my-driver".to_owned()]);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(
            text.unwrap(),
            "{\"label\":\"a \\\"b\\\"\",\"modules\":{\"my-driver\":\
             {\".init.text\":\"0x30\",\".text\":\"0x10\"}}}"
        );
    }

    #[test]
    fn a_module_that_is_not_loaded_is_named() {
        let error = describe(Path::new("/nonexistent"), "x", &["nic".to_owned()]).unwrap_err();
        assert!(error.contains("module nic"), "{error}");
        assert!(error.contains("loaded?"), "{error}");
    }
}
