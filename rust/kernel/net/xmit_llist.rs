// SPDX-License-Identifier: GPL-2.0

//! Combining of packets in front of a qdisc.
//!
//! C header: [`include/net/xmit_llist.h`](srctree/include/net/xmit_llist.h)
//!
//! C code defers packets to the CPU at work with two words of a `struct Qdisc`. These are a
//! [`Combiner`]. An uncontended sender pays the same as in C: one compare-and-exchange to get the
//! role, one to give it up, and the lock.
//!
//! A lockless qdisc has no such list.
//!
//! # Running the qdisc
//!
//! The enqueuing CPU also runs the qdisc and sends what it can. For the rest, `__netif_schedule()`
//! is called later. That relies on the combiner if there are packets on the list, which it still
//! has to take. It does not rely on a combiner that has taken all packets: that may have run the
//! qdisc for the last time.
//!
//! # Teardown
//!
//! All of this happens within `rcu_read_lock_bh()`. `dev_deactivate_many()` marks a qdisc, waits
//! for the end of all such sections that had begun, then resets it. By then there is no combiner
//! and the list is empty: a combiner gives up the role before it leaves the section, and other CPUs
//! have left their packets to a combiner. The same goes for the qdisc's memory.

use super::combiner::{
    Combiner,
    Disposition,
    Drain, //
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

/// A packet that C code has handed over, to be enqueued.
///
/// It always goes back to C code: dropping this does nothing.
#[repr(transparent)]
struct LlistSkb(NonNull<bindings::sk_buff>);

// SAFETY: Packets go from one CPU to another one on such lists in C as well.
unsafe impl Send for LlistSkb {}

// SAFETY: `ll_node` is at the beginning of a packet, for this purpose. Once a packet was handed
// over to be sent, nothing else uses its links, even if there are other references to it.
unsafe impl Link for LlistSkb {
    #[inline(always)]
    fn into_node(self) -> NonNull<Node> {
        self.0.cast()
    }

    #[inline(always)]
    unsafe fn from_node(node: NonNull<Node>) -> Self {
        Self(node.cast())
    }
}

// To C code, a chain of packets is a list that is linked by `next`.
static_assert!(offset_of!(bindings::sk_buff, __bindgen_anon_1) == 0);
static_assert!(size_of::<Node>() == size_of::<*mut bindings::sk_buff>());

// The two words in a qdisc are a combiner.
static_assert!(
    offset_of!(bindings::Qdisc, defer_list)
        == offset_of!(bindings::Qdisc, defer_count) + size_of::<bindings::atomic_long_t>()
);
static_assert!(
    size_of::<Combiner<LlistSkb>>()
        == size_of::<bindings::atomic_long_t>() + size_of::<bindings::llist_head>()
);
static_assert!(align_of::<Combiner<LlistSkb>>() <= align_of::<bindings::atomic_long_t>());
static_assert!(Combiner::<LlistSkb>::BUSY == bindings::XMIT_LLIST_BUSY as usize);

/// The destination of packets, and their fate.
///
/// # Invariants
///
/// `q` is a qdisc, `dev` its device, and `txq` a transmit queue of that device. They remain valid
/// until the section of `rcu_read_lock_bh()` ends in which this is used. `to_free` is null or the
/// first one of packets that we own, linked by `next`.
struct Target {
    q: *mut bindings::Qdisc,
    dev: *mut bindings::net_device,
    txq: *mut bindings::netdev_queue,
    to_free: *mut bindings::sk_buff,
    /// The result of the first batch, which our own packet was part of.
    own: Option<c_int>,
}

impl Target {
    /// Enqueues packets, and runs the qdisc.
    ///
    /// # Safety
    ///
    /// The root lock of the qdisc must be held.
    #[inline(always)]
    unsafe fn enqueue_and_run(&mut self, batch: Drain<LlistSkb>) {
        // CAST: There are fewer packets in memory than that.
        let count = batch.len() as c_uint;
        let first = batch.into_first().cast();
        let to_free = &raw mut self.to_free;
        // SAFETY: By the safety requirements, the type invariants, and as the batch is ours. The
        // lock may be released and taken again; we access nothing meanwhile.
        let rc =
            unsafe { bindings::xmit_llist_work(first, count, self.q, self.dev, self.txq, to_free) };
        self.own.get_or_insert(rc);
    }
}

/// Sends a packet, or leaves it to the combiner. See the C header.
///
/// # Safety
///
/// - `skb` is a packet that the caller gives away.
/// - `q` is a qdisc, `dev` its device, and `txq` a transmit queue of that device. They remain valid
///   until the caller leaves the section of `rcu_read_lock_bh()` that it is in.
/// - The caller does not hold the root lock of `q`.
#[export]
unsafe extern "C" fn xmit_llist_rust(
    skb: *mut bindings::sk_buff,
    q: *mut bindings::Qdisc,
    dev: *mut bindings::net_device,
    txq: *mut bindings::netdev_queue,
) -> c_int {
    // SAFETY: By the safety requirements, the words are valid. Both are initialised with zeros, and
    // C code accesses them atomically, and in the way that `role` asks for.
    let list = unsafe { &*(&raw const (*q).defer_count).cast::<Combiner<LlistSkb>>() };
    // SAFETY: By the safety requirements, the lock is valid. It is initialised with the qdisc.
    let root_lock = unsafe { SpinLock::<()>::from_raw(&raw mut (*q).q.lock) };
    // SAFETY: By the safety requirements, a packet is not null.
    let packet = LlistSkb(unsafe { NonNull::new_unchecked(skb) });
    // CAST: A negative number is no limit, as in C.
    //
    // SAFETY: Nothing but a volatile access is needed to read what a sysctl may write.
    let limit =
        unsafe { (&raw const bindings::net_hotdata.qdisc_max_burst).read_volatile() } as usize;
    // The number of packets that a CPU sends at most in one run of the qdisc. Handing over earlier
    // does not pay: the next CPU must pull in the list's and qdisc's cache lines.
    //
    // SAFETY: As above.
    let bound = unsafe { (&raw const bindings::net_hotdata.dev_tx_weight).read_volatile() };
    // It is the product of two sysctls, which can be negative: a run of the qdisc ends after a
    // packet then.
    let bound = usize::try_from(bound).unwrap_or(0);
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
        // Leave no work to the combiner that can be done without the lock.
        //
        // SAFETY: By the safety requirements, the packet is ours.
        unsafe { bindings::xmit_llist_hash_flow(skb) };
    }
    let submitted = list.submit(
        packet,
        limit,
        bound,
        || root_lock.lock(),
        |_locked, batch| {
            // SAFETY: The lock is held.
            unsafe { target.enqueue_and_run(batch) }
        },
    );
    if let Err(LlistSkb(skb)) = submitted {
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
    if submitted.is_ok_and(|how| how == Disposition::Delegated) {
        return bindings::NET_XMIT_SUCCESS as c_int;
    }
    if !target.to_free.is_null() {
        // SAFETY: By the type invariants, we own these packets, which were dropped.
        unsafe { bindings::__tcf_kfree_skb_list(target.to_free, q, txq, dev) };
    }
    target.own.unwrap_or(bindings::NET_XMIT_SUCCESS as c_int)
}
