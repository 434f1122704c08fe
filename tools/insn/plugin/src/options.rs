// SPDX-License-Identifier: GPL-2.0

//! The options behind `-plugin libinsn_plugin.so,`.

use std::path::PathBuf;

/// All options.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Where the report goes.
    pub out: PathBuf,
    /// The address of a function whose calls are counted by their second argument.
    pub calls: Option<u64>,
}

impl Options {
    /// Reads `out=FILE` and `calls=HEX`.
    pub fn parse<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<Options, String> {
        let mut options = Options::default();
        for argument in arguments {
            match argument.split_once('=') {
                Some(("out", path)) => options.out = path.into(),
                Some(("calls", address)) => {
                    let parsed = u64::from_str_radix(address, 16);
                    options.calls = Some(parsed.map_err(|error| format!("'{argument}': {error}"))?);
                }
                _ => return Err(format!("'{argument}' is neither out=FILE nor calls=HEX")),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read() {
        let options = Options::parse(["out=/x/y.json", "calls=ffffffff81000000"]);
        assert_eq!(
            options,
            Ok(Options {
                out: "/x/y.json".into(),
                calls: Some(0xffff_ffff_8100_0000),
            })
        );
    }

    #[test]
    fn mistakes_are_named() {
        for argument in ["calls=zz", "colour=red"] {
            let error = Options::parse([argument]).expect_err(argument);
            assert!(error.contains(argument), "{argument}: {error}");
        }
    }
}
