// SPDX-License-Identifier: GPL-2.0

//! The options behind `-plugin libinsn_plugin.so,`.

use std::ops::Range;
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
    /// Whether to follow calls.
    pub stacks: bool,
    /// Where interrupts and the like enter the kernel.
    pub entry: Range<u64>,
}

impl Options {
    /// Reads `out=FILE`, any number of `calls=NAME@HEX`, `stacks=on` and `entry=HEX-HEX`.
    pub fn parse<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<Options, String> {
        let mut out = None;
        let mut taps = Vec::new();
        let mut stacks = false;
        let mut entry = 0..0;
        for argument in arguments {
            match argument.split_once('=') {
                Some(("out", path)) if !path.is_empty() => out = Some(PathBuf::from(path)),
                Some(("calls", tap)) => taps.push(Self::tap(tap)?),
                Some(("entry", range)) => entry = Self::range(range)?,
                Some(("stacks", "on")) => stacks = true,
                Some(("stacks", "off")) => stacks = false,
                _ => {
                    return Err(format!(
                        "option '{argument}' is not known; there are out=FILE, calls=NAME@HEX, \
                         stacks=on and entry=HEX-HEX"
                    ));
                }
            }
        }
        let out = out.ok_or("option out=FILE is missing: it says where the counts go")?;
        Ok(Options {
            out,
            taps,
            stacks,
            entry,
        })
    }

    fn range(text: &str) -> Result<Range<u64>, String> {
        let parsed = text.split_once('-').and_then(|(start, end)| {
            let start = u64::from_str_radix(start, 16).ok()?;
            let end = u64::from_str_radix(end, 16).ok()?;
            (start < end).then_some(start..end)
        });
        parsed.ok_or_else(|| {
            format!(
                "'entry={text}' is not HEX-HEX; take __entry_text_start and __entry_text_end \
                 from System.map"
            )
        })
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
                stacks: false,
                entry: 0..0,
            })
        );
    }

    #[test]
    fn stacks_are_followed_on_demand() {
        assert!(Options::parse(["out=a", "stacks=on"]).is_ok_and(|options| options.stacks));
        assert!(Options::parse(["out=a", "stacks=maybe"]).is_err());
        let options = Options::parse(["out=a", "stacks=on", "entry=10-ffffffff81000000"]);
        assert!(options.is_ok_and(|options| options.entry == (0x10..0xffff_ffff_8100_0000)));
    }

    #[test]
    fn mistakes_are_named() {
        for (arguments, part) in [
            (vec![], "out=FILE is missing"),
            (vec!["out="], "'out='"),
            (vec!["out=a", "calls=f"], "'calls=f'"),
            (vec!["out=a", "calls=f@zz"], "'calls=f@zz'"),
            (vec!["out=a", "calls=@1"], "'calls=@1'"),
            (vec!["out=a", "entry=20-10"], "'entry=20-10'"),
            (vec!["out=a", "entry=20"], "'entry=20'"),
            (vec!["out=a", "colour=red"], "'colour=red'"),
        ] {
            let error = Options::parse(arguments.clone()).unwrap_err();
            assert!(error.contains(part), "{arguments:?}: {error}");
        }
    }
}
