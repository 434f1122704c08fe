// SPDX-License-Identifier: GPL-2.0

//! NAPI: polling of a queue vector in softirq context.
//!
//! C header: [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h)
//!
//! A driver never owns a `struct napi_struct`. The device abstraction adds one per queue vector
//! when the device is opened, enables it, disables it and deletes it. The driver sees
//!
//! - [`Napi`], while it builds the vector's state, in order to create a page pool for it;
//! - [`Poll`], inside of [`Driver::poll`]: the proof that this is the poll function of one vector,
//!   on one CPU, now. It can be neither kept, nor sent to another CPU, nor forged. Operations that
//!   are only correct in that context take a [`&Poll`](Poll).
//!
//! [`Driver::poll`]: super::device::Driver::poll

use super::{
    device::Device,
    queue::Completions,
    skbuff::{
        set_protocol,
        DropReason,
        SkBuff,
        UniqueSkBuff, //
    }, //
};

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    prelude::*,
    softirq::Softirq,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        static_lock_class,
        Arc,
        Mutex, //
    },
    types::{
        NotThreadSafe,
        Opaque, //
    }, //
};

use core::cell::{
    Cell,
    UnsafeCell, //
};

mod attached;
#[cfg(CONFIG_PAGE_POOL)]
mod forward;
mod owned;
mod scheduler;
#[cfg(CONFIG_PAGE_POOL)]
mod xsk_pool;
#[cfg(CONFIG_PAGE_POOL)]
mod xsk_queue;

pub(crate) use self::attached::{
    Attached,
    Orphans, //
};
pub use self::attached::{
    RxClosed,
    RxStopped, //
};
#[cfg(CONFIG_PAGE_POOL)]
pub use self::forward::Port;
pub(crate) use self::owned::NapiOwned;
pub use self::scheduler::Scheduler;
#[cfg(CONFIG_PAGE_POOL)]
pub use self::xsk_pool::{
    XskPool,
    XskRoom, //
};

/// The result of a poll function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Polled {
    /// There is, or may be, more to do: poll again, with interrupts off.
    Busy,
    /// There is nothing left to do: interrupts can be turned on again.
    ///
    /// Whether they are is up to the core and its users, see Documentation/networking/napi.rst:
    /// they stay off while a timer has the instance polled (`napi_defer_hard_irqs`), while a socket
    /// polls it, and while `epoll` has suspended them. A driver does nothing for that.
    /// [`Driver::rearm`](super::device::Driver::rearm) is called only if they come on.
    Idle {
        /// Number of received packets, for the core's interrupt moderation.
        received: usize,
    },
}

/// The identity of a [`Napi`] with the memory that its receive queue has. Unlike an address, it is
/// never reused: that of other memory is another one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id(u64);

impl Id {
    pub(super) fn new() -> Self {
        static NEXT: Atomic<u64> = Atomic::new(0);

        // This orders nothing, and 64 bits do not wrap.
        Self(NEXT.fetch_add(1, Relaxed))
    }
}

/// The name of a lock class.
///
/// lockdep compares names by address. A literal would have one in each module of a driver that the
/// code around it is compiled into, but there is only one key.
static ATTACHED: &CStr = c"Napi::attached";

/// The NAPI instance of a queue vector.
///
/// # Invariants
///
/// - `inner` is a `struct napi_struct` that has been added to a device, and is deleted before the
///   `Napi` is dropped.
/// - `id` changes only while the instance is disabled, with the lock of the device's operations
///   held. It is read by the poll function, or with that lock held.
#[pin_data]
#[repr(C)]
pub struct Napi {
    // First, so that a pointer to the one is a pointer to the other.
    #[pin]
    inner: Opaque<bindings::napi_struct>,
    id: UnsafeCell<Id>,
    /// The number of interrupts, which wraps.
    interrupts: Atomic<u32>,
    new_id: attached::NewId,
    #[pin]
    attached: Mutex<attached::AttachedList>,
    orphans: Arc<Orphans>,
}

// SAFETY: Only C accesses the members of `struct napi_struct` that change, and takes care of
// concurrency itself. Attached objects are `Send` and `Sync`, and the list of them is locked.
unsafe impl Send for Napi {}

// SAFETY: As for `Send`.
unsafe impl Sync for Napi {}

impl Napi {
    /// Returns the initializer for an instance that has not been added to a device, whose objects
    /// can become [`Orphans`].
    pub(super) fn new(orphans: Arc<Orphans>) -> impl PinInit<Self> {
        pin_init!(Self {
            inner: Opaque::zeroed(),
            id: UnsafeCell::new(Id::new()),
            interrupts: Atomic::new(0),
            new_id: attached::NewId::none(),
            attached <- Mutex::new(attached::AttachedList::new(), ATTACHED, static_lock_class!()),
            orphans,
        })
    }

    /// Returns a pointer to the `struct napi_struct`.
    #[inline]
    pub(crate) fn as_raw(&self) -> *mut bindings::napi_struct {
        self.inner.get()
    }

    /// The identity of this instance.
    #[inline]
    pub(crate) fn id(&self) -> Id {
        // SAFETY: By the type invariants, it does not change meanwhile.
        unsafe { *self.id.get() }
    }

    /// Counts an interrupt, and schedules the instance.
    ///
    /// # Safety
    ///
    /// To be called by the handler of an interrupt, which is freed before the instance is deleted.
    pub(super) unsafe fn interrupted(&self) {
        // A vector may have two interrupts. If they come at the same time, they count as one.
        let before = self.interrupts.load(Relaxed);
        self.interrupts.store(before.wrapping_add(1), Relaxed);

        // SAFETY: By the type invariants and the safety requirements, the instance was added to a
        // device. If it is disabled, nothing happens. Interrupts are disabled here; with
        // `CONFIG_PREEMPT_RT` the function disables them itself.
        unsafe { bindings::napi_schedule_irqoff(self.as_raw()) };
    }

    /// Checks whether `dev` is the parent of the network device, which is bound for as long as
    /// objects belong to this instance.
    pub(crate) fn check_parent(&self, dev: &device::Device<Bound>) -> Result {
        // SAFETY: By the type invariants, the instance has been added to a device. That is valid,
        // and its parent does not change.
        let parent = unsafe { (*(*self.as_raw()).dev).dev.parent };

        if parent == dev.as_raw() {
            Ok(())
        } else {
            Err(EINVAL)
        }
    }
}

/// The context of a poll function.
///
/// A reference to it proves that the current function is called from the poll function of a queue
/// vector, which does not run elsewhere at the same time, with bottom halves disabled. This is
/// softirq context, unless [`Poll::is_netpoll`].
///
/// # Invariants
///
/// `napi` is the instance that is being polled on this CPU, with this `budget`. It belongs to the
/// vector of number `index`, which serves the queues of that number.
pub struct Poll<'p> {
    napi: &'p Napi,
    budget: c_int,
    index: u16,
    /// XDP has redirected frames, which wait for a flush.
    redirected: Cell<bool>,
    /// A module has forwarded frames, which wait for each other.
    #[cfg(CONFIG_PAGE_POOL)]
    forwards: forward::Forwards,
    _not_send: NotThreadSafe,
}

impl<'p> Poll<'p> {
    /// Creates the context.
    ///
    /// # Safety
    ///
    /// The caller must be the poll function of `napi`, which C called with `budget`. `index` must
    /// be the number of the vector, and of the queues that it serves.
    #[inline]
    pub(crate) unsafe fn new(napi: &'p Napi, budget: c_int, index: u16) -> Self {
        // INVARIANT: The safety requirements are the invariants.
        Self {
            napi,
            budget,
            index,
            redirected: Cell::new(false),
            #[cfg(CONFIG_PAGE_POOL)]
            forwards: forward::Forwards::new(),
            _not_send: NotThreadSafe,
        }
    }

    /// Has frames flushed that XDP has redirected, when the poll function of the driver returns.
    #[inline]
    pub(super) fn set_redirected(&self) {
        self.redirected.set(true);
    }

    /// Flushes frames that XDP has redirected, or a module has forwarded, if there are any.
    ///
    /// The driver has returned, whatever it has forgotten: frames do not stay behind, on a list of
    /// this run of the core.
    #[inline]
    pub(super) fn flush_redirected(&self) {
        #[cfg(CONFIG_PAGE_POOL)]
        self.forwards.flush();
        if self.redirected.replace(false) {
            // SAFETY: By the type invariants, this is the poll function, in which a program has
            // run: the core has set the context of programs that redirect.
            unsafe { bindings::xdp_do_flush() };
        }
    }

    /// The number of packets that may be received; zero if this is netpoll.
    #[inline]
    pub fn budget(&self) -> usize {
        usize::try_from(self.budget).unwrap_or(0)
    }

    /// The budget as C has it. `napi_consume_skb()` and similar functions need the genuine value:
    /// zero means that the caller may be in hard interrupt context.
    #[inline]
    pub(super) fn raw_budget(&self) -> c_int {
        self.budget * c_int::from(Self::can_call_stack())
    }

    /// Whether this is netpoll, which only wants transmitted packets to be completed.
    ///
    /// It may be called in hard interrupt context; nothing can be received.
    #[inline]
    pub fn is_netpoll(&self) -> bool {
        self.budget <= 0
    }

    /// Whether the stack can be called here. Where the driver has disabled interrupts it must not:
    /// in kernels that trace interrupts, it always enables them.
    ///
    /// Other kernels do not check that, as it takes instructions.
    #[inline(always)]
    pub(super) fn can_call_stack() -> bool {
        // SAFETY: There are no requirements.
        !cfg!(CONFIG_TRACE_IRQFLAGS) || !unsafe { bindings::irqs_disabled() }
    }

    /// The proof that this is softirq context, or at least one in which bottom halves are disabled.
    ///
    /// Returns [`None`] if this is netpoll, see [`Self::is_netpoll`], and in kernels in which there
    /// is no such proof, see [`Softirq`].
    #[inline]
    pub fn softirq(&self) -> Option<Softirq<'_>> {
        // SAFETY: By the type invariants, the poll function of `napi` runs on this CPU with this
        // budget. Unless that is zero, it was called with bottom halves disabled, in a softirq or
        // in a thread, and stay so until it returns, which outlives the borrow of `self`. If bottom
        // halves do not exclude each other on a CPU, there is no proof.
        (Softirq::EXCLUSIVE && !self.is_netpoll()).then(|| unsafe { Softirq::assume() })
    }

    /// The NAPI instance that is being polled.
    ///
    /// This is not for drivers: a [`Napi`] in their hands is one that has not been enabled.
    #[inline]
    pub(crate) fn napi(&self) -> &'p Napi {
        self.napi
    }

    /// The number of the vector's interrupts so far, which wraps. A poll that none has caused finds
    /// the same number.
    #[inline]
    pub fn interrupts(&self) -> u32 {
        self.napi.interrupts.load(Relaxed)
    }

    /// The device to which the queue vector belongs.
    #[inline]
    pub fn device(&self) -> &Device {
        // SAFETY: An instance that is being polled has been added to a device, which lives longer.
        unsafe { Device::from_raw((*self.napi.as_raw()).dev) }
    }

    /// The completion side of this vector's transmit queue.
    #[inline]
    pub fn tx_queue(&self) -> Completions<'_> {
        // SAFETY: By the type invariants, the device of the instance has this queue.
        let queue = unsafe {
            bindings::netdev_get_tx_queue((*self.napi.as_raw()).dev, c_uint::from(self.index))
        };

        // SAFETY: By the type invariants, the poll function of this vector is running, and this is
        // its transmit queue.
        unsafe { Completions::from_raw(queue) }
    }

    /// The number of the vector's receive queue for received packets, counted from 1; 0 is none.
    #[inline]
    pub(super) fn rx_mapping(&self) -> u16 {
        self.index.wrapping_add(1)
    }

    /// Hands a received Ethernet frame, header and all, to the stack, by GRO.
    ///
    /// This sets the frame's device, protocol and receive queue. A frame whose linear part does not
    /// hold an Ethernet header is dropped, as are all frames if this is netpoll, see
    /// [`Self::is_netpoll`].
    ///
    /// The poll function must not have disabled interrupts: the stack may enable them. Kernels that
    /// trace interrupts, in which it would, drop the frame.
    ///
    /// GRO merges frames, and edits them for that. A packet that was transmitted may be a clone of
    /// one that its sender keeps; [`SkBuff::into_unique`] makes it one that can be received.
    ///
    /// Where several packets are received at once, prefer an [`RxList`](super::rx_list::RxList).
    #[inline]
    pub fn receive(&self, skb: UniqueSkBuff) {
        if let Some(skb) = self.prepare(skb) {
            self.receive_prepared(skb);
        }
    }

    /// Makes a received frame ready for the stack, or drops it.
    #[inline]
    pub(super) fn prepare(&self, skb: UniqueSkBuff) -> Option<UniqueSkBuff> {
        if self.is_netpoll() {
            refuse(skb, DropReason::NotSpecified);
            return None;
        }
        let skb = eth_type_trans(self.device(), skb)?;
        // SAFETY: There is no other reference to the packet.
        unsafe { (*skb.as_raw()).queue_mapping = self.rx_mapping() };
        Some(skb)
    }

    /// Hands a packet to GRO that [`Self::prepare`] has made ready.
    #[inline]
    pub(super) fn receive_prepared(&self, skb: UniqueSkBuff) {
        if !Self::can_call_stack() {
            return refuse(skb, DropReason::NotSpecified);
        }
        let skb = SkBuff::from(skb).into_raw().as_ptr();

        // SAFETY: The packet is ours alone, so GRO may edit it. By the type invariants, `napi` is
        // being polled on this CPU, with a budget, or the packet would not have been prepared, so
        // this is softirq context and the only access to its GRO state.
        unsafe { bindings::gro_receive_skb(&raw mut (*self.napi.as_raw()).gro, skb) };
    }
}

/// Makes a frame one that `dev` has received, or drops it.
#[inline]
fn eth_type_trans(dev: &Device, mut skb: UniqueSkBuff) -> Option<UniqueSkBuff> {
    if skb.head_len() < bindings::ETH_HLEN {
        refuse(skb, DropReason::TruncatedHeader);
        return None;
    }

    // SAFETY: There is no other reference to the packet, and it has at least `ETH_HLEN` bytes in
    // its linear part. The device is valid.
    let protocol = unsafe { bindings::eth_type_trans(skb.as_raw(), dev.as_raw()) };
    set_protocol(&mut skb, protocol);
    Some(skb)
}

#[cold]
fn refuse(skb: UniqueSkBuff, reason: DropReason) {
    SkBuff::from(skb).drop_with(reason);
}
