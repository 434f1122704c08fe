// SPDX-License-Identifier: GPL-2.0
//! Flow director: filters that choose the queue of a packet (7.1.2.7, 8.2.3.21).
//!
//! It has two modes. A perfect filter has fields, which are compared; the filters for IPv6 among
//! them, which the stock driver does not use, have no effect. A signature filter is nothing but two
//! hashes over the fields of its packets: one chooses a bucket, the other tells the filters of a
//! bucket apart. So no bucket has two filters that a packet matches, and their order is of no
//! account. Not modelled: the byte masks of IPv6, the limit of a bucket's length, and its report.

mod fields;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use self::fields::{Fields, Masks};
use crate::device::Device;
use crate::irq::CAUSE_TABLE_FULL;
use crate::packet::Parsed;
use crate::regs::bits::{Fdircmd, Fdirctrl, Fdirhash, Register};
use crate::regs::file::RegisterFile;
use crate::regs::offset;

/// Bits of the hash that choose the bucket of a perfect filter.
const BUCKETS: u16 = 0x1fff;
/// Bits of a signature.
const SIGNATURE: u16 = 0x7fff;

/// A perfect filter.
#[derive(Debug, Clone, Copy)]
struct Filter {
    hash: Fdirhash,
    fields: Fields,
    command: Fdircmd,
}

impl Filter {
    /// Whether a command for `hash` is about this filter.
    fn is(&self, hash: Fdirhash) -> bool {
        (self.hash.hash(), self.hash.soft_index()) == (hash.hash(), hash.soft_index())
    }
}

/// The place of a signature filter: its bucket, and the signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Signature {
    bucket: u16,
    signature: u16,
}

impl Signature {
    /// With 64 KiB for the table, 13 bits choose a bucket; with twice as much, there is one more.
    fn new(control: Fdirctrl, hash: u16, signature: u16) -> Self {
        Self {
            bucket: hash & ((1 << (12 + control.pballoc().value())) - 1),
            signature: signature & SIGNATURE,
        }
    }
}

/// The signature filters of a device. Each that a driver adds takes effect without a new
/// configuration of the receiver: it may add one for every few packets.
#[derive(Debug, Clone, Default)]
struct Signatures(Arc<RwLock<HashMap<Signature, Fdircmd>>>);

impl Signatures {
    fn find(&self, place: Signature) -> Option<Fdircmd> {
        let filters = self.0.read().unwrap_or_else(PoisonError::into_inner);
        filters.get(&place).copied()
    }

    fn change<T>(&self, change: impl FnOnce(&mut HashMap<Signature, Fdircmd>) -> T) -> T {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A filter that a packet matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Match {
    /// The queue; none to drop the packet.
    pub queue: Option<u32>,
    /// The word that a descriptor has in place of the hash, if it tells of the filter.
    pub report: Option<u32>,
}

/// The filters of one mode.
#[derive(Debug, Clone)]
enum Table {
    Perfect(Arc<Vec<Filter>>),
    Signatures { filters: Signatures, key: u32 },
}

/// The filters in use, and how packets are compared with them.
#[derive(Debug, Clone)]
pub(crate) struct Director {
    control: Fdirctrl,
    key: u32,
    masks: Masks,
    table: Table,
}

impl Director {
    /// Those of a device; none if it has no memory for them.
    pub(crate) fn load(device: &Device) -> Option<Self> {
        let control = device.regs.get::<Fdirctrl>();
        (room(control) != 0).then(|| Self {
            control,
            key: device.regs.load(offset::FDIRKEY),
            masks: Masks::load(&device.regs),
            table: if control.perfect_match() {
                Table::Perfect(Arc::clone(&device.filters.list()))
            } else {
                Table::Signatures {
                    filters: device.filters.signatures.clone(),
                    key: device.regs.load(offset::FDIRKEY + 4),
                }
            },
        })
    }

    /// The filter that a packet matches.
    pub(crate) fn find(&self, frame: &[u8], parsed: &Parsed) -> Option<Match> {
        let flex_at = 2 * usize::from(self.control.flex_offset().value());
        let fields = self.masks.apply(frame, parsed, flex_at)?;
        let hash = fields.hash(self.key);
        let (command, place) = match &self.table {
            Table::Perfect(filters) => {
                let bucket = hash & BUCKETS;
                let found = filters.iter().find(|filter| {
                    filter.hash.hash().value() & BUCKETS == bucket && filter.fields == fields
                })?;
                (found.command, found.hash.raw() & !(1 << 15))
            }
            Table::Signatures { filters, key } => {
                let place = Signature::new(self.control, hash, fields.hash(*key));
                let command = filters.find(place)?;
                let raw = u32::from(place.signature) << 16 | u32::from(place.bucket);
                (command, raw)
            }
        };
        let queue = u32::from(command.rx_queue().value());
        Some(Match {
            queue: (!command.drop() && command.queue_en()).then_some(queue),
            report: self.control.report_status().then_some(place),
        })
    }
}

/// The filters of a device.
#[derive(Debug, Default)]
pub struct Filters {
    perfect: Mutex<Arc<Vec<Filter>>>,
    signatures: Signatures,
}

impl Filters {
    fn list(&self) -> MutexGuard<'_, Arc<Vec<Filter>>> {
        self.perfect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there are no perfect ones.
    pub(crate) fn are_none(&self) -> bool {
        self.list().is_empty()
    }

    /// Removes all.
    pub(crate) fn clear(&self) {
        *self.list() = Arc::default();
        self.signatures.change(HashMap::clear);
    }
}

/// The number of filters for which FDIRCTRL has memory. A signature takes a quarter of it.
fn room(control: Fdirctrl) -> usize {
    match (control.pballoc().value(), control.perfect_match()) {
        (0, _) => 0,
        (size, true) => (1024 << size) - 2,
        (size, false) => (4096 << size) - 2,
    }
}

/// The effect of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Add,
    Remove,
    /// It fails, and counts as so much in FDIRFSTAT.
    Fail(u32),
    Nothing,
}

impl Step {
    /// Of a command about a filter that there is, or is not.
    fn of(command: Fdircmd, found: bool, has_room: bool) -> Self {
        match (command.command(), found) {
            (Fdircmd::ADD, true) if command.filter_update() => Self::Add,
            (Fdircmd::ADD, false) if has_room => Self::Add,
            (Fdircmd::ADD, _) => Self::Fail(1),
            (Fdircmd::REMOVE, true) => Self::Remove,
            (Fdircmd::REMOVE, false) => Self::Fail(1 << 8),
            _ => Self::Nothing,
        }
    }
}

/// The outcome of a command: whether its filter was there, and how many there are now.
struct Done {
    step: Step,
    found: bool,
    used: usize,
}

impl Filters {
    /// Carries a command out on perfect filters.
    fn run_perfect(&self, regs: &RegisterFile, command: Fdircmd, room: usize) -> Done {
        let hash = regs.get::<Fdirhash>();
        let mut list = self.list();
        let filters = Arc::make_mut(&mut list);
        let place = filters.iter().position(|filter| filter.is(hash));
        let step = Step::of(command, place.is_some(), filters.len() < room);
        let filter = Filter {
            hash,
            fields: Fields::of(regs, command),
            command,
        };
        match (step, place) {
            (Step::Add, Some(place)) => filters[place] = filter,
            (Step::Add, None) => filters.push(filter),
            (Step::Remove, Some(place)) => {
                filters.remove(place);
            }
            _ => {}
        }
        Done {
            step,
            found: place.is_some(),
            used: filters.len(),
        }
    }

    /// Carries a command out on signature filters.
    fn run_signature(&self, regs: &RegisterFile, command: Fdircmd, room: usize) -> Done {
        let hash = regs.get::<Fdirhash>();
        let (bucket, signature) = (hash.hash().value(), hash.soft_index().value());
        let place = Signature::new(regs.get::<Fdirctrl>(), bucket, signature);
        self.signatures.change(|filters| {
            let found = filters.contains_key(&place);
            let step = Step::of(command, found, filters.len() < room);
            match step {
                Step::Add => {
                    filters.insert(place, command);
                }
                Step::Remove => {
                    filters.remove(&place);
                }
                Step::Fail(_) | Step::Nothing => {}
            }
            Done {
                step,
                found,
                used: filters.len(),
            }
        })
    }
}

impl Device {
    /// A write of FDIRCTRL: the table is empty.
    pub(crate) fn write_fdirctrl(&self, value: u32) {
        let control = Fdirctrl::from_raw(value);
        self.filters.clear();
        self.regs.set(control.with_init_done(room(control) != 0));
        self.regs.store(offset::FDIRFREE, room(control) as u32);
        self.changed();
    }

    /// A write of FDIRCMD: the command is carried out at once.
    pub(crate) fn write_fdircmd(&self, value: u32) {
        let command = Fdircmd::from_raw(value);
        let control = self.regs.get::<Fdirctrl>();
        if command.clear_table() {
            self.filters.clear();
        }
        let valid = room(control) != 0 && self.run(command, control);
        self.regs
            .set(command.with_command(Fdircmd::NONE).with_filter_valid(valid));
        if control.perfect_match() {
            self.changed();
        }
    }

    /// Carries a command out. Returns whether there is the filter that it is about.
    fn run(&self, command: Fdircmd, control: Fdirctrl) -> bool {
        let (filters, room) = (&self.filters, room(control));
        let Done { step, found, used } = if control.perfect_match() {
            filters.run_perfect(&self.regs, command, room)
        } else {
            filters.run_signature(&self.regs, command, room)
        };
        // Each has two counts in one register: of additions and of removals.
        let (counter, count) = match step {
            Step::Add => (offset::FDIRUSTAT, 1),
            Step::Remove => (offset::FDIRUSTAT, 1 << 16),
            Step::Fail(count) => (offset::FDIRFSTAT, count),
            Step::Nothing => return found,
        };
        let free = room - used;
        self.regs.add(counter, count);
        self.regs.store(offset::FDIRFREE, free as u32);
        if step == Step::Add && free < 16 * usize::from(control.full_thresh().value()) {
            self.interrupt(|| self.irq.raise_other(CAUSE_TABLE_FULL));
        }
        found
    }
}
