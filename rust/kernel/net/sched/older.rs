// SPDX-License-Identifier: GPL-2.0

//! The dequeueing side of a discipline, while and after it is changed.
//!
//! A change replaces both sides of a discipline in use. The packets in the old dequeueing side come
//! first. For a grace period, senders that have not seen the new enqueueing side add more to the
//! old one: then packets arrive on both.

use super::{
    Drops,
    Qdisc, //
};
use crate::{
    alloc::Flags,
    net::skbuff::SkBuff,
    prelude::*, //
};
use core::mem::{
    self,
    MaybeUninit, //
};

/// The dequeueing side before a change.
pub(super) struct Older<T: Qdisc> {
    output: T::Output,
    /// Set when no more packets arrive here.
    settled: bool,
    /// The side that came after it, unless that is the current one.
    next: Option<KBox<Self>>,
}

impl<T: Qdisc> Older<T> {
    /// Returns memory for one.
    pub(super) fn memory(flags: Flags) -> Result<KBox<MaybeUninit<Self>>> {
        Ok(KBox::new_uninit(flags)?)
    }
}

/// The dequeueing side: the current one, and older ones that have packets left.
pub(super) struct Parts<T: Qdisc> {
    /// The oldest one.
    older: Option<KBox<Older<T>>>,
    current: T::Output,
}

impl<T: Qdisc> Parts<T> {
    pub(super) fn new(current: T::Output) -> Self {
        Self {
            older: None,
            current,
        }
    }

    /// Takes the packet that is to be transmitted next.
    #[inline(always)]
    pub(super) fn dequeue(&mut self) -> Option<SkBuff> {
        if self.older.is_some() {
            return self.dequeue_older();
        }
        T::dequeue(&mut self.current)
    }

    #[cold]
    fn dequeue_older(&mut self) -> Option<SkBuff> {
        self.on_oldest(T::dequeue)
    }

    /// Looks at the packet that is to be transmitted next.
    pub(super) fn peek(&mut self) -> Option<&SkBuff> {
        self.on_oldest(T::peek)
    }

    /// Calls `f` for the oldest side that has a packet, and drops those that are empty for good.
    fn on_oldest<'a, R>(&'a mut self, f: fn(&'a mut T::Output) -> Option<R>) -> Option<R> {
        // Look here first: a sender that has put a packet here may have put the one before into an
        // older side, where it is seen then.
        let current_has_one = self.older.is_none() || T::peek(&mut self.current).is_some();

        while let Some(oldest) = &mut self.older {
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
            self.older = oldest.next.take();
        }
        match &mut self.older {
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
        let mut older = &mut self.older;

        while let Some(one) = older {
            drop_all(&mut one.output);
            older = &mut one.next;
        }
        drop_all(&mut self.current);
    }

    /// Makes `output` the current side. The one before becomes an older one, in `memory`.
    pub(super) fn replace(&mut self, output: T::Output, memory: KBox<MaybeUninit<Older<T>>>) {
        let older = Older {
            output: mem::replace(&mut self.current, output),
            settled: false,
            next: None,
        };
        let mut last = &mut self.older;

        while let Some(one) = last {
            last = &mut one.next;
        }
        *last = Some(KBox::write(memory, older));
    }

    /// Notes that no more packets arrive on older sides.
    pub(super) fn settle(&mut self) {
        let mut older = &mut self.older;

        while let Some(one) = older {
            one.settled = true;
            older = &mut one.next;
        }
    }
}
