// SPDX-License-Identifier: GPL-2.0
//! Interrupt causes, masks, moderation, and the messages that come of them.
//!
//! Either thread may find that a message is due. The one that clears the mask bit (or, where
//! nothing is masked on delivery, the one that sets the `asserted` bit) sends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use arbitrary_int::traits::Integer;
use arbitrary_int::u14;
use arc_swap::ArcSwapOption;

use crate::function::Notifier;
use crate::regs::bits::{Causes, Eitr, Gpie, Ivar, IvarMisc, Register};
use crate::regs::file::RegisterFile;

/// Number of MSI-X vectors.
pub const VECTORS: usize = 64;

/// Causes in EICR that stand for queues; the rest are about other things.
const QUEUE_CAUSES: u32 = Causes::ZERO.with_rtxq(u16::MAX).raw_value();
/// Link status change.
pub const CAUSE_LSC: u32 = Causes::ZERO.with_lsc(true).raw_value();
/// The light in the module comes or goes.
pub const CAUSE_LIGHT: u32 = Causes::ZERO.with_gpi_sdp1(true).raw_value();
/// A module was put into the cage.
pub const CAUSE_MODULE: u32 = Causes::ZERO.with_gpi_sdp2(true).raw_value();
/// Uncorrectable error in a memory of the card.
pub const CAUSE_ECC: u32 = Causes::ZERO.with_ecc(true).raw_value();
/// The table of the flow director is nearly full.
pub const CAUSE_TABLE_FULL: u32 = Causes::ZERO.with_flow_dir(true).raw_value();
/// Causes that a read of EICR clears under GPIE.OCD.
const OTHER_CAUSES: u32 = Causes::ZERO.with_other(u14::MAX).raw_value();

/// Unit of the interval field at 10 Gb/s.
const EITR_UNIT_NS: u64 = 2000;

/// Direction of a queue, for IVAR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Receive.
    Rx = 0,
    /// Transmit.
    Tx = 1,
}

/// A bit for each cause: of the vectors of queues, and of others as EICR has them.
#[derive(Debug, Default)]
struct Bits {
    queues: AtomicU64,
    other: AtomicU32,
}

impl Bits {
    fn queues(&self) -> u64 {
        self.queues.load(Ordering::Acquire)
    }

    fn other(&self) -> u32 {
        self.other.load(Ordering::Acquire)
    }

    /// As in EICR, where the first 16 vectors have a bit.
    fn word(&self) -> u32 {
        self.queues() as u32 & QUEUE_CAUSES | self.other()
    }

    /// Sets bits as in EICR.
    fn set(&self, word: u32) {
        self.set_queues(u64::from(word & QUEUE_CAUSES));
        self.other.fetch_or(word & !QUEUE_CAUSES, Ordering::AcqRel);
    }

    fn set_queues(&self, queues: u64) {
        self.queues.fetch_or(queues, Ordering::AcqRel);
    }

    /// Clears bits as in EICR.
    fn clear(&self, word: u32) {
        self.clear_queues(u64::from(word & QUEUE_CAUSES));
        self.other
            .fetch_and(!(word & !QUEUE_CAUSES), Ordering::AcqRel);
    }

    fn clear_queues(&self, queues: u64) {
        self.queues.fetch_and(!queues, Ordering::AcqRel);
    }
}

/// The vectors in a register that has 32 of them.
fn half(half: u32, value: u32) -> u64 {
    u64::from(value) << (32 * half)
}

/// Interrupt state of one function.
pub struct Interrupts {
    cause: Bits,
    mask: Bits,
    asserted: Bits,
    auto_mask: Bits,
    auto_clear: AtomicU32,
    gpie: AtomicU32,
    sent_at: [AtomicU64; VECTORS],
    vectors: [ArcSwapOption<Arc<dyn Notifier>>; VECTORS],
    sent: AtomicU64,
    /// Causes that return when they are cleared, until a reset.
    lasting: AtomicU32,
    /// Messages get lost on their way.
    lossy: AtomicBool,
}

impl Default for Interrupts {
    fn default() -> Self {
        Self {
            cause: Bits::default(),
            mask: Bits::default(),
            asserted: Bits::default(),
            auto_mask: Bits::default(),
            auto_clear: AtomicU32::new(0),
            gpie: AtomicU32::new(0),
            sent_at: [const { AtomicU64::new(0) }; VECTORS],
            vectors: std::array::from_fn(|_| ArcSwapOption::empty()),
            sent: AtomicU64::new(0),
            lasting: AtomicU32::new(0),
            lossy: AtomicBool::new(false),
        }
    }
}

impl Interrupts {
    /// Connects or disconnects a vector.
    pub fn set_vector(&self, vector: u32, notifier: Option<Arc<dyn Notifier>>) {
        if let Some(slot) = self.vectors.get(vector as usize) {
            slot.store(notifier.map(Arc::new));
        }
    }

    /// Lets messages get lost on their way.
    pub fn lose(&self) {
        self.lossy.store(true, Ordering::Release);
    }

    /// Ends what [`Self::lose`] and [`Self::raise_until_reset`] have begun.
    pub fn mend(&self) {
        self.lossy.store(false, Ordering::Release);
        self.lasting.store(0, Ordering::Release);
    }

    /// Back to the state after reset; vectors stay connected.
    pub fn reset(&self) {
        for bits in [&self.cause, &self.mask, &self.asserted, &self.auto_mask] {
            bits.clear(u32::MAX);
            bits.clear_queues(u64::MAX);
        }
        self.lasting.store(0, Ordering::Release);
        self.auto_clear.store(0, Ordering::Release);
        self.gpie.store(0, Ordering::Release);
        for time in &self.sent_at {
            time.store(0, Ordering::Release);
        }
    }

    /// Takes the number of messages sent since the last call.
    pub fn take_sent(&self) -> u64 {
        self.sent.swap(0, Ordering::Relaxed)
    }

    /// A queue has a cause.
    pub fn raise_queue(&self, regs: &RegisterFile, queue: u32, direction: Direction) {
        let ivar = regs.nth::<Ivar>(queue / 2);
        let entry = ivar.entry((2 * (queue & 1)) as usize + direction as usize);
        if entry.int_alloc_val() {
            self.cause.set_queues(1 << entry.int_alloc().value());
        }
    }

    /// A source other than a queue has a cause.
    pub fn raise_other(&self, cause: u32) {
        self.cause.set(cause & !QUEUE_CAUSES);
    }

    /// As [`Self::raise_other`], and again when it is cleared, until a reset.
    pub fn raise_until_reset(&self, cause: u32) {
        self.lasting.fetch_or(cause, Ordering::AcqRel);
        self.raise_other(cause);
    }

    /// Sends due interrupts; returns the time of those that moderation delays.
    pub fn deliver(&self, regs: &RegisterFile, now: u64) -> Option<u64> {
        let mut next: Option<u64> = None;
        let mut due = self.cause.queues() & self.mask.queues() & !self.asserted.queues();
        while due != 0 {
            let vector = due.trailing_zeros();
            due &= due - 1;
            match self.held_until(regs, vector, now) {
                Some(time) => next = Some(next.map_or(time, |next| next.min(time))),
                None => self.send_queue(vector, now),
            }
        }
        let due = self.cause.other() & self.mask.other() & !self.asserted.other();
        if due != 0 {
            let entry = regs.get::<IvarMisc>().entry(1);
            if entry.int_alloc_val() {
                let vector = u32::from(entry.int_alloc().value());
                match self.held_until(regs, vector, now) {
                    Some(time) => next = Some(next.map_or(time, |next| next.min(time))),
                    None => self.send_other(due, vector, now),
                }
            }
        }
        next
    }

    /// End of the interval in which `vector` must keep quiet, if it is in one.
    fn held_until(&self, regs: &RegisterFile, vector: u32, now: u64) -> Option<u64> {
        let eitr = regs.nth::<Eitr>(vector);
        let interval = u64::from(eitr.itr_interval().value()) * EITR_UNIT_NS;
        let sent = self.sent_at.get(vector as usize)?.load(Ordering::Acquire);
        let end = sent.saturating_add(interval);
        (sent != 0 && now < end).then_some(end)
    }

    /// End of the interval in which the interrupt of a receive queue must keep quiet.
    pub(crate) fn receive_held_until(
        &self,
        regs: &RegisterFile,
        queue: u32,
        now: u64,
    ) -> Option<u64> {
        let ivar = regs.nth::<Ivar>(queue / 2);
        let entry = ivar.entry((2 * (queue & 1)) as usize + Direction::Rx as usize);
        if entry.int_alloc_val() {
            self.held_until(regs, entry.int_alloc().value().into(), now)
        } else {
            None
        }
    }

    fn send_queue(&self, vector: u32, now: u64) {
        let bit = 1_u64 << vector;
        let masks = self.gpie().eiame() && self.auto_mask.queues() & bit != 0;
        let mine = if masks {
            self.mask.queues.fetch_and(!bit, Ordering::AcqRel) & bit != 0
        } else {
            self.asserted.queues.fetch_or(bit, Ordering::AcqRel) & bit == 0
        };
        if !mine {
            return;
        }
        // Vectors past those of EIAC always clear their cause.
        let clears = vector >= 16 || self.auto_clear.load(Ordering::Acquire) & 1 << vector != 0;
        if clears {
            self.cause.clear_queues(bit);
            self.asserted.clear_queues(bit);
        }
        self.send(vector, now);
    }

    fn send_other(&self, due: u32, vector: u32, now: u64) {
        let masks = if self.gpie().eiame() {
            self.auto_mask.other() & due
        } else {
            0
        };
        let mut mine = self.asserted.other.fetch_or(due, Ordering::AcqRel) & due != due;
        if masks != 0 {
            mine = self.mask.other.fetch_and(!masks, Ordering::AcqRel) & masks != 0;
        }
        if !mine {
            return;
        }
        let clears = self.auto_clear.load(Ordering::Acquire) & due;
        self.clear_causes(clears);
        self.send(vector, now);
    }

    fn send(&self, vector: u32, now: u64) {
        let Some(slot) = self.vectors.get(vector as usize) else {
            return;
        };
        self.sent_at[vector as usize].store(now.max(1), Ordering::Release);
        if self.lossy.load(Ordering::Acquire) {
            return;
        }
        if let Some(notifier) = slot.load().as_ref() {
            self.sent.fetch_add(1, Ordering::Relaxed);
            notifier.signal();
        }
    }

    fn gpie(&self) -> Gpie {
        Gpie::from_raw(self.gpie.load(Ordering::Acquire))
    }

    fn clear_causes(&self, causes: u32) {
        self.cause.clear(causes);
        self.asserted.clear(causes);
        self.raise_other(self.lasting.load(Ordering::Acquire));
    }

    /// EICR or EICS without the side effect of a read.
    pub fn causes(&self) -> u32 {
        self.cause.word()
    }

    /// A read of EICR, which clears.
    pub fn read_eicr(&self) -> u32 {
        let causes = self.causes();
        let keep = if self.gpie().ocd() {
            // "Other clear disable": only bits 16 to 29 go.
            !OTHER_CAUSES
        } else {
            0
        };
        self.clear_causes(causes & !keep);
        causes
    }

    /// A write of EICR: ones clear.
    pub fn write_eicr(&self, value: u32) {
        self.clear_causes(value);
    }

    /// A write of EICS: ones set.
    pub fn write_eics(&self, value: u32) {
        self.cause.set(value);
    }

    /// A write of EICS_EX: ones set.
    pub fn write_eics_ex(&self, i: u32, value: u32) {
        self.cause.set_queues(half(i, value));
    }

    /// EIMS.
    pub fn mask(&self) -> u32 {
        self.mask.word()
    }

    /// EIMS_EX.
    pub fn mask_ex(&self, half: u32) -> u32 {
        (self.mask.queues() >> (32 * half)) as u32
    }

    /// A write of EIMS: ones enable, and pending causes are raised again.
    pub fn write_eims(&self, value: u32) {
        self.asserted.clear(value);
        self.mask.set(value);
    }

    /// A write of EIMS_EX: ones enable.
    pub fn write_eims_ex(&self, i: u32, value: u32) {
        self.asserted.clear_queues(half(i, value));
        self.mask.set_queues(half(i, value));
    }

    /// A write of EIMC: ones disable.
    pub fn write_eimc(&self, value: u32) {
        self.mask.clear(value);
    }

    /// A write of EIMC_EX: ones disable.
    pub fn write_eimc_ex(&self, i: u32, value: u32) {
        self.mask.clear_queues(half(i, value));
    }

    /// A write of EIAC.
    pub fn write_eiac(&self, value: u32) {
        self.auto_clear.store(value, Ordering::Release);
    }

    /// A write of EIAM.
    pub fn write_eiam(&self, value: u32) {
        self.auto_mask.clear(!value);
        self.auto_mask.set(value);
    }

    /// A write of EIAM_EX.
    pub fn write_eiam_ex(&self, i: u32, value: u32) {
        self.auto_mask.clear_queues(half(i, !value));
        self.auto_mask.set_queues(half(i, value));
    }

    /// A write of GPIE.
    pub fn write_gpie(&self, value: u32) {
        self.gpie.store(value, Ordering::Release);
    }
}
