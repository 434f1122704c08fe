// SPDX-License-Identifier: GPL-2.0
//! The judge: refuses what the data sheet forbids, and lets the card be as slow, undefined and
//! unhelpful as the data sheet allows.
//!
//! The model calls [`Judge`] at each register access, packet and change of the link. [`rules`] has
//! what is tested, [`queue`] and [`state`] the state that rules look at, [`chance`] the seeded
//! decisions. Breaches are collected by rule and queue in [`Breach`]es.

mod chance;
pub mod exceptions;
mod log;
mod queue;
pub mod rules;
mod state;
mod tables;
mod transmit;
mod witnesses;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use self::chance::Chance;
use self::exceptions::Driver;
use self::log::{Access as Logged, AccessLog};
use self::queue::{Change, Direction, ENABLE, Place, QUEUES, Queue, RingRegister, Stage};
use self::rules::{Moment, RULES, Rule, Test};
use self::state::{Facts, Port, enables};
use self::tables::Tables;
pub(crate) use self::transmit::Packet;
use crate::device::Device;
use crate::regs::bits::{Autoc, Ctrl, Eerd, Register, Rxctrl};
use crate::regs::file::RegisterFile;
use crate::regs::{Index, offset};

/// Reports of one rule that are printed; the others are only counted.
const PRINTED: u64 = 3;
/// Nanoseconds for which a driver may take no notice of a lost link, and check-ups, one of which the
/// reset itself makes. The C driver looks every two seconds, on a busy machine not so often.
const LINK_PATIENCE: u64 = 3_000_000_000;
const LINK_LOOKS: u32 = 4;
/// The second half of EIMS_EX.
const EIMS_EX_1: u32 = offset::EIMS_EX + 4;

/// The settings of a judge.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Number of the port, for reports.
    pub port: usize,
    /// From which all chance is drawn.
    pub seed: u64,
    /// The driver whose known breaches are excused.
    pub excused: Option<&'static Driver>,
    /// Rules of `ixgbe` alone hold, too.
    pub conventions: bool,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All breaches of one rule by one queue.
#[derive(Debug, Clone, Serialize)]
pub struct Breach {
    /// The rule.
    pub rule: &'static str,
    /// The place that demands it, and what shows that it does.
    pub source: String,
    /// The demand.
    pub about: &'static str,
    /// The queue, for rules about queues.
    pub queue: Option<String>,
    /// How often.
    pub count: u64,
    /// The driver is known for it.
    pub excused: bool,
    /// Details of the first one.
    pub detail: String,
    /// The register accesses before the first one.
    pub accesses: Vec<String>,
}

/// The judge of one port.
pub struct Judge {
    settings: Settings,
    paused: AtomicBool,
    /// Asked to look again: it does so from the next reset on.
    resumes: AtomicBool,
    state: Mutex<State>,
}

struct State {
    chance: Chance,
    log: AccessLog,
    port: Port,
    receive: Vec<Queue>,
    transmit: Vec<Queue>,
    tables: Tables,
    /// Since when there is no link.
    link_lost: Option<Lost>,
    breaches: BTreeMap<(&'static str, Option<String>), Breach>,
    /// Rules that were printed, and how often.
    printed: BTreeMap<&'static str, u64>,
}

/// A time without a link.
struct Lost {
    since: u64,
    /// Check-ups of the driver: reads of a counter that it makes in each.
    looks: u32,
}

impl State {
    fn queue(&mut self, place: Place) -> Option<&mut Queue> {
        let queues = match place.direction {
            Direction::Receive => &mut self.receive,
            Direction::Transmit => &mut self.transmit,
        };
        queues.get_mut(place.queue as usize)
    }
}

impl Judge {
    /// A judge of one port.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            paused: AtomicBool::new(false),
            resumes: AtomicBool::new(false),
            state: Mutex::new(State {
                chance: Chance::new(settings.seed.wrapping_add(settings.port as u64)),
                log: AccessLog::default(),
                port: Port::default(),
                receive: vec![Queue::default(); QUEUES],
                transmit: vec![Queue::default(); QUEUES],
                tables: Tables::default(),
                link_lost: None,
                breaches: BTreeMap::new(),
                printed: BTreeMap::new(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks away while a program does what no driver may, or looks again: from the next reset
    /// on, which makes the judge know the card again.
    pub fn pause(&self, paused: bool) {
        self.resumes.store(!paused, Ordering::Release);
        if paused {
            self.paused.store(true, Ordering::Release);
        }
    }

    /// Whether it looks away.
    pub fn is_paused(&self) -> bool {
        self.paused.load(Ordering::Acquire)
    }

    /// All breaches so far.
    pub fn breaches(&self) -> Vec<Breach> {
        self.state().breaches.values().cloned().collect()
    }

    /// Forgets all breaches.
    pub fn forget(&self) {
        self.state().breaches.clear();
    }

    /// Number of breaches: not excused, and excused.
    pub fn counts(&self) -> (u64, u64) {
        self.state()
            .breaches
            .values()
            .fold((0, 0), |(bad, excused), breach| {
                if breach.excused {
                    (bad, excused + breach.count)
                } else {
                    (bad + breach.count, excused)
                }
            })
    }

    /// A breach that the model has found.
    pub(crate) fn note(&self, rule: &'static str, queue: Option<String>, detail: String) {
        if !self.is_paused()
            && let Some(rule) = rules::find(rule)
        {
            self.record(&mut self.state(), rule, queue, detail);
        }
    }

    fn record(&self, state: &mut State, rule: &Rule, queue: Option<String>, detail: String) {
        if rule.is_convention() && !self.settings.conventions {
            return;
        }
        let State { breaches, log, .. } = state;
        let excused = self.settings.excused.is_some_and(|driver| {
            driver
                .exceptions
                .iter()
                .any(|exception| exception.rule == rule.id)
        });
        let breach = breaches
            .entry((rule.id, queue.clone()))
            .or_insert_with(|| Breach {
                rule: rule.id,
                source: rule.sources(),
                about: rule.about,
                queue,
                count: 0,
                excused,
                detail,
                accesses: log.lines(),
            });
        breach.count += 1;
        let printed = state.printed.entry(rule.id).or_default();
        if breach.count == 1 && *printed < PRINTED && !excused {
            *printed += 1;
            eprintln!(
                "nicmodel: judge: port {}{}: {} ({}): {}: {}\n    {}",
                self.settings.port,
                breach
                    .queue
                    .as_ref()
                    .map(|queue| format!(", {queue}"))
                    .unwrap_or_default(),
                rule.id,
                rule.sources(),
                rule.about,
                breach.detail,
                breach.accesses.join("\n    "),
            );
        }
    }

    /// The card was reset: its registers have their defaults, and tables become undefined.
    pub(crate) fn was_reset(&self, regs: &RegisterFile, now: u64) {
        if self.is_paused() {
            if !self.resumes.load(Ordering::Acquire) {
                return;
            }
            self.paused.store(false, Ordering::Release);
        }
        let State {
            chance,
            port,
            receive,
            transmit,
            tables,
            ..
        } = &mut *self.state();
        port.reset(chance, now);
        receive.fill(Queue::default());
        transmit.fill(Queue::default());
        tables.poison(regs, chance);
    }

    /// Before a register write; returns the value that takes effect.
    pub(crate) fn write(&self, device: &Device, at: u32, value: u32) -> u32 {
        if self.is_paused() || device.faults.stuck() {
            return value;
        }
        let mut guard = self.state();
        let state = &mut *guard;
        state.log.push(Logged {
            at,
            value,
            write: true,
        });
        let place = Place::of(at);
        let moments = moments(device, state, at, value);
        self.examine(state, device, at, value, place, &moments);
        state.tables.write(at, value, &device.regs);
        let State { port, chance, .. } = state;
        match at {
            offset::CORECTL => device.note_set_up(),
            offset::ESDP => port.write_laser(value, &device.regs, device.clock.now()),
            _ => {}
        }
        port.write(at, value, &device.regs, chance);
        match place {
            Some(place) => Self::write_ring(state, place, value),
            None => value,
        }
    }

    fn write_ring(state: &mut State, place: Place, value: u32) -> u32 {
        let delay = state.chance.delay(6);
        state.port.active |= place.register == RingRegister::Control && enables(value);
        let Some(queue) = state.queue(place) else {
            return value;
        };
        if place.register != RingRegister::Control {
            queue.program(place.register);
            return value;
        }
        if queue.control(enables(value), || delay) {
            value | ENABLE
        } else {
            value & !ENABLE
        }
    }

    /// After a register read; returns the value that the driver gets.
    pub(crate) fn read(&self, device: &Device, at: u32, value: u32) -> u32 {
        if self.is_paused() || device.faults.stuck() {
            return value;
        }
        let mut guard = self.state();
        let state = &mut *guard;
        let now = device.clock.now();
        if at == offset::BPRC
            && let Some(lost) = &mut state.link_lost
        {
            lost.looks += 1;
        }
        let mut value = state.port.read(at, value, &device.regs, now);
        let mut change = Change::Same;
        let place = Place::of(at);
        if let Some(place) = place
            && place.register == RingRegister::Control
        {
            // Without a link, packets stay in the queue, and the queue does not end.
            let pending =
                device.regs.load(place.base() + 0x10) != device.regs.load(place.base() + 0x18);
            let blocked = place.direction == Direction::Transmit && pending && !device.transmits();
            change = state
                .queue(place)
                .map_or(Change::Same, |queue| queue.poll(blocked, now));
            value = match change {
                Change::Same => value,
                Change::Starts => value | ENABLE,
                Change::Stops => value & !ENABLE,
            };
        }
        if Index::get().lookup(at).is_none() {
            value = state.chance.word();
        }
        self.examine(state, device, at, value, place, &[Moment::Read]);
        state.log.push(Logged {
            at,
            value,
            write: false,
        });
        drop(guard);
        if change != Change::Same {
            device.queue_changes(at, value);
        }
        value
    }

    fn examine(
        &self,
        state: &mut State,
        device: &Device,
        at: u32,
        value: u32,
        place: Option<Place>,
        moments: &[Moment],
    ) {
        let queue = place.and_then(|place| state.queue(place).map(|queue| (place, *queue)));
        let facts = Facts {
            device,
            regs: &device.regs,
            at,
            value,
            entry: Index::get().lookup(at).map(|(entry, _)| entry),
            port: &state.port,
            queue,
            tables: &state.tables,
            master: device.is_bus_master(),
            gio_dis: device.regs.get::<Ctrl>().gio_dis(),
        };
        let broken: Vec<&Rule> = RULES
            .iter()
            .filter(|rule| match rule.test {
                Test::Access(moment, breach) => moments.contains(&moment) && breach(&facts),
                Test::Packet(_) | Test::Noted => false,
            })
            .collect();
        for rule in broken {
            let name = crate::regs::name(at);
            self.record(state, rule, place.map(label), format!("{name}, {value:#x}"));
        }
    }

    /// A packet is complete.
    pub(crate) fn packet(&self, number: u32, packet: &Packet<'_>) {
        if self.is_paused() {
            return;
        }
        for rule in RULES {
            if let Test::Packet(breach) = rule.test
                && breach(packet)
            {
                let detail = format!(
                    "{} bytes, {:#018x}, context {:?}",
                    packet.data.len(),
                    packet.first.raw_value(),
                    packet.context
                );
                let queue = Some(transmit_label(number));
                self.record(&mut self.state(), rule, queue, detail);
            }
        }
    }

    /// The link comes or goes.
    pub(crate) fn link_changes(&self, device: &Device, up: bool) {
        let now = device.clock.now();
        let mut guard = self.state();
        if !up {
            guard.link_lost.get_or_insert(Lost {
                since: now,
                looks: 0,
            });
            return;
        }
        let lost = guard.link_lost.take();
        drop(guard);
        if lost.is_none_or(|lost| {
            lost.looks < LINK_LOOKS || now.saturating_sub(lost.since) < LINK_PATIENCE
        }) {
            return;
        }
        for queue in 0..crate::port::QUEUES {
            if crate::tx::TxQueue::pending(device, queue) {
                let detail = "packets are still queued".to_owned();
                self.note(rules::LINK_LOSS, Some(transmit_label(queue)), detail);
            }
        }
    }

    /// A word that nobody should rely on.
    pub(crate) fn garbage(&self) -> u64 {
        let State { chance, .. } = &mut *self.state();
        u64::from(chance.word()) << 32 | u64::from(chance.word())
    }
}

/// The moments that a write makes.
fn moments(device: &Device, state: &mut State, at: u32, value: u32) -> Vec<Moment> {
    let mut made = vec![Moment::Write];
    if let Some(place) = Place::of(at) {
        let stage = state.queue(place).map_or(Stage::Reset, |queue| queue.stage);
        match place.register {
            RingRegister::Tail => made.push(Moment::TailWrite),
            RingRegister::Control => {
                if enables(value) && !matches!(stage, Stage::Enabling | Stage::Enabled) {
                    made.push(Moment::QueueEnable);
                }
            }
            _ => made.push(Moment::RingWrite),
        }
        return made;
    }
    let is = match at {
        offset::CTRL => {
            let ctrl = Ctrl::from_raw(value);
            (ctrl.rst() || ctrl.lnk_rst()).then_some(Moment::Reset)
        }
        offset::RXCTRL => {
            let was = device.regs.get::<Rxctrl>().rxen();
            (!was && Rxctrl::from_raw(value).rxen()).then_some(Moment::ReceiveEnable)
        }
        offset::AUTOC => Autoc::from_raw(value)
            .restart_an()
            .then_some(Moment::LinkRestart),
        offset::EERD => Eerd::from_raw(value).start().then_some(Moment::EepromRead),
        offset::GSSR => Some(Moment::SharedSemaphore),
        offset::EIMS | offset::EIMS_EX | EIMS_EX_1 => {
            (value != 0).then_some(Moment::InterruptEnable)
        }
        _ => None,
    };
    made.extend(is);
    made
}

/// The name of a transmit queue in reports.
pub(crate) fn transmit_label(queue: u32) -> String {
    format!("transmit queue {queue}")
}

/// The name of a receive queue in reports.
pub(crate) fn receive_label(queue: u32) -> String {
    format!("receive queue {queue}")
}

fn label(place: Place) -> String {
    match place.direction {
        Direction::Receive => receive_label(place.queue),
        Direction::Transmit => transmit_label(place.queue),
    }
}
