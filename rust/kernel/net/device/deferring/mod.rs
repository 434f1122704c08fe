// SPDX-License-Identifier: GPL-2.0

//! Doorbells that are deferred to the end of a poll.
//!
//! Ringing a card's doorbell, that is, telling it of new descriptors, takes a write to one of its
//! registers. That costs as much as a good part of forwarding a packet. The stack says when another
//! packet follows at once, but a router forwards packets one by one although they were received
//! together. So while a poll function runs, the doorbells of the queues that its CPU transmits to
//! are deferred, and rung when it returns: several packets, one doorbell. [`Deferral`] is that
//! time.
//!
//! The card begins late with packets that share a doorbell, so their answers come when the poll
//! function has just found nothing more. To turn interrupts on for these few is dear: an interrupt
//! costs as much as many polls without a packet. So a poll that has transmitted is repeated until
//! it has found nothing for 2 µs. If its budget is used up before, it goes on when the core calls
//! it again. A CPU on which that is in vain most of the time does so for one of 16 poll functions,
//! and of up to 128 if that is in vain, too. A CPU that a process waits for does not, nor does one
//! that has woken a process meanwhile, see [`patience`].
//!
//! A driver chooses this with [`Driver::Doorbell`], and implements [`Defer`].
//!
//! No packet waits for an event that may not come:
//!
//! * The doorbell of a packet that is transmitted outside of a poll function, or with interrupts
//!   disabled, as by netpoll, is rung at once. So none is deferred for longer than the poll
//!   function on the same CPU runs.
//! * A queue that was stopped, by the driver or by byte queue limits, waits for completions, so its
//!   doorbell is rung at once. While a poll function transmits to it, the packets that follow fill
//!   its qdisc. An interrupt would come too late for them: the NAPI instance that completes the
//!   packets of the queue is scheduled, and polled in turn with the other one until the queue goes
//!   on, or until the other one finds nothing more.
//! * The doorbell is deferred for [`Deferring::MAX_PACKETS`] packets at most, and the next one
//!   rings it, so that the card need not idle during a long poll. At its start, when the card is
//!   likely to be idle, these are [`FIRST_PACKETS`], and twice as many after each doorbell.
//! * When the producer of a queue is taken away, the doorbell is rung before, under the lock of the
//!   queue.
//!
//! The list of queues whose doorbells a poll function has to ring is private to its CPU. Whether
//! the doorbell of a queue is deferred is protected by the lock of the queue.

use super::{
    doorbell::{
        Doorbell,
        DoorbellOf, //
    },
    registration::Inner,
    Driver, //
};

use crate::{
    bindings,
    net::napi::{
        Id,
        Poll,
        Polled, //
    },
    prelude::*,
    types::NotThreadSafe, //
};

use core::{
    cell::Cell,
    ptr, //
};

mod patience;
#[cfg(CONFIG_KUNIT)]
mod tests;

use self::patience::{
    Prospect,
    Wait, //
};

/// The most packets for which a doorbell is deferred at the start of a poll.
const FIRST_PACKETS: u32 = 1;

/// The most polls of one run of a poll function. They take time without packets as well: this ends
/// a run whatever the driver and the clock say.
const MAX_POLLS: u32 = 512;

/// The most queues whose doorbells one poll function can ring. Further ones are not deferred.
const MAX_QUEUES: usize = 8;

/// A driver whose doorbells are deferred.
pub trait Defer: Driver<Doorbell = Deferring> {
    /// Rings the doorbell that [`TxQueue::sent`](crate::net::queue::TxQueue::sent) has deferred.
    ///
    /// Bottom halves off, queue locked.
    fn kick<'bound>(data: Pin<&Self::Data<'bound>>, tx: &mut Self::Tx<'bound>);
}

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

// SAFETY: The pointer in it is only used to tell devices apart, and by poll functions, for which a
// copy of it is on a list of their CPU.
unsafe impl Send for Deferring {}

/// Rings the doorbell of a queue if it is deferred.
///
/// # Safety
///
/// The arguments must be those of a [`QueueRef`], whose device must exist until this returns.
/// Bottom halves must be disabled, and the queue must not be locked by this CPU.
type RingFn = unsafe fn(*const c_void, u16);

/// A transmit queue of a device of any driver.
///
/// # Invariants
///
/// `device` is the address of an `Inner<T>`, and `ring` is `ring::<T>`.
#[derive(Clone, Copy)]
struct QueueRef {
    device: *const c_void,
    queue: u16,
    ring: RingFn,
}

/// The [`RingFn`] of devices of driver `T`.
///
/// # Safety
///
/// As for [`RingFn`].
unsafe fn ring<T: Defer>(device: *const c_void, queue: u16) {
    // SAFETY: By the safety requirements, and the type invariants of `QueueRef`.
    let inner = unsafe { &*device.cast::<Inner<T>>() };

    // SAFETY: By the safety requirements. The function does not take the lock.
    unsafe { inner.with_slot(queue, |slot| inner.flush_doorbell(slot)) };
}

impl<T: Defer> DoorbellOf<T> for Deferring {
    fn new(inner: *const Inner<T>, index: u16) -> Self {
        // INVARIANT: The pointer and the function are for the same `T`.
        let queue = QueueRef {
            device: inner.cast(),
            queue: index,
            ring: ring::<T>,
        };

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
    unsafe fn poll(cx: &Poll<'_>, mut poll: impl FnMut(&Poll<'_>) -> Polled) -> Polled {
        // SAFETY: By the safety requirements. The result is dropped before this returns.
        let Some(deferral) = (unsafe { Deferral::new(cx) }) else {
            return poll(cx);
        };
        let interrupted = deferral.take_interrupted();
        let in_turn = interrupted.is_some_and(|last| last.id != cx.napi().id());
        let goes_on = !in_turn && interrupted.is_some_and(|last| last.has_transmitted);
        let mut wait = Wait::new(deferral.prospect(), cx.delays_process(), goes_on);
        let mut total = 0_usize;

        for _ in 0..MAX_POLLS {
            let received = match poll(cx) {
                Polled::Busy => {
                    wait.begin(deferral.has_deferred());
                    return deferral.interrupt(&wait, cx);
                }
                Polled::Idle { received } => received,
            };
            let has_rung = deferral.ring();

            total = total.saturating_add(received);
            if !wait.goes_on(received > 0, has_rung, || needs_resched(cx)) {
                if in_turn && cx.is_tx_stopped() {
                    return Polled::Busy;
                }
                return Polled::Idle { received: total };
            }
            if total >= cx.budget().packets() {
                return deferral.interrupt(&wait, cx);
            }
        }
        Polled::Busy
    }

    #[inline]
    fn flush(&self, data: Pin<&T::Data<'static>>, tx: &mut T::Tx<'static>) {
        if self.take() {
            T::kick(data, tx);
        }
    }
}

impl Doorbell for Deferring {
    #[inline]
    unsafe fn is_due(&self, queue: *mut bindings::netdev_queue) -> bool {
        // A queue that was stopped, by the driver or by its limit, needs completions to go on.
        //
        // SAFETY: By the safety requirements, the queue is valid.
        if unsafe { bindings::netif_xmit_stopped(queue) } {
            self.take();
            // SAFETY: By the safety requirements.
            unsafe { schedule_completions(queue) };
            return true;
        }
        // SAFETY: By the safety requirements, bottom halves are disabled.
        !unsafe { self.defer() }
    }
}

impl Deferring {
    /// The most packets for which a doorbell is deferred. The next packet rings it.
    pub const MAX_PACKETS: u32 = 32;

    /// Defers the doorbell for one more packet. Returns whether that can be done: if not, the
    /// caller rings it.
    ///
    /// # Safety
    ///
    /// To be called where packets are transmitted: with bottom halves disabled.
    #[inline]
    unsafe fn defer(&self) -> bool {
        // SAFETY: This has no requirements.
        if unsafe { bindings::irqs_disabled() } {
            return false;
        }
        // SAFETY: This has no requirements. A transmitting CPU has bottom halves disabled, so it
        // stays the same.
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
        // SAFETY: By the safety requirements.
        unsafe { self.defer_first(cpu) }
    }

    /// Defers the doorbell for a first packet, unless it was deferred to another CPU or up to its
    /// limit already, or no poll function runs.
    ///
    /// # Safety
    ///
    /// To be called where packets are transmitted: with bottom halves disabled, but not interrupts.
    #[inline(never)]
    unsafe fn defer_first(&self, cpu: u32) -> bool {
        // SAFETY: By the safety requirements. The flag is only set while nothing else on this CPU
        // can poll or transmit, other than with interrupts disabled.
        if !unsafe { this_cpu() }.running.get() {
            return false;
        }
        if self.take() {
            self.limit
                .set((2 * self.limit.get()).min(Self::MAX_PACKETS));
            return false;
        }
        match enlist(&self.queue) {
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

    /// Returns whether the doorbell was deferred. It no longer is: the caller rings it.
    #[inline]
    fn take(&self) -> bool {
        self.left.set(0);
        self.is_deferred.replace(false)
    }
}

/// The doorbells that the poll function which runs on a CPU has to ring.
struct PollDoorbells {
    running: Cell<bool>,
    prospect: Prospect,
    /// The poll function that was interrupted last, if none has run since then.
    interrupted: Cell<Option<Interrupted>>,
    len: Cell<usize>,
    queues: [Cell<Option<QueueRef>>; MAX_QUEUES],
}

/// A poll function that has used up its budget, so that the core calls it again.
#[derive(Clone, Copy)]
struct Interrupted {
    id: Id,
    /// Answers may come.
    has_transmitted: bool,
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
    prospect: Prospect::new(),
    interrupted: Cell::new(None),
    len: Cell::new(0),
    queues: [const { Cell::new(None) }; MAX_QUEUES],
});

/// The copy of this CPU.
///
/// # Safety
///
/// The caller must stay on this CPU while it uses the result, in a context in which bottom halves
/// are disabled and no other poll function can run on the CPU.
#[inline]
unsafe fn this_cpu<'a>() -> &'a PollDoorbells {
    // SAFETY: This is a per-CPU variable. The caller stays on the CPU.
    unsafe {
        &*bindings::this_cpu_ptr((&raw const DOORBELLS).cast_mut().cast()).cast::<PollDoorbells>()
    }
}

/// Puts a queue on the list of the poll function that runs on this CPU. Returns whether it is new
/// there, or [`None`] if there is no room.
///
/// To be called while a poll function runs below us on this CPU, with interrupts enabled.
fn enlist(queue: &QueueRef) -> Option<bool> {
    // SAFETY: A poll function runs below us on this CPU.
    let doorbells = unsafe { this_cpu() };
    let len = doorbells.len.get();
    let known = doorbells.queues.iter().take(len).any(|known| {
        known
            .get()
            .is_some_and(|known| ptr::eq(known.device, queue.device) && known.queue == queue.queue)
    });

    if !known {
        doorbells.queues.get(len)?.set(Some(*queue));
        doorbells.len.set(len + 1);
    }
    Some(!known)
}

/// Schedules the instance that completes the packets of a queue, if a poll function transmits.
///
/// # Safety
///
/// As for [`Doorbell::is_due`].
#[cold]
unsafe fn schedule_completions(queue: *mut bindings::netdev_queue) {
    // SAFETY: This has no requirements.
    if unsafe { bindings::irqs_disabled() } {
        return;
    }
    // SAFETY: By the safety requirements, bottom halves are disabled. Others that run with
    // interrupts disabled do not get here.
    if !unsafe { this_cpu() }.running.get() {
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

/// Whether another task runs on this CPU as soon as it can.
#[inline]
fn needs_resched(cx: &Poll<'_>) -> bool {
    #[cfg(CONFIG_KUNIT)]
    if tests::is_hopeful() {
        return false;
    }
    cx.needs_resched()
}

/// The time during which doorbells are deferred: a poll function runs. Those that are left are rung
/// when this is dropped.
///
/// # Invariants
///
/// The `running` flag of this CPU belongs to `self`. No other poll function can run on the CPU.
struct Deferral(NotThreadSafe);

impl Deferral {
    /// Begins to defer doorbells, unless this is netpoll or another context which a transmitter or
    /// poll function on this CPU may interrupt, or be interrupted by.
    ///
    /// # Safety
    ///
    /// To be called by a poll function, which must drop the result before it returns.
    #[inline]
    unsafe fn new(cx: &Poll<'_>) -> Option<Self> {
        cx.softirq()?;

        // SAFETY: We have a proof of the context.
        let doorbells = unsafe { this_cpu() };
        if doorbells.running.replace(true) {
            return None;
        }
        // INVARIANT: The flag was not set.
        Some(Self(NotThreadSafe))
    }

    /// Whether it is worth waiting for answers on this CPU.
    #[inline]
    fn prospect(&self) -> &Prospect {
        // SAFETY: By the type invariants, we are in the context in which the deferral began, and
        // `self` does not leave it.
        unsafe { &this_cpu().prospect }
    }

    /// The poll function that was interrupted last on this CPU, unless another one has run since.
    #[inline]
    fn take_interrupted(&self) -> Option<Interrupted> {
        // SAFETY: By the type invariants, we are in the context in which the deferral began.
        unsafe { this_cpu() }.interrupted.take()
    }

    /// Interrupts a poll function that has used up its budget. If it has transmitted, its next run
    /// goes on waiting for answers: else that would turn interrupts on if none has come yet.
    #[inline]
    fn interrupt(&self, wait: &Wait<'_>, cx: &Poll<'_>) -> Polled {
        // SAFETY: By the type invariants, we are in the context in which the deferral began.
        unsafe { this_cpu() }.interrupted.set(Some(Interrupted {
            id: cx.napi().id(),
            has_transmitted: wait.has_begun(),
        }));
        Polled::Busy
    }

    /// Whether a doorbell was deferred. It is rung when `self` is dropped.
    #[inline]
    fn has_deferred(&self) -> bool {
        // SAFETY: By the type invariants, we are in the context in which the deferral began.
        unsafe { this_cpu() }.len.get() > 0
    }

    /// Rings the doorbells that were deferred. Returns whether packets have been transmitted since
    /// it was called last.
    #[inline]
    fn ring(&self) -> bool {
        // SAFETY: By the type invariants, we are in the context in which the deferral began.
        let doorbells = unsafe { this_cpu() };

        let len = doorbells.len.replace(0);
        for queue in doorbells.queues.iter().take(len) {
            if let Some(queue) = queue.take() {
                // SAFETY: The device existed when the queue was enlisted, under its lock. It is
                // freed after a grace period only, and a poll function is part of an RCU read side
                // critical section. It runs with bottom halves disabled, and the driver's part of
                // it, with all locks that it took, is over.
                unsafe { (queue.ring)(queue.device, queue.queue) };
            }
        }
        len > 0
    }
}

impl Drop for Deferral {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants, we are in the context in which the deferral began.
        unsafe { this_cpu() }.running.set(false);
        self.ring();
    }
}
