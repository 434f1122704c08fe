// SPDX-License-Identifier: GPL-2.0
//! The control protocol: requests as types, and the text that explains them.
//!
//! A request is a JSON object on one line. `cmd` says which it is; the rest are the fields of its
//! type, and others are refused. Each request has an entry in `requests.json`, which `help` prints
//! and which a refusal quotes; tests hold the entries to the types.

use std::sync::LazyLock;

use nicmodel_device::fault;
use nicmodel_device::link::Speed;
use nicmodel_wire::spec::{Generate, Plug, parse_hex};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use crate::module::{Module, speed};
use crate::wait::Wait;

/// A request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Explain one request, or all.
    Help { request: Option<String> },
    /// Run the generator.
    Generate(Generate),
    /// Plug something into a port.
    Wire(Wire),
    /// Put one frame into a port, as if it came from the wire.
    Inject {
        port: usize,
        /// The frame without FCS.
        #[serde(deserialize_with = "hex")]
        hex: Vec<u8>,
        /// Not before the card sleeps: its guest cannot ask for anything then.
        #[serde(default)]
        asleep: bool,
    },
    /// Plug the cable of a port in or out.
    Link {
        port: usize,
        /// Whether there is a link.
        up: bool,
        /// The only speed of the far end.
        #[serde(default, deserialize_with = "speed")]
        speed: Option<Speed>,
    },
    /// Change the module in the cage of a port.
    Module(Module),
    /// Tell the totals of a port.
    Stats { port: usize },
    /// Make a port misbehave, or behave again.
    Fault {
        port: usize,
        kind: fault::Kind,
        /// On how many occasions a lie is told.
        #[serde(default = "once")]
        count: u32,
        /// The value of a lie that has one.
        #[serde(default)]
        value: u32,
    },
    /// Tell what the judge of each port has found.
    Judge {
        /// Lets the judge look away, or look again.
        pause: Option<bool>,
        /// Whether breaches have the register accesses before them, as they do by default. They
        /// are long.
        accesses: Option<bool>,
    },
    /// Begin a phase of a trace, or go on with it. Without one accesses count no longer.
    Trace { port: usize, phase: Option<String> },
    /// Tell the accesses that were traced.
    Accesses { port: usize },
    /// Wait for the driver.
    Wait(Wait),
}

/// Plugs something into a port.
#[derive(Debug, Deserialize)]
pub struct Wire {
    pub port: usize,
    /// The wire. It takes all other fields, and refuses those that it does not know.
    #[serde(flatten)]
    pub plug: Plug,
}

fn once() -> u32 {
    1
}

/// The explanation of a request.
#[derive(Debug, Deserialize, Serialize)]
pub struct Entry {
    cmd: String,
    about: String,
    fields: Vec<Field>,
    example: String,
    /// A model that is only the far side of another card lacks it.
    #[serde(default, skip_serializing)]
    of_the_card: bool,
}

/// The explanation of a field.
#[derive(Debug, Deserialize, Serialize)]
pub struct Field {
    name: String,
    /// The values that it takes.
    values: String,
    /// Its value where it is left out; a field without one must be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
}

/// Every request.
pub static REQUESTS: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("requests.json")).expect("a list of requests")
});

impl Entry {
    /// One line for a refusal: the fields and an example.
    fn usage(&self) -> String {
        let fields: Vec<String> = self
            .fields
            .iter()
            .map(|field| match &field.default {
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

fn entry(cmd: &str) -> Result<&'static Entry, String> {
    REQUESTS
        .iter()
        .find(|entry| entry.cmd == cmd)
        .ok_or_else(|| format!("{cmd:?} is no request; it is one of {}", names()))
}

fn names() -> String {
    let names: Vec<_> = REQUESTS.iter().map(|entry| entry.cmd.as_str()).collect();
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
    let entry = entry(&cmd).map_err(|error| format!("cmd: {error}"))?;
    serde_path_to_error::deserialize(json!({ (cmd.as_str()): fields })).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        // A missing or unknown field names itself, and has the whole object for its place.
        let place = match path.split_once('.') {
            None | Some((_, "?")) => String::new(),
            Some((_, field)) => format!("{field}: "),
        };
        format!("{cmd}: {place}{inner}; {}", entry.usage())
    })
}

/// Answers `help`: of a model with or without a card, all requests that it can carry out.
pub fn help(request: Option<&str>, has_card: bool) -> Result<Value, String> {
    let is_there = |entry: &&Entry| has_card || !entry.of_the_card;
    let requests: Vec<_> = match request {
        None => REQUESTS.iter().filter(is_there).collect(),
        Some(name) => {
            let entry = entry(name).map_err(|error| format!("help: request: {error}"))?;
            if !is_there(&entry) {
                return Err(format!(
                    "help: request: {name:?} takes a modelled card, and this is the far side of another"
                ));
            }
            vec![entry]
        }
    };
    Ok(json!({ "requests": requests }))
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
        for entry in REQUESTS.iter() {
            let request = parse(entry.example.as_bytes());
            assert!(request.is_ok(), "{}: {request:?}", entry.cmd);
        }
    }

    #[test]
    fn the_fields_of_help_are_those_of_the_types() {
        for entry in REQUESTS.iter() {
            let whole: Map<String, Value> =
                serde_json::from_str(&entry.example).expect("an object");
            // A value of no type: a field that exists refuses it, and one that does not says so.
            for field in &entry.fields {
                let mut fields = whole.clone();
                fields.insert(field.name.clone(), json!({"no": ["type"]}));
                let text = refusal(&Value::Object(fields).to_string());
                // The example of wire is a cable, which has no path and no replay.
                let of_pcap =
                    entry.cmd == "wire" && ["path", "replay"].contains(&field.name.as_str());
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
            let expected = match entry.cmd.as_str() {
                // serde lists the field of a cable.
                "wire" => 1,
                _ => entry.fields.len(),
            };
            assert_eq!(known, expected, "{text}");
        }
    }

    #[test]
    fn required_fields_are_required() {
        for entry in REQUESTS.iter() {
            let whole: Map<String, Value> =
                serde_json::from_str(&entry.example).expect("an object");
            for field in &entry.fields {
                let mut fields = whole.clone();
                fields.remove(&field.name);
                let request = parse(Value::Object(fields).to_string().as_bytes());
                if field.default.is_none() {
                    let text = request.expect_err(&field.name);
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
        let all = help(None, true).expect("known");
        assert_eq!(
            all["requests"].as_array().map(Vec::len),
            Some(REQUESTS.len())
        );
        let one = help(Some("wire"), true).expect("known");
        assert_eq!(one["requests"][0]["cmd"], "wire");
        assert!(
            help(Some("dance"), true)
                .expect_err("unknown")
                .contains("dance")
        );
    }

    #[test]
    fn help_leaves_out_what_takes_a_card() {
        let found = help(None, false).expect("all of them");
        let found = found["requests"].as_array().expect("a list");
        let cmds: Vec<_> = found.iter().map(|entry| &entry["cmd"]).collect();
        assert_eq!(cmds, ["help", "generate", "wire", "inject"]);
        assert!(help(Some("fault"), true).is_ok());
        let error = help(Some("fault"), false).expect_err("it takes a card");
        assert!(error.contains("modelled card"));
    }
}
