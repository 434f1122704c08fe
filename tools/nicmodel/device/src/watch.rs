// SPDX-License-Identifier: GPL-2.0
//! Register accesses that a client of the model waits for.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::regs::{Entry, Index};

/// The direction of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A read.
    Read,
    /// A write.
    Write,
}

#[derive(Debug)]
struct Watch {
    register: &'static Entry,
    access: Access,
    seen: AtomicU64,
}

/// The accesses of a function that are waited for.
#[derive(Debug, Default)]
pub struct Watches {
    on: AtomicBool,
    all: Mutex<Vec<Arc<Watch>>>,
}

/// Counts accesses of a register, of an array those of all its registers, until it is dropped.
#[derive(Debug)]
pub struct Watching<'a> {
    watches: &'a Watches,
    watch: Arc<Watch>,
}

impl Watches {
    fn all(&self) -> MutexGuard<'_, Vec<Arc<Watch>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts from now on.
    pub fn begin(&self, register: &'static Entry, access: Access) -> Watching<'_> {
        let watch = Arc::new(Watch {
            register,
            access,
            seen: AtomicU64::new(0),
        });
        let mut all = self.all();
        all.push(Arc::clone(&watch));
        self.on.store(true, Ordering::Release);
        Watching {
            watches: self,
            watch,
        }
    }

    /// The driver has accessed a register.
    #[inline]
    pub(crate) fn note(&self, at: u32, access: Access) {
        if self.on.load(Ordering::Relaxed) {
            self.count(at, access);
        }
    }

    #[cold]
    fn count(&self, at: u32, access: Access) {
        let Some((register, _)) = Index::get().lookup(at) else {
            return;
        };
        for watch in self.all().iter() {
            if watch.access == access && std::ptr::eq(watch.register, register) {
                watch.seen.fetch_add(1, Ordering::AcqRel);
            }
        }
    }
}

impl Watching<'_> {
    /// The accesses so far.
    pub fn seen(&self) -> u64 {
        self.watch.seen.load(Ordering::Acquire)
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        let mut all = self.watches.all();
        all.retain(|one| !Arc::ptr_eq(one, &self.watch));
        self.watches.on.store(!all.is_empty(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Kind;
    use crate::regs::{find, offset};
    use crate::testing::device;

    fn register(name: &str) -> &'static Entry {
        find(name).expect("a register")
    }

    #[test]
    fn accesses_are_counted_from_the_beginning_to_the_end() {
        let device = device();
        device.register_read(offset::STATUS);
        let reads = device.watches.begin(register("STATUS"), Access::Read);
        let writes = device.watches.begin(register("STATUS"), Access::Write);
        assert_eq!((reads.seen(), writes.seen()), (0, 0));
        device.register_read(offset::STATUS);
        device.register_read(offset::STATUS);
        device.register_read(offset::CTRL);
        device.register_write(offset::STATUS, 0);
        assert_eq!((reads.seen(), writes.seen()), (2, 1));
        drop(reads);
        assert!(device.watches.on.load(Ordering::Relaxed));
        drop(writes);
        assert!(!device.watches.on.load(Ordering::Relaxed));
    }

    #[test]
    fn of_an_array_all_registers_count() {
        let device = device();
        let writes = device.watches.begin(register("RETA"), Access::Write);
        for at in [offset::RETA, offset::RETA + 4, offset::RETA + 4 * 31] {
            device.register_write(at, 0);
        }
        device.register_write(offset::RETA + 4 * 32, 0);
        assert_eq!(writes.seen(), 3);
    }

    #[test]
    fn a_card_out_of_its_slot_is_still_asked() {
        let device = device();
        device.fault(Kind::Remove, 1, 0);
        let reads = device.watches.begin(register("STATUS"), Access::Read);
        device.register_read(offset::STATUS);
        assert_eq!(reads.seen(), 1);
    }
}
