// SPDX-License-Identifier: GPL-2.0
//! The control protocol: requests and answers as types, and the text that explains them.
//!
//! A request is a JSON object on one line. `cmd` says which it is; the rest are the fields of its
//! type, and others are refused. Each request has an entry in [`REQUESTS`], which `help` prints and
//! which a refusal quotes; tests hold the entries to the types.

use std::collections::BTreeMap;

use nicmodel_device::fault::Kind;
use nicmodel_wire::answer::{Done, Injected, Plugged, Report};
use nicmodel_wire::spec::{Generate, Plug, parse_hex};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::module::{LinkSpeed, Module};
use crate::trace::{Accesses, AccessesAnswer, Trace};
use crate::wait::Wait;

/// A request.
#[derive(Debug)]
pub enum Request {
    /// Explain the requests.
    Help(Help),
    /// Run the generator.
    Generate(Generate),
    /// Plug something into a port.
    Wire(Wire),
    /// Put one frame into a port.
    Inject(Inject),
    /// Change the link of a port.
    Link(Link),
    /// Change the module in the cage of a port.
    Module(Module),
    /// Tell the totals of a port.
    Stats(Stats),
    /// Set totals to zero.
    ResetStats(ResetStats),
    /// Tell which registers were used that the model does not know.
    UnknownRegisters(UnknownRegisters),
    /// Make a port misbehave.
    Fault(Fault),
    /// Tell what the judge has found.
    Judge(Judge),
    /// Begin or end a phase of a trace.
    Trace(Trace),
    /// Tell which registers were used while traced.
    Accesses(Accesses),
    /// Wait for the driver.
    Wait(Wait),
}

/// Explains one request, or all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Help {
    /// Which one.
    pub request: Option<String>,
}

/// Plugs something into a port.
#[derive(Debug, Deserialize)]
pub struct Wire {
    /// The port.
    pub port: usize,
    /// The wire. It takes all other fields, and refuses those that it does not know.
    #[serde(flatten)]
    pub plug: Plug,
}

/// Puts one frame into a port, as if it came from the wire.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inject {
    /// The port.
    pub port: usize,
    /// The frame without FCS.
    #[serde(deserialize_with = "hex")]
    pub hex: Vec<u8>,
    /// Not before the card sleeps: its guest cannot ask for anything then.
    #[serde(default)]
    pub asleep: bool,
}

/// Plugs the cable of a port in or out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The port.
    pub port: usize,
    /// Whether there is a link.
    pub up: bool,
    /// The only speed of the far end.
    pub speed: Option<LinkSpeed>,
}

/// Tells the totals of a port.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stats {
    /// The port.
    pub port: usize,
}

/// Sets the totals of a port to zero, or those of all.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResetStats {
    /// The port; all without it.
    pub port: Option<usize>,
}

/// Tells which registers were used that the model does not know.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnknownRegisters {}

/// Makes a port misbehave, or behave again.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The port.
    pub port: usize,
    /// The kind of fault.
    pub kind: FaultKind,
    /// On how many occasions a lie is told.
    #[serde(default = "once")]
    pub count: u32,
    /// The value of a lie that has one.
    #[serde(default)]
    pub value: u32,
}

/// Tells what the judge of each port has found.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judge {
    /// Lets the judge look away, or look again.
    pub pause: Option<bool>,
    /// Whether breaches have the register accesses before them, as they do by default. They are
    /// long.
    pub accesses: Option<bool>,
}

fn once() -> u32 {
    1
}

/// Kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// No faults any more, and a removed, unmapped or stuck card is as after power on.
    #[serde(alias = "none")]
    Clear,
    /// The card is out of its slot: every read is ones.
    Remove,
    /// No access reaches the registers, and the card goes on.
    Unmapped,
    /// The card neither resets nor stops accessing memory.
    Stuck,
    /// Every enabled interrupt, without a cause.
    Interrupt,
    /// A memory of the card has an error that it cannot correct.
    MemoryError,
    /// All counters of 32 bits are full.
    Counters,
    /// The firmware forbids changes of the link.
    Veto,
    /// The firmware manages the state of the link.
    Lesm,
    /// The firmware is too old for a port with a cage.
    OldFirmware,
    /// By the EEPROM, whatever the card takes for a link is one.
    NoCrosstalk,
    /// Negotiation does not leave its first state, until the next reset.
    NoNegotiation,
    /// The firmware has died as the owner of all that is shared.
    FirmwareDead,
    /// The EEPROM has another content than its checksum says.
    DamagedEeprom,
    /// The register at the offset of the value keeps its value whatever is written.
    DeadRegister,
    /// Interrupts get lost on their way.
    LostInterrupts,
    /// [`Kind::RxLength`].
    RxLength,
    /// [`Kind::RxNoEop`].
    RxNoEop,
    /// [`Kind::RxNext`].
    RxNext,
    /// [`Kind::RxCount`].
    RxCount,
    /// [`Kind::RxOnes`].
    RxOnes,
    /// [`Kind::RxError`].
    RxError,
    /// [`Kind::TxNoDone`].
    TxNoDone,
    /// [`Kind::TxHead`].
    TxHead,
    /// [`Kind::SlowPoll`].
    SlowPoll,
    /// [`Kind::FalseLink`].
    FalseLink,
    /// [`Kind::LostLink`].
    LostLink,
    /// [`Kind::FirmwareBusy`].
    FirmwareBusy,
    /// [`Kind::LoopedLost`].
    LoopedLost,
    /// [`Kind::LoopedDamaged`].
    LoopedDamaged,
    /// [`Kind::Ones`].
    Ones,
}

impl FaultKind {
    /// The lie that the card tells, if it is one.
    pub fn lie(self) -> Option<Kind> {
        match self {
            Self::Clear
            | Self::Remove
            | Self::Unmapped
            | Self::Stuck
            | Self::Interrupt
            | Self::MemoryError
            | Self::Counters
            | Self::Veto
            | Self::Lesm
            | Self::OldFirmware
            | Self::NoCrosstalk
            | Self::NoNegotiation
            | Self::FirmwareDead
            | Self::DamagedEeprom
            | Self::DeadRegister
            | Self::LostInterrupts => None,
            Self::RxLength => Some(Kind::RxLength),
            Self::RxNoEop => Some(Kind::RxNoEop),
            Self::RxNext => Some(Kind::RxNext),
            Self::RxCount => Some(Kind::RxCount),
            Self::RxOnes => Some(Kind::RxOnes),
            Self::RxError => Some(Kind::RxError),
            Self::TxNoDone => Some(Kind::TxNoDone),
            Self::TxHead => Some(Kind::TxHead),
            Self::SlowPoll => Some(Kind::SlowPoll),
            Self::FalseLink => Some(Kind::FalseLink),
            Self::LostLink => Some(Kind::LostLink),
            Self::FirmwareBusy => Some(Kind::FirmwareBusy),
            Self::LoopedLost => Some(Kind::LoopedLost),
            Self::LoopedDamaged => Some(Kind::LoopedDamaged),
            Self::Ones => Some(Kind::Ones),
        }
    }
}

/// The answer to a request that was carried out.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// To `help`.
    Help(HelpAnswer),
    /// To `generate`.
    Generate(Box<Report>),
    /// To `inject`.
    Inject(Injected),
    /// To `stats`.
    Stats(Box<StatsAnswer>),
    /// To `unknown_registers`.
    UnknownRegisters(UnknownAnswer),
    /// To `judge`.
    Judge(JudgeAnswer),
    /// To `accesses`.
    Accesses(AccessesAnswer),
    /// To all others.
    Done(Done),
}

/// The answer to `help`.
#[derive(Debug, Serialize)]
pub struct HelpAnswer {
    requests: Vec<&'static Entry>,
}

/// The answer to `stats`.
#[derive(Debug, Serialize)]
pub struct StatsAnswer {
    /// The totals by name.
    #[serde(flatten)]
    pub totals: BTreeMap<&'static str, u64>,
    /// The address in the EEPROM.
    pub mac: String,
    /// Whether there is a link.
    pub link: bool,
    /// The wire.
    pub wire: Plugged,
}

/// The answer to `unknown_registers`.
#[derive(Debug, Serialize)]
pub struct UnknownAnswer {
    /// One entry for each register and port.
    pub registers: Vec<UnknownRegister>,
}

/// How often a register was used that the model does not know.
#[derive(Debug, Serialize)]
pub struct UnknownRegister {
    /// The port.
    pub port: usize,
    /// Its offset in BAR 0, in hexadecimal.
    pub offset: String,
    /// The same, as other tools write it.
    pub name: String,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
}

/// The answer to `judge`.
#[derive(Debug, Default, Serialize)]
pub struct JudgeAnswer {
    /// Whether the card is judged at all.
    pub judged: bool,
    /// Whether the judge looks away.
    pub paused: bool,
    /// Breaches of rules.
    pub violations: u64,
    /// Breaches for which the driver is known.
    pub excused: u64,
    /// One entry for each rule, queue and port.
    pub breaches: Vec<Breach>,
}

/// All breaches of one rule by one queue.
#[derive(Debug, Serialize)]
pub struct Breach {
    /// The port.
    pub port: usize,
    /// The rule.
    pub rule: &'static str,
    /// The place that demands it.
    pub source: &'static str,
    /// The demand.
    pub about: &'static str,
    /// The queue, for rules about queues.
    pub queue: Option<String>,
    /// How often.
    pub count: u64,
    /// Whether the driver is known for it.
    pub excused: bool,
    /// Details of the first one.
    pub detail: String,
    /// The register accesses before the first one.
    pub accesses: Vec<String>,
}

/// The explanation of a request.
#[derive(Debug, Serialize)]
pub struct Entry {
    cmd: &'static str,
    about: &'static str,
    fields: &'static [Field],
    example: &'static str,
}

/// The explanation of a field.
#[derive(Debug, Serialize)]
pub struct Field {
    name: &'static str,
    /// The values that it takes.
    values: &'static str,
    /// Its value where it is left out; a field without one must be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<&'static str>,
}

/// A field that must be given.
const fn must(name: &'static str, values: &'static str) -> Field {
    Field {
        name,
        values,
        default: None,
    }
}

/// A field that may be left out.
const fn may(name: &'static str, values: &'static str, default: &'static str) -> Field {
    Field {
        name,
        values,
        default: Some(default),
    }
}

const PORT: Field = must("port", "number of a port, from 0");

/// Every request.
pub const REQUESTS: &[Entry] = &[
    Entry {
        cmd: "help",
        about: "explain the requests",
        fields: &[may("request", "name of a request", "all of them")],
        example: r#"{"cmd":"help","request":"wire"}"#,
    },
    Entry {
        cmd: "generate",
        about: "send numbered frames into one port and check what leaves another",
        fields: &[
            must("from", "number of the port into which frames go"),
            must("to", "number of the port that they should leave"),
            must("count", "number of frames, up to 1073741824"),
            may("size", "bytes of a frame without FCS, 54 to 9728", "60"),
            may(
                "flows",
                "number of flows (UDP source ports), 1 to 65535",
                "1",
            ),
            may("src_mac", "MAC address", "02:00:00:00:00:01"),
            may("dst_mac", "MAC address", "that of the port"),
            may(
                "expect_src_mac",
                "MAC address of frames that leave",
                "not checked",
            ),
            may(
                "expect_dst_mac",
                "MAC address of frames that leave",
                "not checked",
            ),
            may("src_ip", "IPv4 address", "10.0.0.2"),
            may("dst_ip", "IPv4 address", "10.0.1.2"),
            may(
                "expect_ttl",
                "time to live of frames that leave; they come with 64",
                "63",
            ),
            may(
                "window",
                "most frames under way at once, 0 for no limit",
                "256",
            ),
            may(
                "stall_ms",
                "milliseconds after which a full window that does not move is taken for lost",
                "20",
            ),
            may("rate", "frames per second, 0 for no limit", "0"),
            may("latency", "true to measure the time of each frame", "false"),
            may("drain_ms", "milliseconds to wait for stragglers", "500"),
            may(
                "timeout_ms",
                "milliseconds after which the run ends",
                "60000",
            ),
        ],
        example: r#"{"cmd":"generate","from":0,"to":1,"count":1000,"size":60}"#,
    },
    Entry {
        cmd: "wire",
        about: "plug something into a port",
        fields: &[
            PORT,
            must("kind", "sink, cable, pcap or tap"),
            may(
                "peer",
                "cable: number of the port at the other end",
                "none; a cable needs it",
            ),
            may(
                "path",
                "pcap: file on the model's host to record to; tap: name of the device",
                "none; a tap needs it, pcap this or replay",
            ),
            may(
                "replay",
                "pcap: file on the model's host to play into the port",
                "none",
            ),
        ],
        example: r#"{"cmd":"wire","port":0,"kind":"cable","peer":1}"#,
    },
    Entry {
        cmd: "inject",
        about: "put one frame into a port, as if it came from the wire",
        fields: &[
            PORT,
            must(
                "hex",
                "the frame without FCS in hexadecimal; blanks and colons are skipped",
            ),
            may(
                "asleep",
                "true: as soon as the card sleeps, within two minutes",
                "false",
            ),
        ],
        example: r#"{"cmd":"inject","port":0,"hex":"ffffffffffff 020000000001 0800 4500"}"#,
    },
    Entry {
        cmd: "link",
        about: "plug the cable of a port in or out",
        fields: &[
            PORT,
            must("up", "true or false"),
            may(
                "speed",
                "the only speed of the far end: 1000 or 10000",
                "any, with the judge; without one it does not matter",
            ),
        ],
        example: r#"{"cmd":"link","port":0,"up":false}"#,
    },
    Entry {
        cmd: "module",
        about: "pull the module out of the cage of a port and put another one in",
        fields: &[
            PORT,
            must(
                "kind",
                "absent, sr, lr, dual (SR and SX), passive or active (cables), sx, lx, t, bx (1 Gb/s), \
                 ten_bx, foreign (SR of another maker), qsfp, garbage or silent",
            ),
            may(
                "id",
                "first bytes of the identification page, in hexadecimal",
                "those of the kind",
            ),
            may(
                "diagnostics",
                "first bytes of the diagnostics page, in hexadecimal",
                "those of the kind",
            ),
        ],
        example: r#"{"cmd":"module","port":0,"kind":"dual"}"#,
    },
    Entry {
        cmd: "stats",
        about: "tell the totals of a port since the start or the last reset_stats",
        fields: &[PORT],
        example: r#"{"cmd":"stats","port":0}"#,
    },
    Entry {
        cmd: "reset_stats",
        about: "set the totals of a port, or of all, to zero",
        fields: &[may("port", "number of a port, from 0", "all ports")],
        example: r#"{"cmd":"reset_stats","port":0}"#,
    },
    Entry {
        cmd: "unknown_registers",
        about: "list the registers that were used although the model does not know them",
        fields: &[],
        example: r#"{"cmd":"unknown_registers"}"#,
    },
    Entry {
        cmd: "fault",
        about: "make a port misbehave, or behave again (clear)",
        fields: &[
            PORT,
            must(
                "kind",
                "clear (or none), remove, unmapped, stuck, interrupt, memory_error, counters, \
                 veto, lesm, old_firmware, no_crosstalk, no_negotiation, firmware_dead, \
                 damaged_eeprom, dead_register, lost_interrupts, rx_length, rx_no_eop, rx_next, \
                 rx_count, rx_ones, rx_error, \
                 tx_no_done, tx_head, slow_poll, false_link, lost_link, firmware_busy, \
                 looped_lost, looped_damaged or ones",
            ),
            may(
                "count",
                "on how many occasions one of the kinds from rx_length on takes effect, in 32 bits",
                "1",
            ),
            may(
                "value",
                "what rx_length, rx_next, rx_count, rx_error or tx_head says, the offset of \
                 dead_register or ones, or milliseconds of slow_poll, of which a second counts, \
                 in 32 bits",
                "0",
            ),
        ],
        example: r#"{"cmd":"fault","port":0,"kind":"rx_length","count":1,"value":65535}"#,
    },
    Entry {
        cmd: "judge",
        about: "tell which rules of the datasheet the driver has broken (needs --judge)",
        fields: &[
            may(
                "pause",
                "true to look away, false to look again",
                "no change",
            ),
            may(
                "accesses",
                "whether breaches are told with the register accesses before them",
                "true",
            ),
        ],
        example: r#"{"cmd":"judge"}"#,
    },
    Entry {
        cmd: "trace",
        about: "count the accesses of each register by phase (--trap: all of them)",
        fields: &[
            PORT,
            may(
                "phase",
                "name of the phase that begins or goes on",
                "none: accesses count no longer",
            ),
        ],
        example: r#"{"cmd":"trace","port":0,"phase":"probe"}"#,
    },
    Entry {
        cmd: "accesses",
        about: "tell the accesses that trace has counted",
        fields: &[PORT],
        example: r#"{"cmd":"accesses","port":0}"#,
    },
    Entry {
        cmd: "wait",
        about: "answer when the driver of a port has done something, within two minutes",
        fields: &[
            PORT,
            must(
                "until",
                "reads or writes, of a register from now on, or link: it is up, the driver has \
                 started it over the module that is in the cage now, and has read that it is up",
            ),
            may(
                "register",
                "name of a register or an array of them, for reads and writes",
                "none",
            ),
            may("count", "how many reads or writes", "1"),
        ],
        example: r#"{"cmd":"wait","port":0,"until":"reads","register":"LINKS","count":2}"#,
    },
];

/// Requests about the card: a model that is only the far side of another card lacks them.
const OF_THE_CARD: [&str; 10] = [
    "link",
    "module",
    "stats",
    "reset_stats",
    "unknown_registers",
    "fault",
    "judge",
    "trace",
    "accesses",
    "wait",
];

impl Entry {
    /// One line for a refusal: the fields and an example.
    fn usage(&self) -> String {
        let fields: Vec<String> = self
            .fields
            .iter()
            .map(|field| match field.default {
                None => format!("{} ({})", field.name, field.values),
                Some(default) => format!("[{} ({}; default: {default})]", field.name, field.values),
            })
            .collect();
        let fields = match fields.as_slice() {
            [] => "no fields".to_owned(),
            fields => fields.join(", "),
        };
        format!("{} takes {fields}; for example {}", self.cmd, self.example)
    }
}

fn entry(cmd: &str) -> Option<&'static Entry> {
    REQUESTS.iter().find(|entry| entry.cmd == cmd)
}

fn names() -> String {
    let names: Vec<_> = REQUESTS.iter().map(|entry| entry.cmd).collect();
    names.join(", ")
}

/// Reads a request from one line; the error lists the allowed values.
pub fn parse(line: &[u8]) -> Result<Request, String> {
    let mut fields: Map<String, Value> = serde_json::from_slice(line).map_err(|error| {
        format!(r#"not a JSON object on one line: {error}; {{"cmd":"help"}} lists the requests"#)
    })?;
    let cmd = match fields.remove("cmd") {
        Some(Value::String(cmd)) => cmd,
        Some(other) => return Err(format!("cmd: {other} is no name; it is one of {}", names())),
        None => return Err(format!("cmd: missing; it is one of {}", names())),
    };
    let Some(entry) = entry(&cmd) else {
        return Err(format!(
            "cmd: {cmd:?} is no request; it is one of {}",
            names()
        ));
    };
    match entry.cmd {
        "help" => typed(entry, fields).map(Request::Help),
        "generate" => typed(entry, fields).map(Request::Generate),
        "wire" => typed(entry, fields).map(Request::Wire),
        "inject" => typed(entry, fields).map(Request::Inject),
        "link" => typed(entry, fields).map(Request::Link),
        "module" => typed(entry, fields).map(Request::Module),
        "stats" => typed(entry, fields).map(Request::Stats),
        "reset_stats" => typed(entry, fields).map(Request::ResetStats),
        "unknown_registers" => typed(entry, fields).map(Request::UnknownRegisters),
        "fault" => typed(entry, fields).map(Request::Fault),
        "judge" => typed(entry, fields).map(Request::Judge),
        "trace" => typed(entry, fields).map(Request::Trace),
        "accesses" => typed(entry, fields).map(Request::Accesses),
        "wait" => typed(entry, fields).map(Request::Wait),
        _ => Err(format!("cmd: {cmd:?} is not carried out by this model")),
    }
}

/// The fields as the type of their request.
fn typed<T: DeserializeOwned>(entry: &Entry, fields: Map<String, Value>) -> Result<T, String> {
    serde_path_to_error::deserialize(Value::Object(fields)).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        // A missing or unknown field names itself, and has the whole object for its place.
        let place = match path.as_str() {
            "." | "?" => String::new(),
            field => format!("{field}: "),
        };
        format!("{}: {place}{inner}; {}", entry.cmd, entry.usage())
    })
}

/// Answers `help`: of a model with or without a card, all requests that it can carry out.
pub fn help(request: &Help, has_card: bool) -> Result<HelpAnswer, String> {
    let requests = match &request.request {
        None => REQUESTS
            .iter()
            .filter(|entry| has_card || !OF_THE_CARD.contains(&entry.cmd))
            .collect(),
        Some(name) if !has_card && OF_THE_CARD.contains(&name.as_str()) => {
            return Err(format!(
                "help: request: {name:?} takes a modelled card, and this is the far side of another"
            ));
        }
        Some(name) => vec![entry(name).ok_or_else(|| {
            format!(
                "help: request: {name:?} is no request; it is one of {}",
                names()
            )
        })?],
    };
    Ok(HelpAnswer { requests })
}

/// Bytes as pairs of hexadecimal digits.
pub(crate) fn hex<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_hex(&text).ok_or_else(|| serde::de::Error::custom("not pairs of hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> String {
        parse(line.as_bytes()).expect_err(line)
    }

    #[test]
    fn every_example_is_a_request() {
        for entry in REQUESTS {
            let request = parse(entry.example.as_bytes());
            assert!(request.is_ok(), "{}: {request:?}", entry.cmd);
        }
    }

    #[test]
    fn the_fields_of_help_are_those_of_the_types() {
        for entry in REQUESTS {
            let whole: Map<String, Value> = serde_json::from_str(entry.example).expect("an object");
            // A value of no type: a field that exists refuses it, and one that does not says so.
            for field in entry.fields {
                let mut fields = whole.clone();
                fields.insert(field.name.to_owned(), serde_json::json!({"no": ["type"]}));
                let text = refusal(&Value::Object(fields).to_string());
                // The example of wire is a cable, which has no path and no replay.
                let of_pcap = entry.cmd == "wire" && ["path", "replay"].contains(&field.name);
                assert_eq!(text.contains("unknown field"), of_pcap, "{text}");
            }
            // And there is no other one.
            let mut fields = whole;
            fields.insert("sice".to_owned(), 1.into());
            let text = refusal(&Value::Object(fields).to_string());
            let known = text
                .split("; ")
                .next()
                .map_or(0, |text| text.matches('`').count() / 2 - 1);
            let expected = match entry.cmd {
                // serde lists the field of a cable.
                "wire" => 1,
                _ => entry.fields.len(),
            };
            assert_eq!(known, expected, "{text}");
        }
    }

    #[test]
    fn required_fields_are_required() {
        for entry in REQUESTS {
            let whole: Map<String, Value> = serde_json::from_str(entry.example).expect("an object");
            for field in entry.fields {
                let mut fields = whole.clone();
                fields.remove(field.name);
                let request = parse(Value::Object(fields).to_string().as_bytes());
                if field.default.is_none() {
                    let text = request.expect_err(field.name);
                    let missing = format!("{}: missing field `{}`", entry.cmd, field.name);
                    assert!(text.starts_with(&missing), "{text}");
                } else if entry.cmd != "wire" {
                    assert!(request.is_ok(), "{}: {}", entry.cmd, field.name);
                }
            }
        }
    }

    #[test]
    fn unknown_fields_are_refused_everywhere() {
        for line in [
            r#"{"cmd":"help","x":1}"#,
            r#"{"cmd":"generate","from":0,"to":1,"count":1,"x":1}"#,
            r#"{"cmd":"wire","port":0,"kind":"sink","x":1}"#,
            r#"{"cmd":"wire","port":0,"kind":"cable","peer":1,"x":1}"#,
            r#"{"cmd":"wire","port":0,"kind":"pcap","path":"a","x":1}"#,
            r#"{"cmd":"wire","port":0,"kind":"tap","path":"a","x":1}"#,
            r#"{"cmd":"inject","port":0,"hex":"00","x":1}"#,
            r#"{"cmd":"link","port":0,"up":true,"x":1}"#,
            r#"{"cmd":"module","port":0,"kind":"sr","x":1}"#,
            r#"{"cmd":"stats","port":0,"x":1}"#,
            r#"{"cmd":"reset_stats","x":1}"#,
            r#"{"cmd":"unknown_registers","x":1}"#,
            r#"{"cmd":"fault","port":0,"kind":"clear","x":1}"#,
            r#"{"cmd":"judge","x":1}"#,
            r#"{"cmd":"trace","port":0,"x":1}"#,
            r#"{"cmd":"accesses","port":0,"x":1}"#,
            r#"{"cmd":"wait","port":0,"until":"link","x":1}"#,
        ] {
            let text = refusal(line);
            let cmd: Value = serde_json::from_str(line).expect("an object");
            let cmd = cmd["cmd"].as_str().expect("a name");
            assert!(text.starts_with(&format!("{cmd}: ")), "{text}");
            assert!(text.contains("unknown field `x`"), "{text}");
            assert!(text.contains("for example {"), "{text}");
        }
    }

    #[test]
    fn a_cable_in_the_wrong_words_is_told_how_to_spell_it() {
        let text = refusal(r#"{"cmd":"wire","port":0,"wire":"cable"}"#);
        assert!(text.starts_with("wire: missing field `kind`"), "{text}");
        assert!(
            text.contains(r#"{"cmd":"wire","port":0,"kind":"cable","peer":1}"#),
            "{text}"
        );
    }

    #[test]
    fn a_wrong_value_names_its_field() {
        for (line, start) in [
            (
                r#"{"cmd":"generate","from":0,"to":1,"count":-1}"#,
                "generate: count: invalid value",
            ),
            (
                r#"{"cmd":"generate","from":0,"to":1,"count":1,"src_mac":"x"}"#,
                "generate: src_mac: \"x\" is no MAC address",
            ),
            (
                r#"{"cmd":"inject","port":0,"hex":"abc"}"#,
                "inject: hex: not pairs",
            ),
            (
                r#"{"cmd":"inject","port":0,"hex":"00","asleep":1}"#,
                "inject: asleep: invalid type",
            ),
            (
                r#"{"cmd":"link","port":0,"up":true,"speed":40000}"#,
                "link: speed: 40000 is neither",
            ),
            (
                r#"{"cmd":"module","port":0,"kind":"sr","id":"0"}"#,
                "module: id: not pairs",
            ),
            (
                r#"{"cmd":"fault","port":0,"kind":"gravity"}"#,
                "fault: kind: unknown variant `gravity`",
            ),
            (
                r#"{"cmd":"fault","port":0,"kind":"clear","count":4294967296}"#,
                "fault: count: invalid value",
            ),
            (r#"{"cmd":"dance"}"#, "cmd: \"dance\" is no request"),
            (r#"{"cmd":7}"#, "cmd: 7 is no name"),
            ("{}", "cmd: missing; it is one of help, generate"),
        ] {
            let text = refusal(line);
            assert!(text.starts_with(start), "{text}");
        }
    }

    #[test]
    fn help_explains_one_request_or_all() {
        let help = |request: Option<&str>| {
            let request = request.map(str::to_owned);
            super::help(&Help { request }, true)
        };
        assert_eq!(help(None).expect("known").requests.len(), REQUESTS.len());
        assert_eq!(help(Some("wire")).expect("known").requests[0].cmd, "wire");
        assert!(help(Some("dance")).expect_err("unknown").contains("dance"));
    }

    #[test]
    fn help_leaves_out_what_takes_a_card() {
        for cmd in OF_THE_CARD {
            assert!(entry(cmd).is_some(), "{cmd}");
        }
        let found = super::help(&Help { request: None }, false).expect("all of them");
        let fault = Help {
            request: Some("fault".into()),
        };
        assert!(super::help(&fault, true).is_ok());
        assert!(
            super::help(&fault, false)
                .expect_err("it takes a card")
                .contains("modelled card")
        );
        assert_eq!(found.requests.len(), REQUESTS.len() - OF_THE_CARD.len());
    }
}
