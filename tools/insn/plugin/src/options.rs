// SPDX-License-Identifier: GPL-2.0

//! The options behind `-plugin libinsn_plugin.so,`.

use std::path::PathBuf;

/// A function whose callers and first two arguments are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tap {
    /// Name in the report.
    pub name: String,
    /// Virtual address of its first instruction.
    pub address: u64,
}

/// All options.
#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    /// Where the report goes.
    pub out: PathBuf,
    /// Functions to record.
    pub taps: Vec<Tap>,
}

impl Options {
    /// Reads `out=FILE` and any number of `calls=NAME@HEX`.
    pub fn parse<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<Options, String> {
        let mut out = None;
        let mut taps = Vec::new();
        for argument in arguments {
            match argument.split_once('=') {
                Some(("out", path)) if !path.is_empty() => out = Some(PathBuf::from(path)),
                Some(("calls", tap)) => taps.push(Self::tap(tap)?),
                _ => {
                    return Err(format!(
                        "option '{argument}' is not known; there are out=FILE and calls=NAME@HEX"
                    ));
                }
            }
        }
        let out = out.ok_or("option out=FILE is missing: it says where the counts go")?;
        Ok(Options { out, taps })
    }

    fn tap(text: &str) -> Result<Tap, String> {
        let parsed = text.split_once('@').and_then(|(name, address)| {
            let digits = address.trim_start_matches("0x");
            let address = u64::from_str_radix(digits, 16).ok()?;
            (!name.is_empty()).then(|| Tap {
                name: name.to_owned(),
                address,
            })
        });
        parsed.ok_or_else(|| {
            format!("'calls={text}' is not NAME@HEX; take the address from System.map")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let options = Options::parse(["out=/x/y.json", "calls=f@ffffffff81000000", "calls=g@0x10"]);
        assert_eq!(
            options,
            Ok(Options {
                out: "/x/y.json".into(),
                taps: vec![
                    Tap {
                        name: "f".into(),
                        address: 0xffff_ffff_8100_0000
                    },
                    Tap {
                        name: "g".into(),
                        address: 0x10
                    },
                ],
            })
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (arguments, part) in [
            (vec![], "out=FILE is missing"),
            (vec!["out="], "'out='"),
            (vec!["out=a", "calls=f"], "'calls=f'"),
            (vec!["out=a", "calls=f@zz"], "'calls=f@zz'"),
            (vec!["out=a", "calls=@1"], "'calls=@1'"),
            (vec!["out=a", "colour=red"], "'colour=red'"),
        ] {
            let error = Options::parse(arguments.clone()).unwrap_err();
            assert!(error.contains(part), "{arguments:?}: {error}");
        }
    }
}
