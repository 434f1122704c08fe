// SPDX-License-Identifier: GPL-2.0

//! The report: one JSON document with all finished windows.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use crate::options::Tap;
use crate::windows::Window;

/// Version of the report's layout, raised with every change that a reader
/// must know of.
const LAYOUT: u32 = 1;

/// Everything that goes into the report.
pub struct Report<'a> {
    /// Finished windows, oldest first.
    pub windows: &'a [Window],
    /// The functions whose calls are recorded, in the order of `Window::calls`.
    pub taps: &'a [Tap],
    /// Virtual CPUs.
    pub cpus: u32,
    /// Closing marks that closed nothing.
    pub stray: u64,
}

impl Report<'_> {
    /// The document as text.
    pub fn to_json(&self) -> String {
        let mut out = format!(
            "{{\"layout\":{LAYOUT},\"cpus\":{},\"stray_marks\":{},\"windows\":[",
            self.cpus, self.stray
        );
        for (number, window) in self.windows.iter().enumerate() {
            separate(&mut out, number);
            self.window(&mut out, window);
        }
        out.push_str("]}\n");
        out
    }

    fn window(&self, out: &mut String, window: &Window) {
        out.push_str("\n{\"text\":");
        string(out, &window.text);
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            ",\"complete\":{},\"nanoseconds\":{},\"instructions\":{},\"rows\":[",
            window.complete,
            window.nanoseconds,
            window.instructions()
        );
        for (number, row) in window.rows.iter().enumerate() {
            separate(out, number);
            let _ = write!(out, "[{},{},{}]", row.address, row.insns, row.count);
        }
        out.push_str("],\"calls\":{");
        for (number, (tap, calls)) in self.taps.iter().zip(&window.calls).enumerate() {
            separate(out, number);
            string(out, &tap.name);
            out.push_str(":[");
            for (number, (call, count)) in calls.iter().enumerate() {
                separate(out, number);
                let _ = write!(
                    out,
                    "[{},{},{},{count}]",
                    call.caller, call.first, call.second
                );
            }
            out.push(']');
        }
        out.push('}');
        out.push('}');
    }

    /// Writes the document so that a reader sees the old or the new one, whole.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(".part");
        std::fs::write(&partial, self.to_json())?;
        std::fs::rename(&partial, path)
    }
}

fn separate(out: &mut String, number: usize) {
    if number != 0 {
        out.push(',');
    }
}

fn string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            plain => out.push(plain),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Call;
    use crate::windows::Row;
    use std::collections::BTreeMap;

    #[test]
    fn the_document_holds_rows_and_calls() {
        let window = Window {
            text: "a\"b\n".into(),
            complete: true,
            nanoseconds: 5,
            rows: vec![Row {
                address: 16,
                insns: 2,
                count: 3,
            }],
            calls: vec![BTreeMap::from([(
                Call {
                    caller: 1,
                    first: 2,
                    second: 3,
                },
                4,
            )])],
        };
        let report = Report {
            windows: &[window],
            taps: &[Tap {
                name: "f".into(),
                address: 1,
            }],
            cpus: 1,
            stray: 0,
        };
        assert_eq!(
            report.to_json(),
            "{\"layout\":1,\"cpus\":1,\"stray_marks\":0,\"windows\":[\n{\"text\":\"a\\\"b\\u000a\",\
             \"complete\":true,\"nanoseconds\":5,\"instructions\":6,\"rows\":[[16,2,3]],\
             \"calls\":{\"f\":[[1,2,3,4]]}}]}\n"
        );
    }

    #[test]
    fn a_path_that_cannot_be_written_is_an_error() {
        let report = Report {
            windows: &[],
            taps: &[],
            cpus: 0,
            stray: 0,
        };
        assert!(report.write(Path::new("/nonexistent/report.json")).is_err());
    }
}
