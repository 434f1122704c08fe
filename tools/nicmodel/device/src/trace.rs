// SPDX-License-Identifier: GPL-2.0
//! A trace of register accesses: how often each register was used, in each phase that a client of
//! the model has begun.
//!
//! It counts instead of keeping a list, so that it is complete however long a driver polls, and
//! never larger than the phases times the registers of BAR 0.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::regs::file::BYTES;

/// Most phases of a trace.
pub const PHASES: usize = 32;

/// All phases of a trace are taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a trace has {PHASES} phases at most")]
pub struct TooMany;

/// The use of a register within a phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Use {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
}

/// A phase, as its client has named it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// The registers that were used, by offset.
    pub registers: BTreeMap<u32, Use>,
}

/// The trace of a function.
#[derive(Debug, Default)]
pub struct Trace {
    on: AtomicBool,
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Log {
    phases: Vec<Phase>,
    current: usize,
}

impl Trace {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a phase, or goes on with the one of this name.
    pub fn begin(&self, name: &str) -> Result<(), TooMany> {
        let mut log = self.log();
        log.current = match log.phases.iter().position(|phase| phase.name == name) {
            Some(known) => known,
            None if log.phases.len() == PHASES => return Err(TooMany),
            None => {
                log.phases.push(Phase {
                    name: name.to_owned(),
                    ..Phase::default()
                });
                log.phases.len() - 1
            }
        };
        self.on.store(true, Ordering::Release);
        Ok(())
    }

    /// Accesses count no longer.
    pub fn end(&self) {
        self.on.store(false, Ordering::Release);
    }

    /// All phases so far, in the order in which they were begun.
    pub fn phases(&self) -> Vec<Phase> {
        self.log().phases.clone()
    }

    /// A read.
    #[inline]
    pub(crate) fn read(&self, at: u32) {
        if self.on.load(Ordering::Relaxed) {
            self.count(at, |one| one.reads += 1);
        }
    }

    /// A write.
    #[inline]
    pub(crate) fn write(&self, at: u32) {
        if self.on.load(Ordering::Relaxed) {
            self.count(at, |one| one.writes += 1);
        }
    }

    #[cold]
    fn count(&self, at: u32, change: impl FnOnce(&mut Use)) {
        // There are no registers, and the guest could fill the table with their places.
        if at as usize >= BYTES {
            return;
        }
        let mut log = self.log();
        let current = log.current;
        if let Some(phase) = log.phases.get_mut(current) {
            change(phase.registers.entry(at & !3).or_default());
        }
    }
}

#[cfg(test)]
mod tests;
