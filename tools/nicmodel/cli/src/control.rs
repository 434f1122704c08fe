// SPDX-License-Identifier: GPL-2.0
//! The control socket: one JSON object per line each way, as [`protocol`] has them.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender};
use std::thread;

use anyhow::{Context, Result};
use nicmodel_device::device::Device;
use nicmodel_device::function::Kick;
use nicmodel_wire::Request as Work;
use nicmodel_wire::fabric::Reply;
use serde_json::{Value, json};

use crate::protocol::{self, Request, Wire};
use crate::{sigbus, trace, wait};

/// A line longer than this is no request.
const MAX_LINE: u64 = 1 << 20;

/// The model as its clients reach it.
#[derive(Clone)]
pub struct Control {
    ports: usize,
    devices: Vec<Arc<Device>>,
    requests: Sender<Work>,
    kick: Arc<dyn Kick>,
}

impl Control {
    /// Listens on `path` in a thread, with another for each client.
    pub fn start(
        path: &Path,
        ports: usize,
        devices: Vec<Arc<Device>>,
        requests: Sender<Work>,
        kick: Arc<dyn Kick>,
    ) -> Result<()> {
        nicmodel_transport::make_free(path)?;
        let listener = UnixListener::bind(path)
            .with_context(|| format!("cannot listen on {}", path.display()))?;
        let control = Self {
            ports,
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
            let mut answer = match self.answer(&line) {
                Ok(answer) => answer,
                Err(error) => json!({ "error": error }),
            };
            answer["ok"] = answer.get("error").is_none().into();
            let mut answer = answer.to_string();
            answer.push('\n');
            let mut stream = stream;
            if stream.write_all(answer.as_bytes()).is_err() || !whole {
                return;
            }
        }
    }

    fn answer(&self, line: &[u8]) -> Result<Value, String> {
        match protocol::parse(line)? {
            Request::Help { request } => {
                return protocol::help(request.as_deref(), !self.devices.is_empty());
            }
            Request::Generate(spec) => {
                let report = self.ask("generate", |reply| Work::Generate(spec, reply))?;
                return Ok(json!(report));
            }
            Request::Wire(Wire { port, plug }) => {
                self.port("wire", port)?;
                self.ask("wire", |reply| Work::Plug(port, plug, reply))?;
            }
            Request::Inject { port, hex, asleep } => {
                self.port("inject", port)?;
                if asleep {
                    let device = self.device("inject", port)?;
                    wait::until(|| device.is_asleep()).map_err(|error| {
                        format!("inject: the card was not put to sleep {error}")
                    })?;
                }
                let fate = self.ask("inject", |reply| Work::Inject(port, hex, reply))?;
                return Ok(json!(fate));
            }
            Request::Link {
                port,
                up,
                speed,
                trains,
            } => {
                let device = self.device("link", port)?;
                device.set_lanes(&trains);
                device.set_far_end(up, speed);
            }
            Request::Module(module) => {
                let device = self.device("module", module.port)?;
                device.set_module(module.make());
            }
            Request::Stats { port } => return self.stats(port),
            Request::Fault {
                port,
                kind,
                count,
                value,
            } => self.device("fault", port)?.fault(kind, count, value),
            Request::Judge { pause, accesses } => {
                return Ok(self.judge(pause, accesses.unwrap_or(true)));
            }
            Request::Trace { port, phase } => {
                trace::begin(self.device("trace", port)?, phase.as_deref())?;
            }
            Request::Accesses { port } => {
                return Ok(trace::accesses(self.device("accesses", port)?));
            }
            Request::Wait(wait) => wait.carry_out(self.device("wait", wait.port)?)?,
        }
        Ok(json!({}))
    }

    /// Has the engine carry out something that request `cmd` asks for.
    fn ask<T>(&self, cmd: &str, make: impl FnOnce(Reply<T>) -> Work) -> Result<T, String> {
        let (reply, answer) = mpsc::channel();
        // If it has ended, it drops the request or the reply.
        let _ = self.requests.send(make(reply));
        self.kick.kick();
        let answer = answer.recv();
        let answer = answer.unwrap_or_else(|_| Err("the engine has ended".to_owned()));
        answer.map_err(|error| format!("{cmd}: {error}"))
    }

    /// Refuses a port that request `cmd` names and that is not there.
    fn port(&self, cmd: &str, port: usize) -> Result<(), String> {
        if port < self.ports {
            return Ok(());
        }
        Err(format!(
            "{cmd}: port: there is no port {port}, only 0 to {}",
            self.ports - 1
        ))
    }

    /// The card behind a port that request `cmd` names.
    fn device(&self, cmd: &str, port: usize) -> Result<&Arc<Device>, String> {
        self.port(cmd, port)?;
        self.devices
            .get(port)
            .ok_or_else(|| format!("{cmd}: the card of port {port} is not this model's"))
    }

    fn stats(&self, port: usize) -> Result<Value, String> {
        let device = self.device("stats", port)?;
        self.count_lost_memory();
        let wire = self.ask("stats", |reply| Work::Describe(port, reply))?;
        let mac = device.identity.mac.map(|byte| format!("{byte:02x}"));
        let mut stats = json!({ "mac": mac.join(":"), "link": device.link(), "wire": wire });
        for (name, total) in device.totals.snapshot() {
            stats[name] = total.into();
        }
        if let Some(judge) = device.judge() {
            let (violations, excused) = judge.counts();
            stats["violations"] = violations.into();
            stats["excused"] = excused.into();
        }
        Ok(stats)
    }

    /// Memory that was lost is that of all ports: they have one guest.
    fn count_lost_memory(&self) {
        let lost = sigbus::take_lost();
        for device in &self.devices {
            device.totals.dma_errors.fetch_add(lost, Ordering::Relaxed);
        }
    }

    fn judge(&self, pause: Option<bool>, accesses: bool) -> Value {
        let (mut judged, mut paused, mut violations, mut excused) = (false, false, 0, 0);
        let mut breaches = Vec::new();
        for (port, device) in self.devices.iter().enumerate() {
            let Some(judge) = device.judge() else {
                continue;
            };
            if let Some(pause) = pause {
                judge.pause(pause);
            }
            let counts = judge.counts();
            judged = true;
            paused |= judge.is_paused();
            violations += counts.0;
            excused += counts.1;
            for mut breach in judge.breaches() {
                if !accesses {
                    breach.accesses.clear();
                }
                let mut breach = json!(breach);
                breach["port"] = port.into();
                breaches.push(breach);
            }
        }
        json!({
            "judged": judged,
            "paused": paused,
            "violations": violations,
            "excused": excused,
            "breaches": breaches,
        })
    }
}
