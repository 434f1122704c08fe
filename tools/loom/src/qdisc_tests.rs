// SPDX-License-Identifier: GPL-2.0

//! A lockless qdisc that several threads enqueue into and run: no packet is left behind.
//!
//! The queue is the kernel's. The C part is modelled as it is written: `qdisc_run_begin()`,
//! `qdisc_run_end()`, `__netif_schedule()` and `net_tx_action()`, and the helper that the dequeueing
//! side calls when it has found nothing.

use crate::ring::{Consumer, Ring, shared_ring};
use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicBool, fence};
use loom::thread;

/// A full barrier of the kernel is missing, to see that it is needed.
#[derive(Clone, Copy, Default)]
struct Without {
    /// Between the release of the lock and the look at the flag.
    end: bool,
    /// Between clearing the flag and dequeueing again.
    look_again: bool,
}

struct Qdisc {
    ring: Arc<Ring>,
    consumer: UnsafeCell<Consumer>,
    /// `q->seqlock`
    seqlock: AtomicBool,
    /// `__QDISC_STATE_MISSED`
    missed: AtomicBool,
    /// `__QDISC_STATE_SCHED`
    scheduled: AtomicBool,
    sent: UnsafeCell<Vec<u32>>,
    without: Without,
}

// SAFETY: Not true in general: loom checks that the data behind the lock is accessed in order.
unsafe impl Sync for Qdisc {}
// SAFETY: There are numbers in it.
unsafe impl Send for Qdisc {}

impl Qdisc {
    fn new(without: Without) -> Arc<Self> {
        let ring = shared_ring(4, u32::MAX);
        Arc::new(Self {
            consumer: UnsafeCell::new(Consumer::new(&ring, u32::MAX)),
            ring,
            seqlock: AtomicBool::new(false),
            missed: AtomicBool::new(false),
            scheduled: AtomicBool::new(false),
            sent: UnsafeCell::new(Vec::new()),
            without,
        })
    }

    fn try_lock(&self) -> bool {
        self.seqlock
            .compare_exchange(false, true, Acquire, Relaxed)
            .is_ok()
    }

    /// `qdisc_run_begin()`
    fn begin(&self) -> bool {
        if self.try_lock() {
            return true;
        }
        // test_and_set_bit() is a full barrier.
        fence(SeqCst);
        let was_set = self.missed.swap(true, AcqRel);
        fence(SeqCst);
        !was_set && self.try_lock()
    }

    fn pop(&self) -> Option<u32> {
        // SAFETY: loom checks that no other thread dequeues.
        self.consumer
            .with_mut(|consumer| unsafe { (*consumer).pop_run(1) })
            .pop()
    }

    /// `Ops::dequeue()`, and `qdisc_look_again()` in it.
    fn dequeue(&self) -> Option<u32> {
        let packet = self.pop();
        if packet.is_some() || !self.missed.load(Relaxed) {
            return packet;
        }
        self.missed.swap(false, Relaxed);
        if !self.without.look_again {
            fence(SeqCst);
        }
        self.pop()
    }

    /// `qdisc_run_end()`; returns whether the qdisc is scheduled.
    fn end(&self) -> bool {
        self.seqlock.store(false, Release);
        if !self.without.end {
            fence(SeqCst);
        }
        self.missed.load(Relaxed) && self.schedule()
    }

    /// `__netif_schedule()`; returns whether the caller is to run the qdisc later.
    fn schedule(&self) -> bool {
        fence(SeqCst);
        let was_set = self.scheduled.swap(true, AcqRel);
        fence(SeqCst);
        !was_set
    }

    /// `qdisc_run()`, and the runs in softirqs that this CPU schedules.
    fn run(&self) {
        let mut again = true;
        while again {
            again = false;
            if self.begin() {
                while let Some(packet) = self.dequeue() {
                    // SAFETY: loom checks that no other thread sends.
                    self.sent.with_mut(|sent| unsafe { (*sent).push(packet) });
                }
                again = self.end();
            }
            if again {
                // `net_tx_action()`: the bit is cleared before the run.
                fence(SeqCst);
                thread::yield_now();
                self.scheduled.swap(false, Relaxed);
                fence(SeqCst);
            }
        }
    }

    /// `__dev_xmit_skb()`
    fn send(&self, packet: u32) {
        assert_eq!(self.ring.push(&[packet], true), 1, "there is room");
        self.run();
    }
}

/// Threads that send `per_thread` packets each; all of them have been sent in the end.
fn send_all(threads: u32, per_thread: u32, preemptions: usize, without: Without) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        let qdisc = Qdisc::new(without);
        let send = move |qdisc: &Qdisc, thread: u32| {
            for packet in 0..per_thread {
                qdisc.send(10 * thread + packet);
            }
        };
        let others: Vec<_> = (1..threads)
            .map(|thread| {
                let qdisc = qdisc.clone();
                thread::spawn(move || send(&qdisc, thread))
            })
            .collect();
        send(&qdisc, 0);
        for other in others {
            other.join().expect("it ends");
        }
        let left = [&qdisc.seqlock, &qdisc.scheduled].map(|flag| flag.swap(false, AcqRel));
        assert_eq!(left, [false, false]);
        // SAFETY: loom checks that no other thread sends.
        let sent = qdisc.sent.with(|sent| unsafe { (*sent).clone() });
        let count = threads * per_thread;
        assert_eq!(sent.len(), count as usize, "{sent:?}");
        for thread in 0..threads {
            let own = sent.iter().filter(|&packet| packet / 10 == thread);
            assert!(own.is_sorted(), "{sent:?}");
        }
    });
}

#[test]
fn two_threads_leave_no_packet() {
    send_all(2, 2, 3, Without::default());
}

#[test]
fn three_threads_leave_no_packet() {
    send_all(3, 1, 1, Without::default());
}

// Each of the two barriers is needed: without it, a packet stays in the queue.

#[test]
#[should_panic(expected = "assertion `left == right` failed")]
fn the_end_of_a_run_needs_a_barrier() {
    let without = Without {
        end: true,
        ..Without::default()
    };
    send_all(3, 1, 2, without);
}

#[test]
#[should_panic(expected = "assertion `left == right` failed")]
fn looking_again_needs_a_barrier() {
    let without = Without {
        look_again: true,
        ..Without::default()
    };
    send_all(3, 1, 2, without);
}
