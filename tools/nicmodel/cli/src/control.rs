// SPDX-License-Identifier: GPL-2.0
//! The control socket: one JSON object per line each way, as [`protocol`] has them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;

use anyhow::{Context, Result, bail};
use nicmodel_device::device::Device;
use nicmodel_device::function::Kick;
use nicmodel_device::judge::rules;
use nicmodel_device::regs;
use nicmodel_wire::Request as Work;
use nicmodel_wire::answer::{Done, Outcome};
use nicmodel_wire::fabric::Reply;

use crate::protocol::{
    self, Answer, Breach, Fault, FaultKind, JudgeAnswer, Request, ResetStats, StatsAnswer,
    UnknownAnswer, UnknownRegister,
};
use crate::trace::AccessesAnswer;
use crate::wait;

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
            let outcome = Outcome::from(self.answer(&line));
            // Plain data: this cannot fail, but a line must come in any case.
            let mut answer = serde_json::to_string(&outcome)
                .unwrap_or_else(|_| r#"{"ok":false,"error":"no answer"}"#.to_owned());
            answer.push('\n');
            let mut stream = stream;
            if stream.write_all(answer.as_bytes()).is_err() || !whole {
                return;
            }
        }
    }

    fn answer(&self, line: &[u8]) -> Result<Answer, String> {
        match protocol::parse(line)? {
            Request::Help(help) => {
                protocol::help(&help, !self.devices.is_empty()).map(Answer::Help)
            }
            Request::Generate(spec) => self
                .ask(|reply| Work::Generate(spec, reply))
                .map(|report| Answer::Generate(Box::new(report)))
                .map_err(|error| format!("generate: {error}")),
            Request::Wire(wire) => {
                self.port("wire", wire.port)?;
                self.ask(|reply| Work::Plug(wire.port, wire.plug, reply))
                    .map(Answer::Done)
                    .map_err(|error| format!("wire: {error}"))
            }
            Request::Inject(inject) => {
                self.port("inject", inject.port)?;
                if inject.asleep {
                    let device = self.device("inject", inject.port)?;
                    wait::until(|| device.is_asleep()).map_err(|error| {
                        format!("inject: the card was not put to sleep {error}")
                    })?;
                }
                self.ask(|reply| Work::Inject(inject.port, inject.hex, reply))
                    .map(Answer::Inject)
                    .map_err(|error| format!("inject: {error}"))
            }
            Request::Link(link) => {
                let speed = link.speed.map(|speed| speed.0);
                self.device("link", link.port)?.set_far_end(link.up, speed);
                Ok(Answer::Done(Done {}))
            }
            Request::Module(module) => {
                self.device("module", module.port)?
                    .set_module(module.make());
                Ok(Answer::Done(Done {}))
            }
            Request::Stats(stats) => self.stats(stats.port),
            Request::ResetStats(reset) => self.reset_stats(&reset),
            Request::UnknownRegisters(_) => Ok(self.unknown_registers()),
            Request::Fault(fault) => self.fault(&fault),
            Request::Judge(judge) => Ok(Answer::Judge(self.judge(&judge))),
            Request::Trace(trace) => {
                trace.carry_out(self.device("trace", trace.port)?)?;
                Ok(Answer::Done(Done {}))
            }
            Request::Accesses(accesses) => {
                let device = self.device("accesses", accesses.port)?;
                Ok(Answer::Accesses(AccessesAnswer::of(device)))
            }
            Request::Wait(wait) => {
                wait.carry_out(self.device("wait", wait.port)?)?;
                Ok(Answer::Done(Done {}))
            }
        }
    }

    /// Has the engine carry something out.
    fn ask<T>(&self, make: impl FnOnce(Reply<T>) -> Work) -> Result<T, String> {
        let (reply, answer) = mpsc::channel();
        let gone = "the engine has ended";
        self.requests.send(make(reply)).map_err(|_| gone)?;
        self.kick.kick();
        answer.recv().map_err(|_| gone)?
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

    fn stats(&self, port: usize) -> Result<Answer, String> {
        let device = self.device("stats", port)?;
        let mac: Vec<String> = device
            .identity
            .mac
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let mut totals: BTreeMap<_, _> = device.totals.snapshot().into_iter().collect();
        if let Some(judge) = device.judge() {
            let (violations, excused) = judge.counts();
            totals.extend([("violations", violations), ("excused", excused)]);
        }
        Ok(Answer::Stats(Box::new(StatsAnswer {
            totals,
            mac: mac.join(":"),
            link: device.link(),
            wire: self.ask(|reply| Work::Describe(port, reply))?,
        })))
    }

    fn reset_stats(&self, reset: &ResetStats) -> Result<Answer, String> {
        match reset.port {
            Some(port) => self.device("reset_stats", port)?.totals.reset(),
            None => {
                for device in &self.devices {
                    device.totals.reset();
                }
            }
        }
        Ok(Answer::Done(Done {}))
    }

    fn unknown_registers(&self) -> Answer {
        let mut registers = Vec::new();
        for (port, device) in self.devices.iter().enumerate() {
            for (offset, uses) in device.unknown_registers() {
                registers.push(UnknownRegister {
                    port,
                    offset: format!("{offset:#07x}"),
                    name: regs::name(offset),
                    reads: uses.reads,
                    writes: uses.writes,
                });
            }
        }
        Answer::UnknownRegisters(UnknownAnswer { registers })
    }

    fn judge(&self, request: &protocol::Judge) -> JudgeAnswer {
        let mut answer = JudgeAnswer::default();
        for (port, device) in self.devices.iter().enumerate() {
            let Some(judge) = device.judge() else {
                continue;
            };
            if let Some(pause) = request.pause {
                judge.pause(pause);
            }
            let (violations, excused) = judge.counts();
            answer.judged = true;
            answer.paused |= judge.is_paused();
            answer.violations += violations;
            answer.excused += excused;
            answer
                .breaches
                .extend(judge.breaches().into_iter().filter_map(|one| {
                    let rule = rules::find(one.rule)?;
                    Some(Breach {
                        port,
                        rule: rule.id,
                        source: rule.source,
                        about: rule.about,
                        queue: one.queue,
                        count: one.count,
                        excused: one.excused,
                        detail: one.detail,
                        accesses: if request.accesses.unwrap_or(true) {
                            one.accesses
                        } else {
                            Vec::new()
                        },
                    })
                }));
        }
        answer
    }

    fn fault(&self, fault: &Fault) -> Result<Answer, String> {
        let device = self.device("fault", fault.port)?;
        match (fault.kind, fault.kind.lie()) {
            (_, Some(lie)) => device.faults.arm(lie, fault.count, fault.value),
            (FaultKind::Remove, None) => device.surprise_remove(),
            (FaultKind::Unmapped, None) => device.faults.unmap(),
            (FaultKind::Stuck, None) => device.get_stuck(),
            (FaultKind::Interrupt, None) => device.spurious_interrupts(),
            (FaultKind::MemoryError, None) => device.memory_error(),
            (FaultKind::Counters, None) => device.fill_counters(),
            (FaultKind::Veto, None) => device.faults.forbid(),
            (FaultKind::Lesm, None) => device.manage_link(),
            (FaultKind::OldFirmware, None) => device.age_firmware(),
            (FaultKind::NoCrosstalk, None) => device.rule_out_crosstalk(),
            (FaultKind::NoNegotiation, None) => device.hold_negotiation(),
            (FaultKind::FirmwareDead, None) => device.kill_firmware(),
            (FaultKind::DamagedEeprom, None) => device.damage_eeprom(),
            (FaultKind::DeadRegister, None) => device.faults.kill_register(fault.value),
            (FaultKind::LostInterrupts, None) => device.lose_interrupts(),
            (_, None) => device.mend(),
        }
        Ok(Answer::Done(Done {}))
    }
}
