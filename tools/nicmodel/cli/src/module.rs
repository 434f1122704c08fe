// SPDX-License-Identifier: GPL-2.0
//! The module in the cage of a port, and the far end of its fibre, as requests.

use nicmodel_device::link::Speed;
use nicmodel_device::module::{self, Kind, PAGE};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::protocol::hex;

/// The speed of a far end.
pub fn speed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Speed>, D::Error> {
    match u32::deserialize(deserializer)? {
        1000 => Ok(Some(Speed::One)),
        10_000 => Ok(Some(Speed::Ten)),
        speed => Err(D::Error::custom(format!(
            "{speed} is neither 1000 nor 10000"
        ))),
    }
}

/// Changes the module in the cage of a port.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// The port.
    pub port: usize,
    /// The kind of the module.
    pub kind: Kind,
    /// Other bytes at the start of the identification page.
    #[serde(default, deserialize_with = "page")]
    pub id: Vec<u8>,
}

impl Module {
    /// The module that goes into the cage.
    pub fn make(&self) -> Option<module::Module> {
        if self.kind == Kind::Absent {
            return None;
        }
        let mut made = module::Module::new(self.kind);
        made.id[..self.id.len()].copy_from_slice(&self.id);
        Some(made)
    }
}

/// Bytes of a page, of which there are not too many.
fn page<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let bytes = hex(deserializer)?;
    if bytes.len() > PAGE {
        let text = format!("{} bytes: a page has {PAGE}", bytes.len());
        return Err(D::Error::custom(text));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use crate::protocol::{Request, parse};

    #[test]
    fn a_module_takes_other_bytes() {
        let line = r#"{"cmd":"module","port":0,"kind":"sr","id":"0d00"}"#;
        let Ok(Request::Module(request)) = parse(line.as_bytes()) else {
            panic!("a module");
        };
        let made = request.make().expect("there is one");
        assert_eq!(made.id[..3], [0x0d, 0, 7]);
        let line = format!(
            r#"{{"cmd":"module","port":0,"kind":"sr","id":"{}"}}"#,
            "00".repeat(257)
        );
        let text = parse(line.as_bytes()).expect_err("it is too long");
        assert!(text.contains("257 bytes"), "{text}");
    }
}
