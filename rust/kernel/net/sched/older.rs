// SPDX-License-Identifier: GPL-2.0

//! The dequeueing side of a discipline, while and after it is changed.
//!
//! A change replaces both sides of a discipline in use. The packets in the old dequeueing side come
//! first. For a grace period, senders that have not seen the new enqueueing side add more to the
//! old one: then packets arrive on both.
//!
//! After that, an old side only loses packets, and goes when it has none. If nothing takes packets
//! out, each change would leave another one behind. So there is a limit to them.

use super::{
    Drops,
    Qdisc,
    QueuedSkBuff, //
};
use crate::{
    alloc::Flags,
    prelude::*,
    sync::alf_queue::Chunk, //
};
use core::mem::{
    self,
    MaybeUninit, //
};

/// The most older sides of a discipline.
pub(super) const MOST_OLDER: usize = 4;

/// The dequeueing side before a change.
pub(super) struct Older<T: Qdisc> {
    output: T::Output,
    /// Set when no more packets arrive here.
    settled: bool,
}

impl<T: Qdisc> Older<T> {
    /// Returns memory for one.
    pub(super) fn memory(flags: Flags) -> Result<KBox<MaybeUninit<Self>>> {
        Ok(KBox::new_uninit(flags)?)
    }

    /// Whether there are no packets, and will be none.
    fn is_done(&mut self) -> bool {
        self.settled && T::peek(&mut self.output).is_none()
    }
}

/// The dequeueing side: the current one, and older ones that have packets left.
pub(super) struct Parts<T: Qdisc> {
    /// The oldest one first.
    older: Chunk<KBox<Older<T>>, MOST_OLDER>,
    current: T::Output,
}

impl<T: Qdisc> Parts<T> {
    pub(super) fn new(current: T::Output) -> Self {
        Self {
            older: Chunk::new(),
            current,
        }
    }

    /// Takes the packet that is to be transmitted next.
    #[inline(always)]
    pub(super) fn dequeue(&mut self) -> Option<QueuedSkBuff> {
        if !self.older.is_empty() {
            return self.dequeue_older();
        }
        T::dequeue(&mut self.current)
    }

    #[cold]
    fn dequeue_older(&mut self) -> Option<QueuedSkBuff> {
        self.on_oldest(T::dequeue)
    }

    /// Looks at the packet that is to be transmitted next.
    pub(super) fn peek(&mut self) -> Option<&QueuedSkBuff> {
        self.on_oldest(T::peek)
    }

    /// Calls `f` for the oldest side that has a packet, and drops those that are empty for good.
    fn on_oldest<'a, R>(&'a mut self, f: fn(&'a mut T::Output) -> Option<R>) -> Option<R> {
        // Look here first: a sender that has put a packet here may have put the one before into an
        // older side, where it is seen then.
        let current_has_one = self.older.is_empty() || T::peek(&mut self.current).is_some();

        while let Some(oldest) = self.older.as_mut_slice().first_mut() {
            if T::peek(&mut oldest.output).is_some() {
                break;
            }
            if !oldest.settled {
                return if current_has_one {
                    f(&mut self.current)
                } else {
                    None
                };
            }
            self.drop_done();
        }
        match self.older.as_mut_slice().first_mut() {
            Some(oldest) => f(&mut oldest.output),
            None if current_has_one => f(&mut self.current),
            None => None,
        }
    }

    /// Drops all packets.
    pub(super) fn reset(&mut self, drops: &mut Drops) {
        let mut drop_all = |output: &mut T::Output| {
            if T::HAS_RESET {
                T::reset(output, drops);
            } else {
                while let Some(skb) = T::dequeue(output) {
                    drops.push(skb);
                }
            }
        };

        for one in self.older.as_mut_slice() {
            drop_all(&mut one.output);
        }
        drop_all(&mut self.current);
        self.drop_done();
    }

    /// How many older sides there are.
    #[cfg(CONFIG_KUNIT = "y")]
    pub(super) fn older_sides(&self) -> usize {
        self.older.len()
    }

    /// Whether [`Self::replace`] has room for another older side.
    pub(super) fn has_room(&mut self) -> bool {
        self.drop_done();
        !self.older.is_full()
    }

    /// Makes `output` the current side. The one before becomes an older one, in `memory`.
    ///
    /// There must be room for it: otherwise, it is dropped, with its packets.
    pub(super) fn replace(&mut self, output: T::Output, memory: KBox<MaybeUninit<Older<T>>>) {
        let older = Older {
            output: mem::replace(&mut self.current, output),
            settled: false,
        };

        let _ = self.older.push(KBox::write(memory, older));
    }

    /// Notes that no more packets arrive on older sides, and drops those that have none.
    pub(super) fn settle(&mut self) {
        for one in self.older.as_mut_slice() {
            one.settled = true;
        }
        self.drop_done();
    }

    /// Drops the older sides that have no packets and get none.
    fn drop_done(&mut self) {
        for _ in 0..self.older.len() {
            // Each one moves to the end once, so the order stays.
            self.older.as_mut_slice().rotate_left(1);
            if let Some(mut one) = self.older.pop() {
                if !one.is_done() {
                    // There is room again.
                    let _ = self.older.push(one);
                }
            }
        }
    }
}
