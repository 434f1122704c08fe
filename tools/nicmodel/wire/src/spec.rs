// SPDX-License-Identifier: GPL-2.0
//! Requests as they come over the control socket.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer};

/// A MAC address written with colons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_mac(&text).map(Mac).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "{text:?} is no MAC address: write it as 02:00:00:00:00:01"
            ))
        })
    }
}

/// Six hexadecimal bytes with colons between.
pub fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        let part = parts.next()?;
        if part.is_empty() || part.len() > 2 {
            return None;
        }
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

/// Hexadecimal digits, two for each byte.
pub fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| !c.is_whitespace() && *c != ':')
        .map(|c| c.to_digit(16))
        .collect::<Option<_>>()?;
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    Some(
        digits
            .chunks_exact(2)
            .map(|d| (d[0] << 4 | d[1]) as u8)
            .collect(),
    )
}

/// A run of the generator.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generate {
    /// Port into which frames go.
    pub from: usize,
    /// Port out of which they are expected.
    pub to: usize,
    /// How many frames.
    pub count: u32,
    /// Bytes of a frame without FCS.
    #[serde(default = "number::<60, _>")]
    pub size: usize,
    /// Number of flows (UDP source ports).
    #[serde(default = "number::<1, _>")]
    pub flows: u16,
    /// Source address of the frames.
    #[serde(default = "default_src_mac")]
    pub src_mac: Mac,
    /// Destination address: that of port `from` unless given.
    pub dst_mac: Option<Mac>,
    /// Source address that they must leave with; not checked unless given.
    pub expect_src_mac: Option<Mac>,
    /// Destination address that they must leave with; not checked unless given.
    pub expect_dst_mac: Option<Mac>,
    /// IPv4 source.
    #[serde(default = "default_src_ip")]
    pub src_ip: Ipv4Addr,
    /// IPv4 destination.
    #[serde(default = "default_dst_ip")]
    pub dst_ip: Ipv4Addr,
    /// Time to live that they must leave with; they come with 64.
    #[serde(default = "default_ttl")]
    pub expect_ttl: u8,
    /// Most frames under way at once; 0 for no limit.
    #[serde(default = "number::<256, _>")]
    pub window: u32,
    /// Milliseconds after which a full window that does not move is taken for lost: the generator
    /// goes on.
    #[serde(default = "number::<20, _>")]
    pub stall_ms: u64,
    /// Frames per second; 0 for as many as the window allows.
    #[serde(default)]
    pub rate: u32,
    /// Whether to measure how long each frame takes from port to port.
    #[serde(default)]
    pub latency: bool,
    /// Milliseconds to wait for stragglers.
    #[serde(default = "number::<500, _>")]
    pub drain_ms: u64,
    /// Milliseconds after which the run ends in any case.
    #[serde(default = "number::<60000, _>")]
    pub timeout_ms: u64,
}

/// A number as a default.
fn number<const N: u16, T: From<u16>>() -> T {
    N.into()
}
fn default_ttl() -> u8 {
    63
}
fn default_src_mac() -> Mac {
    Mac([2, 0, 0, 0, 0, 1])
}
fn default_src_ip() -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, 2)
}
fn default_dst_ip() -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 1, 2)
}

/// Smallest frame that has room for the marks of the generator.
pub const MIN_SIZE: usize = 54;
/// Largest frame that the card takes.
pub const MAX_SIZE: usize = 9728;
/// More frames than this in one run would need too much memory to check.
pub const MAX_COUNT: u32 = 1 << 30;
/// The same for a run that measures the time of each frame.
pub const MAX_TIMED: u32 = 1 << 22;

impl Generate {
    /// Refuses a run that so many ports do not allow.
    pub fn validate(&self, ports: usize) -> Result<(), String> {
        for (name, port) in [("from", self.from), ("to", self.to)] {
            if port >= ports {
                return Err(format!(
                    "{name}: there is no port {port}, only 0 to {}",
                    ports - 1
                ));
            }
        }
        if !(MIN_SIZE..=MAX_SIZE).contains(&self.size) {
            return Err(format!(
                "size: {} is not within {MIN_SIZE} to {MAX_SIZE}",
                self.size
            ));
        }
        if self.flows == 0 {
            return Err("flows: at least 1".to_owned());
        }
        if self.count > MAX_COUNT {
            return Err(format!("count: at most {MAX_COUNT}; make several runs"));
        }
        if self.latency && self.count > MAX_TIMED {
            return Err(format!("count: at most {MAX_TIMED} with latency"));
        }
        Ok(())
    }
}

/// The wire to plug into a port.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Plug {
    /// Frames end here, once running generators have checked them.
    Sink {},
    /// The other end is another port.
    Cable {
        /// The other port.
        peer: usize,
    },
    /// Frames are recorded, and another file may be played into the port.
    Pcap {
        /// File to write.
        path: Option<PathBuf>,
        /// File to play.
        replay: Option<PathBuf>,
    },
    /// The other end is a tap device of the host.
    Tap {
        /// Name of the device; made if it is not there.
        path: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_addresses() {
        assert_eq!(parse_mac("02:00:00:00:00:fF"), Some([2, 0, 0, 0, 0, 255]));
        for bad in [
            "",
            "02:00",
            "02:00:00:00:00:00:00",
            "02:00:00:00:00:0g",
            "2::0:0:0:0:0",
        ] {
            assert_eq!(parse_mac(bad), None, "{bad}");
        }
    }

    #[test]
    fn hexadecimal() {
        assert_eq!(parse_hex("00 ff:1a"), Some(vec![0, 255, 26]));
        assert_eq!(parse_hex("0"), None);
        assert_eq!(parse_hex("zz"), None);
    }

    #[test]
    fn errors_name_the_field() {
        let text = r#"{"from":0,"to":5,"count":1}"#;
        let run: Generate = serde_json::from_str(text).expect("well formed");
        assert!(run.validate(2).expect_err("no port 5").contains("to"));
        let error = serde_json::from_str::<Generate>(r#"{"from":0,"to":1,"count":1,"sise":3}"#);
        assert!(error.expect_err("typo").to_string().contains("sise"));
        let text = r#"{"from":0,"to":1,"count":5000000,"latency":true}"#;
        let run: Generate = serde_json::from_str(text).expect("well formed");
        assert!(
            run.validate(2)
                .expect_err("too many")
                .contains("with latency")
        );
    }
}
