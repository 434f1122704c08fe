// SPDX-License-Identifier: GPL-2.0
//! The module in the cage of a port, and the far end of its fibre, as requests.

use nicmodel_device::link::Speed;
use nicmodel_device::module;
use serde::{Deserialize, Deserializer};

use crate::protocol::hex;

/// The speed of a far end.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "u32")]
pub struct LinkSpeed(pub Speed);

impl TryFrom<u32> for LinkSpeed {
    type Error = String;

    fn try_from(speed: u32) -> Result<Self, String> {
        match speed {
            1000 => Ok(Self(Speed::One)),
            10_000 => Ok(Self(Speed::Ten)),
            _ => Err(format!("{speed} is neither 1000 nor 10000")),
        }
    }
}

/// Changes the module in the cage of a port.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// The port.
    pub port: usize,
    /// The kind of the module.
    pub kind: ModuleKind,
    /// Other bytes at the start of the identification page.
    #[serde(default, deserialize_with = "page")]
    pub id: Vec<u8>,
    /// Other bytes at the start of the diagnostics page.
    #[serde(default, deserialize_with = "page")]
    pub diagnostics: Vec<u8>,
}

/// Kind of module, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // as [`module::Kind`] has them
pub enum ModuleKind {
    Absent,
    Sr,
    Lr,
    Dual,
    Passive,
    Active,
    Sx,
    Lx,
    T,
    Bx,
    TenBx,
    Foreign,
    Qsfp,
    Garbage,
    Silent,
}

impl Module {
    /// The module that goes into the cage.
    pub fn make(&self) -> Option<module::Module> {
        let kind = match self.kind {
            ModuleKind::Absent => return None,
            ModuleKind::Sr => module::Kind::Sr,
            ModuleKind::Lr => module::Kind::Lr,
            ModuleKind::Dual => module::Kind::Dual,
            ModuleKind::Passive => module::Kind::Passive,
            ModuleKind::Active => module::Kind::Active,
            ModuleKind::Sx => module::Kind::Sx,
            ModuleKind::Lx => module::Kind::Lx,
            ModuleKind::T => module::Kind::T,
            ModuleKind::Bx => module::Kind::Bx,
            ModuleKind::TenBx => module::Kind::TenBx,
            ModuleKind::Foreign => module::Kind::Foreign,
            ModuleKind::Qsfp => module::Kind::Qsfp,
            ModuleKind::Garbage => module::Kind::Garbage,
            ModuleKind::Silent => module::Kind::Silent,
        };
        let mut made = module::Module::new(kind);
        for (page, bytes) in [
            (&mut made.id, &self.id),
            (&mut made.diagnostics, &self.diagnostics),
        ] {
            for (to, from) in page.iter_mut().zip(bytes) {
                *to = *from;
            }
        }
        Some(made)
    }
}

/// Bytes of a page, of which there are not too many.
fn page<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let bytes = hex(deserializer)?;
    if bytes.len() > module::PAGE {
        let text = format!("{} bytes: a page has {}", bytes.len(), module::PAGE);
        return Err(serde::de::Error::custom(text));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use crate::protocol::{Request, parse};

    #[test]
    fn a_module_takes_other_bytes() {
        let line = r#"{"cmd":"module","port":0,"kind":"sr","id":"0d00","diagnostics":"ff"}"#;
        let Ok(Request::Module(request)) = parse(line.as_bytes()) else {
            panic!("a module");
        };
        let made = request.make().expect("there is one");
        assert_eq!(
            (made.id[..3].to_vec(), made.diagnostics[0]),
            (vec![0x0d, 0, 7], 0xff)
        );
        let line = format!(
            r#"{{"cmd":"module","port":0,"kind":"sr","id":"{}"}}"#,
            "00".repeat(257)
        );
        let text = parse(line.as_bytes()).expect_err("it is too long");
        assert!(text.contains("257 bytes"), "{text}");
    }
}
