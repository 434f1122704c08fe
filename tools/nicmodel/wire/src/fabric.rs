// SPDX-License-Identifier: GPL-2.0
//! Carries frames between ports and wires. One thread owns the fabric and turns it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use nicmodel_device::clock::Clock;
use nicmodel_device::device::Device;
use nicmodel_device::port::{Arrival, Datapath, MAX_SEND};
use serde_json::{Value, json};

use crate::answer::Report;
use crate::end::End;
use crate::files::Files;
use crate::run::Run;
use crate::spec::{Generate, Plug};
use crate::wires::Wire;

/// Frames taken from a tap device or a pcap file in one turn.
const INPUT_BATCH: usize = 16;
/// Bytes that a port may send in one turn. A guest that waits for the answer to a message, waits
/// for the end of the turn, so this is some microseconds' worth.
///
/// Frames that wait in its packet buffer reach its rings no faster. A wire is as fast in both
/// directions: frames that a router has received are sent as fast as others arrive.
const TURN: usize = 4 * 1024;
/// Room that a port at the other end of a cable must have for the sender to go on: all that
/// one turn can send.
const CABLE_ROOM: usize = TURN + MAX_SEND;
/// How long a cable holds the sender back for a receiver that does not move.
const CABLE_PATIENCE: u64 = 100_000_000;

/// Where the answer to a request goes.
pub type Reply<T> = Sender<Result<T, String>>;

/// Something for the thread that owns the fabric to do.
pub enum Request {
    /// Run a generator; the answer comes when it has drained.
    Generate(Generate, Reply<Report>),
    /// Plug something into a port.
    Plug(usize, Plug, Reply<()>),
    /// Put one frame into a port.
    Inject(usize, Vec<u8>, Reply<Value>),
    /// Describe the plug in a port.
    Describe(usize, Reply<Value>),
}

/// The result of a turn.
#[derive(Debug, Clone, Copy, Default)]
pub struct Activity {
    /// Frames moved; another turn may move more.
    pub busy: bool,
    /// When a turn is needed even without a doorbell or request.
    pub deadline: Option<u64>,
    /// Something outside may send without telling (a tap device).
    pub listening: bool,
}

impl Activity {
    fn by(&mut self, time: u64) {
        self.deadline = Some(self.deadline.map_or(time, |deadline| deadline.min(time)));
    }
}

struct Port {
    path: End,
    wire: Wire,
    inside: bool,
    /// Since when the cable has held the sender back.
    held: Option<u64>,
}

/// Ports, their plugs, and the running generators.
pub struct Fabric {
    ports: Vec<Port>,
    runs: Vec<(Run, Reply<Report>)>,
    requests: Receiver<Request>,
    clock: Arc<dyn Clock>,
    files: Files,
    next_run: u16,
    frame: Vec<u8>,
    outbox: Outbox,
}

/// Frames on their way to another port, one after the other in one buffer.
#[derive(Debug, Default)]
struct Outbox {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Outbox {
    fn push(&mut self, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
    }

    fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.ends.iter().scan(0, |start, end| {
            let frame = &self.bytes[*start..*end];
            *start = *end;
            Some(frame)
        })
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

impl Fabric {
    /// A fabric whose ports are modelled cards, each with a sink.
    pub fn new(
        devices: Vec<Arc<Device>>,
        clock: Arc<dyn Clock>,
        requests: Receiver<Request>,
    ) -> Self {
        let cards = devices
            .into_iter()
            .map(|device| End::Card(Box::new(Datapath::new(device))))
            .collect();
        Self::of(cards, clock, requests)
    }

    /// A fabric with any ports, each with a sink.
    pub fn of(ends: Vec<End>, clock: Arc<dyn Clock>, requests: Receiver<Request>) -> Self {
        Self {
            ports: ends
                .into_iter()
                .map(|path| Port {
                    path,
                    wire: Wire::default(),
                    inside: false,
                    held: None,
                })
                .collect(),
            runs: Vec::new(),
            requests,
            clock,
            files: Files::default(),
            next_run: 1,
            frame: Vec::new(),
            outbox: Outbox::default(),
        }
    }

    /// Allows requests to name these files.
    pub fn set_files(&mut self, files: Files) {
        self.files = files;
    }

    /// Moves all frames that can be moved now.
    pub fn turn(&mut self) -> Activity {
        let mut turn = Activity::default();
        let now = self.clock.now();
        for port in &mut self.ports {
            port.inside = port.path.begin_at(now);
        }
        while let Ok(request) = self.requests.try_recv() {
            turn.busy = true;
            self.answer(request, now);
        }
        for i in 0..self.ports.len() {
            turn.busy |= self.serve(i, now);
            turn.listening |=
                self.ports[i].path.is_silent() || matches!(self.ports[i].wire, Wire::Tap(_));
        }
        for i in 0..self.runs.len() {
            turn.busy |= self.generate(i, now);
        }
        for port in &mut self.ports {
            if port.inside {
                if let Some(time) = port.path.end() {
                    turn.by(time);
                }
                port.inside = false;
            }
            if port.held.is_some() || port.path.waiting() {
                turn.by(now + 1_000_000);
            }
        }
        self.settle_losses(now);
        self.finish_runs(&mut turn, now);
        if !turn.busy {
            for port in &mut self.ports {
                if let Wire::Pcap(pcap) = &mut port.wire {
                    pcap.settle();
                }
            }
        }
        turn
    }

    fn answer(&mut self, request: Request, now: u64) {
        let count = self.ports.len();
        // A client that has left misses no answer.
        match request {
            Request::Generate(spec, reply) => match spec.validate(count) {
                Ok(()) => {
                    let mac = self.ports[spec.from].path.mac();
                    let id = self.next_run;
                    self.next_run = self.next_run.wrapping_add(1).max(1);
                    self.runs.push((Run::new(spec, id, mac, now), reply));
                }
                Err(error) => drop(reply.send(Err(error))),
            },
            Request::Plug(port, plug, reply) => {
                let _ = reply.send(self.plug(port, &plug));
            }
            Request::Inject(port, frame, reply) => {
                let _ = reply.send(match self.ports.get_mut(port) {
                    Some(port) => match port.path.receive(0, &frame) {
                        Arrival::Taken => Ok(json!({ "taken": true })),
                        Arrival::Lost(loss) => {
                            Ok(json!({ "taken": false, "lost": format!("{loss:?}") }))
                        }
                    },
                    None => Err(no_port(port, count)),
                });
            }
            Request::Describe(port, reply) => {
                let _ = reply.send(match self.ports.get(port) {
                    Some(port) => Ok(describe(&port.wire)),
                    None => Err(no_port(port, count)),
                });
            }
        }
    }

    fn plug(&mut self, port: usize, plug: &Plug) -> Result<(), String> {
        let count = self.ports.len();
        if port >= count {
            return Err(no_port(port, count));
        }
        // A file or device that is plugged in anew must first be let go.
        self.unplug(port);
        let wire = Wire::new(plug, port, count, &self.files)?;
        if let Wire::Cable(peer) = wire {
            self.unplug(peer);
            self.ports[peer].wire = Wire::Cable(port);
        }
        self.ports[port].wire = wire;
        Ok(())
    }

    fn unplug(&mut self, port: usize) {
        if let Wire::Cable(peer) = self.ports[port].wire {
            self.ports[peer].wire = Wire::Sink;
        }
        if let Wire::Pcap(pcap) = &mut self.ports[port].wire {
            pcap.settle();
        }
        self.ports[port].wire = Wire::Sink;
        self.ports[port].held = None;
    }

    /// One port: frames that wait for it, leave it, and arrive by its wire.
    fn serve(&mut self, i: usize, now: u64) -> bool {
        if !self.ports[i].inside {
            return false;
        }
        let Port { path, wire, .. } = &mut self.ports[i];
        let mut busy = path.drain(match wire {
            // They came no faster than the other end sent them.
            Wire::Cable(_) => usize::MAX,
            _ => TURN,
        });
        if !self.held(i, now) {
            busy |= self.send(i, now);
        }
        busy | self.bring(i)
    }

    /// Whether the other end of a cable has no room. A wire takes its time, the model does
    /// not: without this a burst would find a buffer that a real one would not fill.
    fn held(&mut self, i: usize, now: u64) -> bool {
        let Wire::Cable(peer) = self.ports[i].wire else {
            return false;
        };
        if self.ports[peer].path.room(CABLE_ROOM) {
            self.ports[i].held = None;
            return false;
        }
        let since = *self.ports[i].held.get_or_insert(now);
        now.saturating_sub(since) < CABLE_PATIENCE
    }

    fn send(&mut self, i: usize, now: u64) -> bool {
        let Port { path, wire, .. } = &mut self.ports[i];
        let runs = &mut self.runs;
        let epoch = self.clock.epoch();
        let outbox = &mut self.outbox;
        let loopback = path.loopback();
        let busy = path.transmit(TURN, |frame, link| {
            if loopback {
                outbox.push(frame);
                return;
            }
            for (run, _) in runs.iter_mut().filter(|(run, _)| run.spec.to == i) {
                run.check(frame, link, now);
            }
            if !link {
                return;
            }
            match wire {
                Wire::Sink => {}
                Wire::Cable(_) => outbox.push(frame),
                Wire::Pcap(pcap) => pcap.record(epoch + now, frame),
                Wire::Tap(tap) => tap.send(frame),
            }
        });
        let peer = match *wire {
            Wire::Cable(peer) => Some(peer),
            _ => None,
        };
        for frame in self.outbox.frames() {
            if loopback {
                self.ports[i].path.receive_looped(frame);
            } else if let Some(peer) = peer {
                self.ports[peer].path.receive(0, frame);
            }
        }
        self.outbox.clear();
        busy
    }

    fn bring(&mut self, i: usize) -> bool {
        let Port { path, wire, .. } = &mut self.ports[i];
        let mut busy = false;
        for _ in 0..INPUT_BATCH {
            match wire {
                Wire::Sink | Wire::Cable(_) => break,
                Wire::Pcap(pcap) => {
                    let Some(frame) = pcap.peek() else { break };
                    if !path.room(frame.len()) {
                        break;
                    }
                    path.receive(0, frame);
                    pcap.advance();
                }
                Wire::Tap(tap) => {
                    let Some(frame) = tap.receive() else { break };
                    path.receive(0, frame);
                }
            }
            busy = true;
        }
        busy
    }

    fn generate(&mut self, i: usize, now: u64) -> bool {
        let (run, _) = &mut self.runs[i];
        let port = &mut self.ports[run.spec.from];
        let mut left = run.allowance(now);
        // With a window the generator waits for room; without one it overruns.
        let polite = run.spec.window != 0;
        let mut busy = false;
        while left != 0 {
            if polite && !port.path.room(run.spec.size) {
                run.held(now);
                break;
            }
            run.next(now, &mut self.frame);
            busy = true;
            left -= 1;
            if let Arrival::Lost(loss) = port.path.receive(u32::from(run.id), &self.frame)
                && !run.lose(loss, now)
            {
                break;
            }
        }
        busy
    }

    fn settle_losses(&mut self, now: u64) {
        for port in &mut self.ports {
            for (tag, loss) in port.path.take_flushed() {
                if let Some((run, _)) = self
                    .runs
                    .iter_mut()
                    .find(|(run, _)| u32::from(run.id) == tag)
                {
                    run.lose(loss, now);
                }
            }
        }
    }

    fn finish_runs(&mut self, turn: &mut Activity, now: u64) {
        self.runs.retain(|(run, reply)| {
            if run.finished(now) {
                let _ = reply.send(Ok(run.report(now)));
                return false;
            }
            turn.by(run.deadline(now));
            true
        });
    }
}

fn describe(wire: &Wire) -> Value {
    match wire {
        Wire::Sink => json!({ "kind": "sink" }),
        Wire::Cable(peer) => json!({ "kind": "cable", "peer": peer }),
        Wire::Pcap(pcap) => json!({ "kind": "pcap", "error": pcap.error() }),
        Wire::Tap(_) => json!({ "kind": "tap" }),
    }
}

fn no_port(port: usize, count: usize) -> String {
    format!("port: there is no port {port}, only 0 to {}", count - 1)
}
