// SPDX-License-Identifier: GPL-2.0

//! `insn-mark`: starts and stops the counting of the insn plugin.
//!
//! Without the plugin the marks are no-ops, so scripts need not check for it.

mod describe;

use std::path::Path;
use std::process::Command;
use std::process::ExitCode;

use insn_marks::issue;

const USAGE: &str = "\
usage: insn-mark on LABEL [--module NAME]...
       insn-mark off
       insn-mark run LABEL [--module NAME]... -- COMMAND [ARGUMENT]...

on opens a window of counting under LABEL, off closes it, run does both around
COMMAND and ends with its exit code. --module adds where the kernel placed a
loaded module, so that its instructions can be told from others.";

/// A command line.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    On {
        label: String,
        modules: Vec<String>,
    },
    Off,
    Run {
        label: String,
        modules: Vec<String>,
        command: Vec<String>,
    },
    Help,
}

fn parse(arguments: &[String]) -> Result<Request, String> {
    let mut rest = arguments.iter().cloned();
    match rest.next().as_deref() {
        Some("-h" | "--help") => Ok(Request::Help),
        Some("off") if arguments.len() == 1 => Ok(Request::Off),
        Some("off") => Err("off takes no arguments".into()),
        Some(verb @ ("on" | "run")) => {
            let label = rest.next().filter(|label| !label.starts_with('-'));
            let label = label.ok_or(format!("{verb} needs a LABEL"))?;
            let mut modules = Vec::new();
            loop {
                match rest.next().as_deref() {
                    Some("--module") => {
                        modules.push(rest.next().ok_or("--module needs the NAME of a module")?)
                    }
                    Some("--") if verb == "run" => break,
                    None if verb == "on" => return Ok(Request::On { label, modules }),
                    None => return Err("run needs -- and a COMMAND".into()),
                    Some(other) => return Err(format!("'{other}' is not understood")),
                }
            }
            let command: Vec<_> = rest.collect();
            if command.is_empty() {
                return Err("run needs a COMMAND after --".into());
            }
            Ok(Request::Run {
                label,
                modules,
                command,
            })
        }
        Some(other) => Err(format!("'{other}' is neither on, off nor run")),
        None => Err("nothing to do".into()),
    }
}

fn act(request: Request) -> Result<ExitCode, String> {
    match request {
        Request::Help => println!("{USAGE}"),
        Request::Off => issue::close(),
        Request::On { label, modules } => {
            issue::open(&describe::describe(
                Path::new(describe::MODULES),
                &label,
                &modules,
            )?);
        }
        Request::Run {
            label,
            modules,
            command,
        } => {
            let text = describe::describe(Path::new(describe::MODULES), &label, &modules)?;
            let mut child = Command::new(&command[0]);
            child.args(&command[1..]);
            issue::open(&text);
            let status = child.status();
            issue::close();
            let status = status.map_err(|error| format!("cannot run {}: {error}", command[0]))?;
            // A command that a signal ended has no code; the shell's habit is 128 + signal.
            let code = status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .unwrap_or(128);
            return Ok(ExitCode::from(code));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into())
        .collect();
    match parse(&arguments) {
        Err(error) => {
            eprintln!("insn-mark: {error}\n{USAGE}");
            ExitCode::from(2)
        }
        Ok(request) => act(request).unwrap_or_else(|error| {
            eprintln!("insn-mark: {error}");
            ExitCode::FAILURE
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Request, String> {
        parse(
            &line
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn requests_are_understood() {
        assert_eq!(parsed("off"), Ok(Request::Off));
        assert_eq!(
            parsed("on rust --module a --module b"),
            Ok(Request::On {
                label: "rust".into(),
                modules: vec!["a".into(), "b".into()]
            })
        );
        assert_eq!(
            parsed("run c -- sleep 1"),
            Ok(Request::Run {
                label: "c".into(),
                modules: vec![],
                command: vec!["sleep".into(), "1".into()],
            })
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (line, part) in [
            ("", "nothing to do"),
            ("onn x", "'onn'"),
            ("on", "LABEL"),
            ("on --module x", "LABEL"),
            ("on x --module", "NAME"),
            ("on x y", "'y'"),
            ("on x -- y", "'--'"),
            ("off x", "no arguments"),
            ("run x", "COMMAND"),
            ("run x --", "COMMAND"),
        ] {
            let error = parsed(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
