// SPDX-License-Identifier: GPL-2.0
//! The control socket: one JSON object per line each way.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;

use anyhow::{Context, Result, bail};
use nicmodel_device::device::Device;
use nicmodel_device::fault;
use nicmodel_device::function::Kick;
use nicmodel_device::regs;
use nicmodel_wire::Request;
use nicmodel_wire::fabric::failure;
use nicmodel_wire::spec::{Generate, Plug, parse_hex};
use serde_json::{Map, Value, json};

/// A line longer than this is no request.
const MAX_LINE: u64 = 1 << 20;

/// What a client may ask of.
#[derive(Clone)]
pub struct Control {
    devices: Vec<Arc<Device>>,
    requests: Sender<Request>,
    kick: Arc<dyn Kick>,
}

impl Control {
    /// Listens on `path` in a thread, with another for each client.
    pub fn start(
        path: &Path,
        devices: Vec<Arc<Device>>,
        requests: Sender<Request>,
        kick: Arc<dyn Kick>,
    ) -> Result<()> {
        if let Ok(data) = std::fs::symlink_metadata(path) {
            if !data.file_type().is_socket() {
                bail!(
                    "{} exists and is no socket: choose another --dir",
                    path.display()
                );
            }
            std::fs::remove_file(path)
                .with_context(|| format!("cannot remove the old {}", path.display()))?;
        }
        let listener = UnixListener::bind(path)
            .with_context(|| format!("cannot listen on {}", path.display()))?;
        let control = Self {
            devices,
            requests,
            kick,
        };
        thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || control.accept(&listener))?;
        Ok(())
    }

    fn accept(&self, listener: &UnixListener) {
        for stream in listener.incoming() {
            let client = self.clone();
            let spawned = stream.map(|stream| {
                thread::Builder::new()
                    .name("client".to_owned())
                    .spawn(move || client.serve(&stream))
            });
            if let Err(error) | Ok(Err(error)) = spawned {
                eprintln!("nicmodel: control socket: {error}");
            }
        }
    }

    fn serve(&self, stream: &UnixStream) {
        let mut reader = BufReader::new(stream);
        loop {
            let mut line = Vec::new();
            match reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let whole = line.ends_with(b"\n");
            let mut answer = self.answer(&line).to_string();
            answer.push('\n');
            let mut stream = stream;
            if stream.write_all(answer.as_bytes()).is_err() || !whole {
                return;
            }
        }
    }

    fn answer(&self, line: &[u8]) -> Value {
        match serde_json::from_slice::<Map<String, Value>>(line) {
            Ok(request) => self
                .request(request)
                .unwrap_or_else(|error| failure(&error)),
            Err(error) => failure(&format!("not a JSON object on one line: {error}")),
        }
    }

    fn request(&self, mut request: Map<String, Value>) -> Result<Value, String> {
        let command = match request.remove("cmd") {
            Some(Value::String(command)) => command,
            _ => return Err("cmd: missing; it says what to do".to_owned()),
        };
        match command.as_str() {
            "generate" => {
                let spec: Generate = parse(request)?;
                self.ask(|reply| Request::Generate(spec, reply))
            }
            "wire" => {
                let port = self.port(&mut request)?;
                let plug: Plug = parse(request)?;
                self.ask(|reply| Request::Plug(port, plug, reply))
            }
            "inject" => {
                let port = self.port(&mut request)?;
                let text = take_string(&mut request, "hex")?;
                let frame = parse_hex(&text).ok_or("hex: not pairs of hexadecimal digits")?;
                self.ask(|reply| Request::Inject(port, frame, reply))
            }
            "link" => {
                let port = self.port(&mut request)?;
                let up = request
                    .get("up")
                    .and_then(Value::as_bool)
                    .ok_or("up: true or false")?;
                self.devices[port].set_link(up);
                Ok(json!({"ok": true}))
            }
            "stats" => {
                let port = self.port(&mut request)?;
                self.stats(port)
            }
            "reset_stats" => {
                for device in &self.devices {
                    device.totals.reset();
                }
                Ok(json!({"ok": true}))
            }
            "unknown_registers" => Ok(self.unknown_registers()),
            "fault" => {
                let port = self.port(&mut request)?;
                self.fault(port, &request)
            }
            _ => Err(format!(
                "cmd: {command:?} is not generate, wire, inject, link, stats, reset_stats, \
                 unknown_registers or fault"
            )),
        }
    }

    fn ask(&self, make: impl FnOnce(Sender<Value>) -> Request) -> Result<Value, String> {
        let (reply, answer) = mpsc::channel();
        let gone = "the engine has ended";
        self.requests.send(make(reply)).map_err(|_| gone)?;
        self.kick.kick();
        Ok(answer.recv().map_err(|_| gone)?)
    }

    fn port(&self, request: &mut Map<String, Value>) -> Result<usize, String> {
        let last = self.devices.len() - 1;
        request
            .remove("port")
            .and_then(|port| port.as_u64())
            .and_then(|port| usize::try_from(port).ok())
            .filter(|port| *port <= last)
            .ok_or_else(|| format!("port: give a number from 0 to {last}"))
    }

    fn stats(&self, port: usize) -> Result<Value, String> {
        let device = &self.devices[port];
        let mut stats: Map<String, Value> = device
            .totals
            .snapshot()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        let mac: Vec<String> = device
            .identity
            .mac
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        stats.insert("ok".to_owned(), json!(true));
        stats.insert("mac".to_owned(), json!(mac.join(":")));
        stats.insert("link".to_owned(), json!(device.link()));
        let wire = self.ask(|reply| Request::Describe(port, reply))?;
        stats.insert("wire".to_owned(), wire);
        Ok(Value::Object(stats))
    }

    fn unknown_registers(&self) -> Value {
        let mut list = Vec::new();
        for (port, device) in self.devices.iter().enumerate() {
            for (offset, uses) in device.unknown_registers() {
                list.push(json!({
                    "port": port,
                    "offset": format!("{offset:#07x}"),
                    "name": regs::name(offset),
                    "reads": uses.reads,
                    "writes": uses.writes,
                }));
            }
        }
        json!({"ok": true, "registers": list})
    }

    fn fault(&self, port: usize, request: &Map<String, Value>) -> Result<Value, String> {
        let device = &self.devices[port];
        let number = |name: &str, default: u64| match request.get(name) {
            None => Ok(default as u32),
            Some(value) => value
                .as_u64()
                .and_then(|value| u32::try_from(value).ok())
                .ok_or(format!("{name}: a number that fits in 32 bits")),
        };
        let kind = request
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match kind {
            "clear" | "none" => device.mend(),
            "remove" => device.surprise_remove(),
            "interrupt" => device.spurious_interrupts(),
            _ => {
                let known = fault::KINDS.iter().find(|(name, _)| *name == kind);
                let Some((_, kind)) = known else {
                    let names: Vec<_> = fault::KINDS.iter().map(|(name, _)| *name).collect();
                    return Err(format!(
                        "kind: {kind:?} is not clear, remove, interrupt, {}",
                        names.join(", ")
                    ));
                };
                device
                    .faults
                    .arm(*kind, number("count", 1)?, number("value", 0)?);
            }
        }
        Ok(json!({"ok": true}))
    }
}

fn parse<T: for<'de> serde::Deserialize<'de>>(request: Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(request)).map_err(|error| error.to_string())
}

fn take_string(request: &mut Map<String, Value>, name: &str) -> Result<String, String> {
    match request.remove(name) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(format!("{name}: missing; it is a string")),
    }
}
