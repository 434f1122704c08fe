// SPDX-License-Identifier: GPL-2.0
//! The words behind BAR 0.
//!
//! They lie in one mapping, parts of which a transport may share with the guest, so every
//! access is atomic and nothing read here is trusted to stay as it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use vm_memory::{MmapRegion, VolatileMemory};

use super::bits::Register;

/// Size of BAR 0.
pub const BYTES: usize = 128 * 1024;
/// Number of registers in BAR 0.
pub const WORDS: usize = BYTES / 4;

/// Error of [`RegisterFile::new`].
#[derive(Debug, thiserror::Error)]
#[error("the register file needs {BYTES} bytes of memory")]
pub struct TooSmall;

/// The register words.
#[derive(Debug)]
pub struct RegisterFile(Arc<MmapRegion<()>>);

impl RegisterFile {
    /// Uses `memory` for the words.
    pub fn new(memory: MmapRegion<()>) -> Result<Self, TooSmall> {
        Self::from_shared(Arc::new(memory))
    }

    /// Uses memory that a transport keeps, too.
    pub fn from_shared(memory: Arc<MmapRegion<()>>) -> Result<Self, TooSmall> {
        if memory.size() < BYTES {
            return Err(TooSmall);
        }
        Ok(Self(memory))
    }

    /// Uses memory of its own.
    pub fn private() -> Result<Self, TooSmall> {
        MmapRegion::new(BYTES)
            .map_err(|_| TooSmall)
            .and_then(Self::new)
    }

    fn word(&self, offset: u32) -> Option<&AtomicU32> {
        let offset = offset as usize & !3;
        if offset >= BYTES {
            return None;
        }
        self.0.get_atomic_ref::<AtomicU32>(offset).ok()
    }

    /// Value of a register; past the end reads as ones, as a bus without a device does.
    pub fn load(&self, offset: u32) -> u32 {
        self.word(offset)
            .map_or(u32::MAX, |word| u32::from_le(word.load(Ordering::Acquire)))
    }

    /// Sets a register.
    pub fn store(&self, offset: u32, value: u32) {
        if let Some(word) = self.word(offset) {
            word.store(value.to_le(), Ordering::Release);
        }
    }

    /// A register with its fields; of an array, the first one.
    #[inline]
    pub fn get<R: Register>(&self) -> R {
        self.nth(0)
    }

    /// Register `index` of an array, with its fields.
    #[inline]
    pub fn nth<R: Register>(&self, index: u32) -> R {
        R::from_raw(self.load(R::offset(index)))
    }

    /// Sets a register; of an array, the first one.
    #[inline]
    pub fn set<R: Register>(&self, value: R) {
        self.store(R::offset(0), value.raw());
    }

    /// Reads a register and sets it, in one step.
    pub fn swap(&self, offset: u32, value: u32) -> u32 {
        self.word(offset).map_or(u32::MAX, |word| {
            u32::from_le(word.swap(value.to_le(), Ordering::AcqRel))
        })
    }

    /// Adds to a counter, which sticks at all ones.
    pub fn add(&self, offset: u32, value: u32) {
        if value != 0
            && let Some(word) = self.word(offset)
        {
            let add = |was: u32| Some(u32::from_le(was).saturating_add(value).to_le());
            // Never refused.
            let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        }
    }

    /// Two neighbouring registers as one value, the lower one first.
    pub fn pair(&self, low: u32, high: u32) -> u64 {
        u64::from(self.load(high)) << 32 | u64::from(self.load(low))
    }
}
