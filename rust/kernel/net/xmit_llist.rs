// SPDX-License-Identifier: GPL-2.0

//! Packets in front of a qdisc, where CPUs combine them.
//!
//! C header: [`include/net/xmit_llist.h`](srctree/include/net/xmit_llist.h)
//!
//! The two words of a `struct Qdisc` on which C code leaves packets to each other are a
//! [`Combiner`]. A sender who is alone pays what it pays in C: one compare-and-exchange to get the
//! role, one to give it up, and the lock.
//!
//! A qdisc without a lock that takes several packets at once is served the same way. There, the
//! lock is used by those who give the role up only.
//!
//! # Who runs the qdisc
//!
//! What is put into a qdisc is sent by who puts it there, as far as it can be sent. For what
//! cannot, someone calls `__netif_schedule()` later. That relies on whoever still has to take
//! packets off the list, if there are any. It does not rely on who just is at work: that one may
//! have run the qdisc for the last time.
//!
//! # Teardown
//!
//! All of it happens within `rcu_read_lock_bh()`. `dev_deactivate_many()` marks a qdisc, waits for
//! everyone who was in such a section, then resets it. By then, nobody is at work and the list is
//! empty, as who gets the role gives it up before leaving, and who does not get it has left the
//! packet to somebody who has. The same goes for the qdisc's memory.

use super::combiner::{
    Batch,
    Combiner,
    Pushed,
    Submitted,
    Turn, //
};
use crate::{
    bindings,
    prelude::*,
    sync::{
        llist::{
            Link,
            Node, //
        },
        SpinLock, //
    }, //
};
use core::{
    mem::{
        align_of,
        offset_of, //
    },
    ptr::{
        self,
        NonNull, //
    }, //
};

/// A packet that C code has handed over, to be put into a qdisc.
///
/// It goes back to C code in any case: nothing happens if it is dropped.
#[repr(transparent)]
struct Packet(NonNull<bindings::sk_buff>);

// SAFETY: Packets go from one CPU to another one on such lists in C as well.
unsafe impl Send for Packet {}

// SAFETY: `ll_node` is at the beginning of a packet, and is there for this. Who hands a packet over
// to be sent does not use the links any more, even if there are other references to it.
unsafe impl Link for Packet {
    #[inline(always)]
    fn into_node(self) -> NonNull<Node> {
        self.0.cast()
    }

    #[inline(always)]
    unsafe fn from_node(node: NonNull<Node>) -> Self {
        Self(node.cast())
    }
}

// A chain of packets is what C code takes for packets linked by `next`.
static_assert!(offset_of!(bindings::sk_buff, __bindgen_anon_1) == 0);
static_assert!(size_of::<Node>() == size_of::<*mut bindings::sk_buff>());

// The two words in a qdisc are a combiner.
static_assert!(
    offset_of!(bindings::Qdisc, defer_list)
        == offset_of!(bindings::Qdisc, defer_count) + size_of::<bindings::atomic_long_t>()
);
static_assert!(
    size_of::<Combiner<Packet>>()
        == size_of::<bindings::atomic_long_t>() + size_of::<bindings::llist_head>()
);
static_assert!(align_of::<Combiner<Packet>>() <= align_of::<bindings::atomic_long_t>());
static_assert!(Combiner::<Packet>::BUSY == bindings::XMIT_LLIST_BUSY as usize);

/// What puts packets into a qdisc, and runs it: see the C header.
type Work = unsafe extern "C" fn(
    *mut bindings::sk_buff,
    c_uint,
    *mut bindings::Qdisc,
    *mut bindings::net_device,
    *mut bindings::netdev_queue,
    *mut *mut bindings::sk_buff,
) -> c_int;

/// Where packets go, and what has become of them.
///
/// # Invariants
///
/// `q` is a qdisc, `dev` its device, and `txq` a transmit queue of that. They live on until the
/// section of `rcu_read_lock_bh()` ends in which this is used. `to_free` is null or the first one
/// of packets that nobody else has, linked by `next`.
struct Target {
    q: *mut bindings::Qdisc,
    dev: *mut bindings::net_device,
    txq: *mut bindings::netdev_queue,
    to_free: *mut bindings::sk_buff,
    /// What the first batch came to, in which our own packet was.
    own: Option<c_int>,
}

impl Target {
    /// Puts packets into the qdisc, and runs it.
    ///
    /// # Safety
    ///
    /// `work` must be the function for this qdisc. If that has a root lock, it must be held.
    #[inline(always)]
    unsafe fn put_and_run(&mut self, work: Work, batch: Batch<Packet>) {
        // CAST: These are packets in memory, of which there are less.
        let count = batch.len() as c_uint;
        let first = batch.into_first().cast();
        let to_free = &raw mut self.to_free;
        // SAFETY: By the safety requirements, the type invariants, and as the batch is ours. While
        // a lock is released, nothing happens that would need it.
        let rc = unsafe { work(first, count, self.q, self.dev, self.txq, to_free) };
        self.own.get_or_insert(rc);
    }

    /// Works a list off for a qdisc without a lock.
    ///
    /// Its root lock, which nobody else needs, is taken by who gives the role up with packets in
    /// hand: whoever gets the role then must come behind those.
    #[inline(always)]
    fn work_lockless(
        &mut self,
        mut turn: Turn<'_, Packet>,
        root_lock: &SpinLock<()>,
        bound: usize,
    ) {
        let mut done = 0;

        // SAFETY: By the type invariants.
        unsafe { bindings::qdisc_root_lock_wait(self.q) };
        while done < bound {
            let Some(batch) = turn.take() else {
                return;
            };
            done += batch.len();
            // SAFETY: This is for a qdisc without a lock.
            unsafe { self.put_and_run(bindings::xmit_llist_work_lockless, batch) };
        }
        {
            let _order = root_lock.lock();
            let last = turn.take_last();
            // CAST: As above.
            let count = last.len() as c_uint;
            if count == 0 {
                return;
            }
            let first = last.into_first().cast();
            // SAFETY: By the type invariants, and as the batch is ours. The lock is held.
            unsafe {
                bindings::xmit_llist_put_last(first, count, self.q, self.txq, &raw mut self.to_free)
            };
        }
        // SAFETY: By the type invariants.
        unsafe { bindings::qdisc_run(self.q) };
    }
}

/// Sends a packet, or leaves it to who is at work. See the C header.
///
/// # Safety
///
/// - `skb` is a packet that the caller gives away.
/// - `q` is a qdisc, `dev` its device, and `txq` a transmit queue of that. They live on until the
///   caller leaves the section of `rcu_read_lock_bh()` that it is in.
/// - The caller does not hold the root lock of `q`.
#[export]
unsafe extern "C" fn xmit_llist_rust(
    skb: *mut bindings::sk_buff,
    q: *mut bindings::Qdisc,
    dev: *mut bindings::net_device,
    txq: *mut bindings::netdev_queue,
) -> c_int {
    // SAFETY: By the safety requirements, the words are there. Both are initialised with zeros, and
    // C code accesses them atomically, and in the way that `role` asks for.
    let list = unsafe { &*(&raw const (*q).defer_count).cast::<Combiner<Packet>>() };
    // SAFETY: By the safety requirements, the lock is there, and is initialised with the qdisc.
    let root_lock = unsafe { SpinLock::<()>::from_raw(&raw mut (*q).q.lock) };
    // SAFETY: By the safety requirements, a packet is not null.
    let packet = Packet(unsafe { NonNull::new_unchecked(skb) });
    // SAFETY: Nothing but a volatile access is needed to read what a sysctl may write. CAST: It is
    // not negative.
    let limit = unsafe { (&raw const bindings::net_hotdata.qdisc_max_burst).read_volatile() };
    // As much as one sender may be made to send in one run of the qdisc. Who comes next has what
    // the list and the qdisc are made of to fetch from this CPU: not worth it for less.
    //
    // SAFETY: As above.
    let bound = unsafe { (&raw const bindings::net_hotdata.dev_tx_weight).read_volatile() };
    // INVARIANT: By the safety requirements. Nothing is to be freed yet.
    let mut target = Target {
        q,
        dev,
        txq,
        to_free: ptr::null_mut(),
        own: None,
    };

    // SAFETY: By the safety requirements. What these flags say does not change.
    let flags = unsafe { (*q).flags };

    if flags & bindings::TCQ_F_FLOW_HASH != 0 && list.is_busy() {
        // Whoever works for others should have to do no more than what needs the lock.
        //
        // SAFETY: By the safety requirements, the packet is ours.
        unsafe { bindings::qdisc_hash_flow(skb) };
    }
    let submitted = if flags & bindings::TCQ_F_NOLOCK == 0 {
        list.submit(
            packet,
            limit as usize,
            bound as usize,
            || root_lock.lock(),
            |_locked, batch| {
                // SAFETY: The qdisc has a root lock, which is held.
                unsafe { target.put_and_run(bindings::xmit_llist_work, batch) }
            },
        )
    } else {
        match list.push(packet, limit as usize) {
            Pushed::Behind => Ok(Submitted::Left),
            Pushed::Refused(packet) => Err(packet),
            Pushed::First(turn) => {
                target.work_lockless(turn, root_lock, bound as usize);
                Ok(Submitted::Done)
            }
        }
    };
    if let Err(Packet(skb)) = submitted {
        // SAFETY: It is ours again.
        unsafe {
            bindings::sk_skb_reason_drop(
                ptr::null_mut(),
                skb.as_ptr(),
                bindings::skb_drop_reason_SKB_DROP_REASON_QDISC_BURST_DROP,
            );
        }
        return bindings::NET_XMIT_DROP as c_int;
    }
    if submitted.is_ok_and(|how| how == Submitted::Left) {
        return bindings::NET_XMIT_SUCCESS as c_int;
    }
    if !target.to_free.is_null() {
        // SAFETY: By the type invariants, nobody else has these packets, which were dropped.
        unsafe { bindings::__tcf_kfree_skb_list(target.to_free, q, txq, dev) };
    }
    target.own.unwrap_or(bindings::NET_XMIT_SUCCESS as c_int)
}
