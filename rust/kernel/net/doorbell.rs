// SPDX-License-Identifier: GPL-2.0

//! Doorbells that wait for the end of a poll.
//!
//! Telling a card of new descriptors takes an access to its registers, which costs as much as
//! forwarding a good part of a packet. The stack says when another packet follows at once, but a
//! router hands on packets one by one, although they have been received together. So while a poll
//! function runs, [`Scope`], the doorbells of queues that this CPU transmits to wait, and are rung
//! when it ends; several packets, one doorbell.
//!
//! No packet waits for something that may not happen:
//!
//! * What is transmitted outside of a poll function, or with interrupts disabled, as netpoll does
//!   it, is told at once. So nothing waits for longer than the poll function on the same CPU runs.
//! * A queue that has been stopped, by the driver or by byte queue limits, waits for completions,
//!   so the card is told at once.
//! * After [`LIMIT`] packets the card is told, so that it need not idle during a long poll.
//! * A queue that is taken from the stack is told before, under its lock.
//!
//! What a poll function waits for is only known on its CPU; whether a queue waits, is known under
//! the lock of the queue.

use super::napi::Poll;
use crate::{
    bindings,
    prelude::*,
    types::NotThreadSafe, //
};
use core::{
    cell::Cell,
    ptr, //
};

/// The most packets that wait for one doorbell.
const LIMIT: u32 = 32;

/// The most queues that wait for one poll function. Further ones do not wait.
const QUEUES: usize = 8;

/// Whether, and for whom, packets of a queue wait. Protected by the lock of the queue.
pub(super) struct Waiting {
    place: Place,
    packets: Cell<u32>,
    /// The CPU whose poll function rings. Meaningless if there are no packets.
    cpu: Cell<u32>,
}

/// Rings the doorbell of a queue if packets wait for it.
///
/// # Safety
///
/// The arguments must be those of a [`Place`], whose device must be there.
pub(super) type Ring = unsafe fn(*const c_void, u16);

/// Where to find a queue whose packets wait.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) device: *const c_void,
    pub(super) queue: u16,
    pub(super) ring: Ring,
}

impl Waiting {
    /// Nothing waits for the queue of this place.
    pub(super) fn new(place: Place) -> Self {
        Self {
            place,
            packets: Cell::new(0),
            cpu: Cell::new(0),
        }
    }

    /// Notes that the packets so far wait. Returns whether they may.
    #[inline]
    pub(super) fn wait(&self) -> bool {
        let packets = self.packets.get();

        // SAFETY: This has no requirements. Who transmits stays on its CPU.
        let cpu = unsafe { bindings::raw_smp_processor_id() };
        // CAST: CPUs have no negative numbers.
        let cpu = cpu as u32;

        // Zero becomes the greatest number.
        if packets.wrapping_sub(1) < LIMIT - 1 && self.cpu.get() == cpu {
            self.packets.set(packets + 1);
            return true;
        }
        self.begin(cpu)
    }

    /// Lets the first packet wait, unless others do, but not for this poll function any more.
    #[inline(never)]
    fn begin(&self, cpu: u32) -> bool {
        if self.end() || !enlist(&self.place) {
            return false;
        }
        self.cpu.set(cpu);
        self.packets.set(1);
        true
    }

    /// Whether packets have been waiting. They do not any more: the caller tells the card.
    #[inline]
    pub(super) fn end(&self) -> bool {
        self.packets.replace(0) != 0
    }
}

/// What waits for the poll function that runs on a CPU.
struct Poller {
    running: Cell<bool>,
    len: Cell<usize>,
    places: [Cell<Option<Place>>; QUEUES],
}

/// Contexts that poll or transmit run one after the other on a CPU, unless interrupts are disabled.
#[repr(transparent)]
struct PerCpu(Poller);

// SAFETY: Each CPU uses its own copy, and none uses this one.
unsafe impl Sync for PerCpu {}

#[cfg_attr(CONFIG_SMP, link_section = ".data..percpu")]
static POLLER: PerCpu = PerCpu(Poller {
    running: Cell::new(false),
    len: Cell::new(0),
    places: [const { Cell::new(None) }; QUEUES],
});

/// The copy of this CPU.
///
/// # Safety
///
/// The caller must stay on this CPU while it uses the result, and must be in a context in which
/// bottom halves are disabled and nobody else on the CPU can poll.
#[inline]
unsafe fn poller<'a>() -> &'a Poller {
    // SAFETY: This is a per-CPU variable. The caller stays on the CPU.
    unsafe { &*bindings::this_cpu_ptr((&raw const POLLER).cast_mut().cast()).cast::<Poller>() }
}

/// Whether doorbells of what is transmitted now may wait.
///
/// # Safety
///
/// To be called where packets are transmitted: with bottom halves disabled.
#[inline]
pub(super) unsafe fn may_wait() -> bool {
    // SAFETY: By the safety requirements. The flag is set only if nobody else on this CPU can poll
    // or transmit, with the exception of who has interrupts disabled.
    unsafe { poller().running.get() && !bindings::irqs_disabled() }
}

/// Puts a queue on the list of the poll function that runs on this CPU.
///
/// To be called after [`may_wait`] only, in the same context.
fn enlist(place: &Place) -> bool {
    // SAFETY: A poll function runs below us on this CPU.
    let poller = unsafe { poller() };
    let len = poller.len.get();
    let known = poller.places.iter().take(len).any(|known| {
        known
            .get()
            .is_some_and(|known| ptr::eq(known.device, place.device) && known.queue == place.queue)
    });

    if known {
        return true;
    }
    let Some(free) = poller.places.get(len) else {
        return false;
    };
    free.set(Some(*place));
    poller.len.set(len + 1);
    true
}

/// A poll function that runs: doorbells wait until this is dropped.
///
/// # Invariants
///
/// The `running` flag of this CPU belongs to `self`. Nobody else on it can poll.
pub(super) struct Scope(NotThreadSafe);

impl Scope {
    /// Begins to let doorbells wait, unless this is netpoll or another context in which somebody
    /// else on this CPU may transmit meanwhile.
    ///
    /// # Safety
    ///
    /// To be called by a poll function, which must drop the result before it returns.
    #[inline]
    pub(super) unsafe fn new(cx: &Poll<'_>) -> Option<Self> {
        cx.softirq()?;

        // SAFETY: We have a proof of the context.
        let poller = unsafe { poller() };
        if poller.running.replace(true) {
            return None;
        }
        // INVARIANT: The flag was not set.
        Some(Self(NotThreadSafe))
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants, we are in the context in which the scope was made.
        let poller = unsafe { poller() };

        poller.running.set(false);
        let len = poller.len.replace(0);
        for place in poller.places.iter().take(len) {
            if let Some(place) = place.take() {
                // SAFETY: The device was there when it was enlisted, under the lock of its queue.
                // It goes away after a grace period only, and a poll function is part of an RCU
                // read side critical section.
                unsafe { (place.ring)(place.device, place.queue) };
            }
        }
    }
}
