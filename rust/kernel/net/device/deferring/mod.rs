// SPDX-License-Identifier: GPL-2.0

//! Doorbells that are deferred to the end of a poll.
//!
//! Ringing a doorbell, that is, telling the NIC of new descriptors, takes a write to its tail
//! register. That costs as much as a good part of forwarding a packet. The stack says when another
//! packet follows at once, but a router forwards packets one by one although they were received
//! together. So while a poll function runs, the doorbells of the queues that its CPU transmits to
//! are deferred, and rung when it returns: several packets, one doorbell. [`Deferral`] is that
//! time.
//!
//! A driver chooses this with [`Driver::Doorbell`], and implements [`Driver::kick`].
//!
//! No packet waits for an event that may not come:
//!
//! * The doorbell of a packet that is transmitted outside of a poll function, or with interrupts
//!   disabled, as by netpoll, is rung at once. So none is deferred for longer than the poll
//!   function on the same CPU runs.
//! * A queue that was stopped, by the driver or by byte queue limits, waits for completions, so its
//!   doorbell is rung at once, and an interrupt will tell of them. While a poll function transmits
//!   to it, the packets that follow fill its qdisc until then. So the NAPI instance that completes
//!   the packets of the queue is scheduled, too: it may find enough of those before.
//! * The doorbell is deferred for [`Deferring::MAX_PACKETS`] packets at most, and the next one
//!   rings it, so that the NIC need not idle during a long poll. At its start, when the NIC is
//!   likely to be idle, these are `FIRST_PACKETS`, and twice as many after each doorbell.
//! * When the producer of a queue is taken away, the doorbell is rung before, under the lock of the
//!   queue.
//!
//! The list of queues whose doorbells a poll function has to ring is private to its CPU. Whether
//! the doorbell of a queue is deferred is protected by the lock of the queue.
//!
//! Byte queue limits begin with a single packet, so a burst would stop the queue many times until
//! they have grown: see [`Info::tx_limit_min`](super::Info::tx_limit_min).
//!
//! No other module of [`device`](super) knows of this one. To take it out, delete the directory
//! and its `mod` line, and let the drivers that chose it choose [`Immediate`](super::Immediate),
//! without [`Driver::kick`].
//!
//! [`Driver::Doorbell`]: super::Driver::Doorbell
//! [`Driver::kick`]: super::Driver::kick

use super::doorbell::{
    Doorbell,
    QueueRef, //
};

use crate::{
    bindings,
    net::ablation,
    softirq::Softirq, //
};

use core::cell::Cell;

#[cfg(CONFIG_KUNIT)]
mod tests;

/// The most packets for which a doorbell is deferred at the start of a poll.
const FIRST_PACKETS: u32 = 1;

/// The most queues whose doorbells one poll function can ring. Further ones are not deferred.
const MAX_QUEUES: usize = 8;

/// The doorbell of a transmit queue, deferred until the poll function that transmits returns.
///
/// Protected by the lock of the queue.
///
/// # Invariants
///
/// If it is deferred, `queue` is on the list of `cpu`, whose poll function has not yet rung it.
/// There are `left` packets for which it may be deferred still, none if it is not deferred.
pub struct Deferring {
    queue: QueueRef,
    is_deferred: Cell<bool>,
    left: Cell<u32>,
    /// The most packets that it may be deferred for now.
    limit: Cell<u32>,
    /// The CPU whose poll function rings. Meaningless if it is not deferred.
    cpu: Cell<u32>,
}

impl Doorbell for Deferring {
    type Guard<'a> = Option<Deferral<'a>>;

    const NEEDS_KICK: bool = true;

    fn new(queue: QueueRef) -> Self {
        // INVARIANT: It is not deferred.
        Self {
            queue,
            is_deferred: Cell::new(false),
            left: Cell::new(0),
            limit: Cell::new(FIRST_PACKETS),
            cpu: Cell::new(0),
        }
    }

    #[inline]
    unsafe fn begin(softirq: Option<Softirq<'_>>) -> Option<Deferral<'_>> {
        // SAFETY: By the safety requirements.
        softirq.and_then(|softirq| unsafe { Deferral::new(softirq) })
    }

    #[inline]
    unsafe fn is_due(&self, queue: *mut bindings::netdev_queue) -> bool {
        if ablation::is_off!(doorbells) {
            return true;
        }
        // SAFETY: By the safety requirements, bottom halves are disabled while the queue is locked.
        let softirq = unsafe { Softirq::of_bh_disabled() };

        // A queue that was stopped, by the driver or by its limit, needs completions to go on.
        //
        // SAFETY: By the safety requirements, the queue is valid.
        if unsafe { bindings::netif_xmit_stopped(queue) } {
            self.take();
            if let Some(softirq) = softirq {
                // SAFETY: By the safety requirements.
                unsafe { schedule_completions(queue, softirq) };
            }
            return true;
        }
        !softirq.is_some_and(|softirq| self.defer(softirq))
    }

    #[inline]
    fn take(&self) -> bool {
        self.left.set(0);
        self.is_deferred.replace(false)
    }
}

impl Deferring {
    /// The most packets for which a doorbell is deferred. The next packet rings it.
    pub const MAX_PACKETS: u32 = 32;

    /// Defers the doorbell for one more packet. Returns whether that can be done: if not, the
    /// caller rings it.
    #[inline]
    fn defer(&self, softirq: Softirq<'_>) -> bool {
        // SAFETY: This has no requirements. The token keeps us on this CPU.
        let cpu = unsafe { bindings::raw_smp_processor_id() };
        // CAST: CPU numbers are not negative.
        let cpu = cpu as u32;
        let left = self.left.get();

        // By the type invariants, the poll function of this CPU is going to ring it: there is no
        // need to look whether one runs.
        if left != 0 && self.cpu.get() == cpu {
            self.left.set(left - 1);
            return true;
        }
        self.defer_first(cpu, softirq)
    }

    /// Defers the doorbell for a first packet, unless it was deferred to another CPU or up to its
    /// limit already, or no poll function runs.
    #[inline(never)]
    fn defer_first(&self, cpu: u32, softirq: Softirq<'_>) -> bool {
        let doorbells = this_cpu(softirq);

        if !doorbells.running.get() {
            return false;
        }
        if self.take() {
            self.limit
                .set((2 * self.limit.get()).min(Self::MAX_PACKETS));
            return false;
        }
        match doorbells.enlist(&self.queue) {
            None => return false,
            Some(true) => self.limit.set(FIRST_PACKETS),
            Some(false) => (),
        }
        // INVARIANT: The poll function that runs on this CPU rings it.
        self.cpu.set(cpu);
        self.is_deferred.set(true);
        self.left.set(self.limit.get() - 1);
        true
    }
}

/// The doorbells that the poll function which runs on a CPU has to ring.
///
/// # Invariants
///
/// Without such a function, there are none. The devices of the queues existed when the function ran
/// already.
struct PollDoorbells {
    running: Cell<bool>,
    len: Cell<usize>,
    queues: [Cell<Option<QueueRef>>; MAX_QUEUES],
}

impl PollDoorbells {
    /// Puts a queue on the list, whose lock is held while a poll function runs. Returns whether it
    /// is new there, or [`None`] if there is no room.
    fn enlist(&self, queue: &QueueRef) -> Option<bool> {
        let len = self.len.get();
        let known = self
            .queues
            .iter()
            .take(len)
            .any(|known| known.get() == Some(*queue));

        if !known {
            self.queues.get(len)?.set(Some(*queue));
            self.len.set(len + 1);
        }
        Some(!known)
    }
}

/// One [`PollDoorbells`] for each CPU. Poll functions and transmitters on a CPU run one after the
/// other, unless they have interrupts disabled.
#[repr(transparent)]
struct CpuStatic(PollDoorbells);

// SAFETY: Each CPU uses its own copy, and none uses this one.
unsafe impl Sync for CpuStatic {}

#[cfg_attr(CONFIG_SMP, link_section = ".data..percpu")]
static DOORBELLS: CpuStatic = CpuStatic(PollDoorbells {
    running: Cell::new(false),
    len: Cell::new(0),
    queues: [const { Cell::new(None) }; MAX_QUEUES],
});

/// The copy of this CPU.
#[inline]
fn this_cpu(_softirq: Softirq<'_>) -> &PollDoorbells {
    // SAFETY: This is a per-CPU variable. The token keeps us on the CPU, and others, which need a
    // token as well, from running there.
    unsafe {
        &*bindings::this_cpu_ptr((&raw const DOORBELLS).cast_mut().cast()).cast::<PollDoorbells>()
    }
}

/// Schedules the instance that completes the packets of a queue, if a poll function transmits.
///
/// # Safety
///
/// As for [`Doorbell::is_due`].
#[cold]
unsafe fn schedule_completions(queue: *mut bindings::netdev_queue, softirq: Softirq<'_>) {
    if !this_cpu(softirq).running.get() {
        return;
    }
    // SAFETY: By the safety requirements, the queue is in use. Its vector is linked to it before
    // it is, and until the lock of the queue, which is held, was taken to end that.
    let napi = unsafe { (*queue).napi };

    if !napi.is_null() {
        // SAFETY: The instance was added to the device, and exists as long as it is linked. If it
        // is disabled, this does nothing.
        unsafe { bindings::napi_schedule(napi) };
    }
}

/// The time during which doorbells are deferred: a poll function runs. They are rung when this is
/// dropped.
///
/// # Invariants
///
/// The `running` flag of this CPU belongs to `self`. The lock of no transmit queue is held by this
/// CPU when it is dropped.
pub struct Deferral<'a>(Softirq<'a>);

impl<'a> Deferral<'a> {
    /// Begins to defer doorbells, unless that has begun before: this poll function runs inside of
    /// another one.
    ///
    /// # Safety
    ///
    /// This CPU must hold the lock of no transmit queue when the result is dropped.
    #[inline]
    unsafe fn new(softirq: Softirq<'a>) -> Option<Self> {
        if this_cpu(softirq).running.replace(true) {
            return None;
        }
        // INVARIANT: The flag was not set. The rest is by the safety requirements.
        Some(Self(softirq))
    }
}

impl Drop for Deferral<'_> {
    #[inline]
    fn drop(&mut self) {
        let doorbells = this_cpu(self.0);

        doorbells.running.set(false);
        let len = doorbells.len.replace(0);
        for queue in doorbells.queues.iter().take(len) {
            if let Some(queue) = queue.take() {
                // SAFETY: The device existed when the queue was enlisted, under its lock. It is
                // freed after a grace period only, and bottom halves, which have been disabled
                // since, are an RCU read side critical section. By the type invariants, the queue
                // is not locked by this CPU.
                unsafe { queue.ring() };
            }
        }
    }
}
