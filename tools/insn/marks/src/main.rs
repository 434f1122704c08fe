// SPDX-License-Identifier: GPL-2.0

//! `insn-mark`: starts and stops the counting of the insn plugin.
//!
//! Without the plugin the marks are no-ops, so scripts need not check for it.

mod describe;

use std::path::Path;
use std::process::ExitCode;

use insn_marks::issue;

const USAGE: &str = "\
usage: insn-mark on LABEL [--module NAME]...
       insn-mark off

on opens a window of counting under LABEL, off closes it. --module adds where the kernel placed a
loaded module, so that its instructions can be told from others.";

/// A command line.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    On { label: String, modules: Vec<String> },
    Off,
}

fn parse(arguments: &[String]) -> Result<Request, String> {
    match arguments {
        [verb] if verb == "off" => Ok(Request::Off),
        [verb, label, rest @ ..] if verb == "on" && !label.starts_with('-') => {
            let modules = rest.chunks(2).map(|words| match words {
                [option, name] if option == "--module" => Ok(name.clone()),
                _ => Err(format!("'{}' is not understood", words.join(" "))),
            });
            Ok(Request::On {
                label: label.clone(),
                modules: modules.collect::<Result<_, _>>()?,
            })
        }
        _ => Err("this is neither on nor off".into()),
    }
}

fn act(request: Request) -> Result<(), String> {
    match request {
        Request::Off => issue::close(),
        Request::On { label, modules } => {
            let root = Path::new(describe::MODULES);
            issue::open(&describe::describe(root, &label, &modules)?);
        }
    }
    Ok(())
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
        Ok(request) => match act(request) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("insn-mark: {error}");
                ExitCode::FAILURE
            }
        },
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
    }

    #[test]
    fn mistakes_are_named() {
        for line in [
            "",
            "onn x",
            "on",
            "on --module x",
            "on x --module",
            "on x y",
            "off x",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
