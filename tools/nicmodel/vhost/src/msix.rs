// SPDX-License-Identifier: GPL-2.0
//! The MSI-X table, and the delivery of the function's interrupts.
//!
//! A hypervisor that speaks vfio-user keeps this table itself. Here the guest writes straight to
//! it, and the data of an entry are the message that goes out.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use nicmodel_device::function::{Notifier, PciFunction};

const CAPABILITY_POINTER: u64 = 0x34;
const CAPABILITY_ID: u8 = 0x11;
/// There are no more in 192 bytes.
const MAX_CAPABILITIES: usize = 48;
const ENTRY: u64 = 16;
const ENABLE: u16 = 1 << 15;
const MASK_ALL: u16 = 1 << 14;
const ENTRY_MASKED: u32 = 1;

/// The path of messages to the guest.
pub(crate) trait Messages: Send + Sync {
    /// Sends a message; false when the guest has no buffer for it now. The guest signals a new
    /// buffer.
    fn send(&self, address: u64, data: u32) -> bool;
}

/// Where the function says that its table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    capability: u64,
    table: (u8, u64),
    bits: (u8, u64),
}

impl Place {
    fn find(function: &dyn PciFunction) -> Option<Self> {
        let byte = |at: u64| {
            let mut data = [0];
            function.config_read(at, &mut data);
            data[0]
        };
        let word = |at: u64| {
            let mut data = [0; 4];
            function.config_read(at, &mut data);
            u32::from_le_bytes(data)
        };
        let in_bar = |word: u32| ((word & 7) as u8, u64::from(word & !7));
        let mut at = byte(CAPABILITY_POINTER);
        for _ in 0..MAX_CAPABILITIES {
            let here = u64::from(at & !3);
            if here == 0 {
                return None;
            }
            if byte(here) == CAPABILITY_ID {
                return Some(Self {
                    capability: here,
                    table: in_bar(word(here + 4)),
                    bits: in_bar(word(here + 8)),
                });
            }
            at = byte(here + 1);
        }
        None
    }
}

#[derive(Debug)]
struct Entry {
    /// Address low and high, data, control.
    words: [AtomicU32; 4],
    pending: AtomicBool,
}

impl Entry {
    fn new() -> Self {
        let zero = || AtomicU32::new(0);
        Self {
            words: [zero(), zero(), zero(), AtomicU32::new(ENTRY_MASKED)],
            pending: AtomicBool::new(false),
        }
    }

    fn word(&self, i: usize) -> u32 {
        self.words[i].load(Ordering::SeqCst)
    }

    fn clear(&self) {
        for word in &self.words[..3] {
            word.store(0, Ordering::SeqCst);
        }
        self.words[3].store(ENTRY_MASKED, Ordering::SeqCst);
        self.pending.store(false, Ordering::SeqCst);
    }
}

/// The MSI-X capability of one function.
pub struct Msix {
    function: Arc<dyn PciFunction>,
    messages: Arc<dyn Messages>,
    place: Option<Place>,
    entries: Vec<Entry>,
    /// A message waits for a buffer of the guest.
    stalled: AtomicBool,
    /// The number of times that the guest has signalled buffers.
    told: AtomicU64,
}

/// One vector, as the function sees it.
struct Vector {
    msix: Arc<Msix>,
    number: usize,
}

impl Notifier for Vector {
    fn signal(&self) {
        self.msix.signal(self.number);
    }
}

impl Msix {
    /// The table of a function.
    pub(crate) fn new(function: Arc<dyn PciFunction>, messages: Arc<dyn Messages>) -> Self {
        Self {
            place: Place::find(&*function),
            entries: (0..function.vectors()).map(|_| Entry::new()).collect(),
            function,
            messages,
            stalled: AtomicBool::new(false),
            told: AtomicU64::new(0),
        }
    }

    /// Connects every vector of the function to the table.
    pub(crate) fn connect(self: &Arc<Self>) {
        for number in 0..self.entries.len() {
            let msix = Arc::clone(self);
            self.function
                .set_vector(number as u32, Some(Arc::new(Vector { msix, number })));
        }
    }

    /// As after power on.
    pub(crate) fn clear(&self) {
        for entry in &self.entries {
            entry.clear();
        }
        self.stalled.store(false, Ordering::SeqCst);
    }

    fn control(&self) -> u16 {
        let mut data = [0; 2];
        if let Some(place) = &self.place {
            self.function.config_read(place.capability + 2, &mut data);
        }
        u16::from_le_bytes(data)
    }

    fn signal(&self, number: usize) {
        // While MSI-X is off an interrupt would be a level on a pin that does not exist.
        if self.control() & ENABLE != 0
            && let Some(entry) = self.entries.get(number)
        {
            entry.pending.store(true, Ordering::SeqCst);
            self.deliver(entry);
        }
    }

    fn is_open(&self, entry: &Entry) -> bool {
        let control = self.control();
        control & ENABLE != 0 && control & MASK_ALL == 0 && entry.word(3) & ENTRY_MASKED == 0
    }

    /// Sends a pending interrupt, unless it is masked. The thread that takes the bit sends the
    /// message, so that a concurrent unmask loses none.
    fn deliver(&self, entry: &Entry) {
        while self.is_open(entry) {
            let told = self.told.load(Ordering::SeqCst);
            if !entry.pending.swap(false, Ordering::SeqCst) {
                return;
            }
            let address = u64::from(entry.word(1)) << 32 | u64::from(entry.word(0));
            if self.messages.send(address, entry.word(2)) {
                return;
            }
            entry.pending.store(true, Ordering::SeqCst);
            self.stalled.store(true, Ordering::SeqCst);
            // A thread that is notified from now on sees both stores. One that was notified before
            // has left the message to this thread, and the guest does not notify twice.
            if self.told.load(Ordering::SeqCst) == told {
                return;
            }
        }
    }

    fn deliver_all(&self) {
        for entry in &self.entries {
            if entry.pending.load(Ordering::SeqCst) {
                self.deliver(entry);
            }
        }
    }

    /// The guest may have a buffer again.
    pub(crate) fn retry(&self) {
        self.told.fetch_add(1, Ordering::SeqCst);
        if self.stalled.swap(false, Ordering::SeqCst) {
            self.deliver_all();
        }
    }

    /// To be called after a write to configuration space.
    pub(crate) fn config_written(&self, offset: u64, length: usize) {
        if let Some(place) = &self.place
            && overlaps(offset, length, place.capability..place.capability + 4)
        {
            self.deliver_all();
        }
    }

    /// Reads from the table or the pending bits; false when neither is there.
    pub(crate) fn read(&self, bar: u8, offset: u64, data: &mut [u8]) -> bool {
        let Some(place) = self.holds(bar, offset) else {
            return false;
        };
        for (i, byte) in data.iter_mut().enumerate() {
            let at = offset.saturating_add(i as u64);
            *byte = self.byte(place, bar, at);
        }
        true
    }

    fn byte(&self, place: &Place, bar: u8, at: u64) -> u8 {
        if place.table.0 == bar
            && let Some(inside) = at.checked_sub(place.table.1)
            && let Some(entry) = self.entry(inside)
        {
            let word = entry.word((inside % ENTRY / 4) as usize);
            return word.to_le_bytes()[(inside % 4) as usize];
        }
        if place.bits.0 == bar
            && let Some(inside) = at.checked_sub(place.bits.1)
        {
            let pending = |bit: u64| {
                usize::try_from(inside * 8 + bit)
                    .ok()
                    .and_then(|number| self.entries.get(number))
                    .is_some_and(|entry| entry.pending.load(Ordering::SeqCst))
            };
            if inside < self.entries.len() as u64 {
                return (0..8).fold(0, |byte, bit| byte | u8::from(pending(bit)) << bit);
            }
        }
        0
    }

    /// Writes to the table, which takes aligned words only; false when it is not there.
    pub(crate) fn write(&self, bar: u8, offset: u64, data: &[u8]) -> bool {
        let Some(place) = self.holds(bar, offset) else {
            return false;
        };
        if place.table.0 != bar || !offset.is_multiple_of(4) {
            return true;
        }
        for (i, word) in data.chunks_exact(4).enumerate() {
            let Some(entry) = offset
                .checked_add(4 * i as u64)
                .and_then(|at| at.checked_sub(place.table.1))
                .and_then(|inside| Some((self.entry(inside)?, (inside % ENTRY / 4) as usize)))
            else {
                continue;
            };
            let (entry, column) = entry;
            let value = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            entry.words[column].store(value, Ordering::SeqCst);
            if column == 3 {
                self.deliver(entry);
            }
        }
        true
    }

    fn holds(&self, bar: u8, _offset: u64) -> Option<&Place> {
        self.place
            .as_ref()
            .filter(|place| place.table.0 == bar || place.bits.0 == bar)
    }

    fn entry(&self, inside: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(inside / ENTRY).ok()?)
    }
}

fn overlaps(offset: u64, length: usize, range: Range<u64>) -> bool {
    offset < range.end && offset.saturating_add(length as u64) > range.start
}

#[cfg(test)]
mod tests;
