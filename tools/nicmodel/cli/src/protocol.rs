// SPDX-License-Identifier: GPL-2.0
//! The control protocol: requests as types, and the text that explains them.
//!
//! A request is a JSON object on one line. `cmd` says which it is; the rest are the fields of its
//! type, and others are refused. Each request has an entry in `requests.json`, which `help` prints
//! and which a refusal quotes; tests hold the entries to the types.

use std::sync::LazyLock;

use nicmodel_device::fault;
use nicmodel_device::link::{Lane, Speed};
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
        /// The lanes of a backplane over which signals pass.
        #[serde(default)]
        trains: Vec<Lane>,
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
        // A missing field names itself, and has the whole object for its place.
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
mod tests;
