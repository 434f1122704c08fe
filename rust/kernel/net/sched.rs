// SPDX-License-Identifier: GPL-2.0

//! Queueing disciplines: packets that wait for a device to transmit them.
//!
//! A discipline is a type that implements [`Qdisc`], and is registered with
//! [`module_qdisc!`](crate::module_qdisc). It is lockless, like `pfifo_fast`: any number of CPUs
//! enqueue packets at the same time, and one CPU at a time dequeues them. The state of a discipline
//! is split accordingly, and owned by the abstraction:
//!
//! | part | lent to | context |
//! | --- | --- | --- |
//! | [`Input`] | [`enqueue`], shared | bottom halves off, any number of CPUs |
//! | [`Output`] | [`dequeue`], [`peek`], [`reset`], exclusively | any that does not sleep |
//! | [`Input`] | [`change`], [`change_tx_queue_len`], [`dump`], shared | process context |
//!
//! The core serialises callbacks that need a part exclusively. [`dequeue`] runs with `q->seqlock`
//! held (see `qdisc_run_begin()`), and so does [`reset`] while the discipline is in use; before it
//! is destroyed, it is taken out of use, and grace periods wait for the callbacks that still run.
//! In the child of a discipline that has a lock, all callbacks but those in process context run
//! under that lock.
//!
//! A discipline is changed while it is in use: [`change`] makes both parts anew. Packets are then
//! enqueued into the new one, and dequeued from the old one until that is empty. No packet is
//! dropped, and senders and the device go on. If packets from before several changes wait, another
//! change is refused: it would take memory, and nothing gives any back.
//!
//! The abstraction keeps the statistics: per CPU, or, in a child, under the lock. Packets that are
//! refused are counted with their reason, and freed when the locks have been released.
//!
//! Packets that arrive when a discipline is empty can bypass it, see [`Qdisc::CAN_BYPASS`].
//!
//! C headers: [`include/net/sch_generic.h`](srctree/include/net/sch_generic.h),
//! [`include/net/pkt_sched.h`](srctree/include/net/pkt_sched.h)
//!
//! [`Input`]: Qdisc::Input
//! [`Output`]: Qdisc::Output
//! [`change`]: Qdisc::change
//! [`change_tx_queue_len`]: Qdisc::change_tx_queue_len
//! [`dequeue`]: Qdisc::dequeue
//! [`dump`]: Qdisc::dump
//! [`enqueue`]: Qdisc::enqueue
//! [`peek`]: Qdisc::peek
//! [`reset`]: Qdisc::reset
//!
//! # Examples
//!
//! A queue of up to 256 packets:
//!
//! ```
//! use kernel::{
//!     net::{
//!         sched::{
//!             QdiscDropReason,
//!             ExtAck,
//!             Options,
//!             Qdisc,
//!             QueuedSkBuff,
//!             Rejected, //
//!         }, //
//!     },
//!     prelude::*,
//!     softirq::Softirq,
//!     sync::alf_queue::{
//!         self,
//!         Consumer,
//!         SharedProducer, //
//!     }, //
//! };
//!
//! struct Short;
//!
//! #[vtable]
//! impl Qdisc for Short {
//!     const NAME: &'static CStr = c"short";
//!     const CAN_BYPASS: bool = true;
//!
//!     type Config = ();
//!     type Input = SharedProducer<QueuedSkBuff>;
//!     type Output = Consumer<QueuedSkBuff>;
//!
//!     fn parse(_: u32, options: Option<Options<'_>>, extack: &mut ExtAck<'_>) -> Result {
//!         match options {
//!             None => Ok(()),
//!             Some(_) => Err(extack.refuse(EINVAL, fmt!("there are no options"))),
//!         }
//!     }
//!
//!     fn init((): ()) -> Result<(Self::Input, Self::Output)> {
//!         alf_queue::mpsc(256, GFP_KERNEL)
//!     }
//!
//!     fn enqueue(
//!         input: &Self::Input,
//!         cx: Softirq<'_>,
//!         skb: QueuedSkBuff,
//!     ) -> Result<(), Rejected> {
//!         input
//!             .push(cx, skb)
//!             .map_err(|skb| Rejected::new(skb, QdiscDropReason::OverLimit))
//!     }
//!
//!     fn dequeue(output: &mut Self::Output) -> Option<QueuedSkBuff> {
//!         output.pop()
//!     }
//!
//!     fn peek(output: &mut Self::Output) -> Option<&QueuedSkBuff> {
//!         output.peek()
//!     }
//! }
//! ```

use crate::{
    bindings,
    error::{
        to_result,
        VTABLE_DEFAULT_ERROR, //
    },
    prelude::*,
    softirq::Softirq, //
};

mod drops;
mod netlink;
mod older;
mod ops;
mod packet;
mod tests;

pub use self::{
    drops::{
        Drops,
        QdiscDropReason,
        Rejected, //
    },
    netlink::{
        Dump,
        ExtAck,
        FifoOptions,
        Options, //
    },
    ops::Ops,
    packet::QueuedSkBuff, //
};

/// A lockless queueing discipline.
///
/// The implementing type is a marker: it holds nothing. The [module](self) describes the context of
/// each callback.
#[vtable]
pub trait Qdisc: Sized + 'static {
    /// Its name for `tc`: 1 to 15 characters.
    const NAME: &'static CStr;

    /// Whether a packet that finds the discipline empty and the device idle may be transmitted
    /// without being enqueued.
    ///
    /// Only for work-conserving disciplines, which would dequeue any packet again at once.
    const CAN_BYPASS: bool = false;

    /// The parsed options.
    type Config;

    /// The state for enqueueing packets.
    type Input: Send + Sync;

    /// The state for dequeueing packets.
    ///
    /// After a change, it is dropped when it is empty, in a context that does not sleep. It is
    /// empty when [`peek`](Qdisc::peek) finds no packet.
    type Output: Send;

    /// Parses the options of a new discipline, or of a change.
    ///
    /// `tx_queue_len` is the queue length that is configured for the device, and may be 0. Options
    /// should be refused with a message, see [`ExtAck::refuse`]. Process context, RTNL held.
    fn parse(
        tx_queue_len: u32,
        options: Option<Options<'_>>,
        extack: &mut ExtAck<'_>,
    ) -> Result<Self::Config>;

    /// Creates a discipline.
    ///
    /// Process context, RTNL held.
    fn init(config: Self::Config) -> Result<(Self::Input, Self::Output)>;

    /// Enqueues a packet, or refuses it.
    fn enqueue(input: &Self::Input, cx: Softirq<'_>, skb: QueuedSkBuff) -> Result<(), Rejected>;

    /// Dequeues the packet that is to be transmitted next.
    ///
    /// Packets that were enqueued before this was called must be found.
    fn dequeue(output: &mut Self::Output) -> Option<QueuedSkBuff>;

    /// Looks at the packet that [`dequeue`](Qdisc::dequeue) would return.
    fn peek(output: &mut Self::Output) -> Option<&QueuedSkBuff>;

    /// Drops all packets.
    ///
    /// Without this callback, packets are dequeued until there are none. A discipline that holds
    /// packets back has to implement it.
    fn reset(output: &mut Self::Output, drops: &mut Drops) {
        let _ = (output, drops);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Changes the options of the discipline: returns its new parts, or [`None`] if nothing
    /// changes.
    ///
    /// `input` is the current one. Packets are enqueued into and dequeued from both the old and the
    /// new parts for a while; a discipline that orders packets otherwise than by their arrival does
    /// so within each. Without this callback, options cannot be changed. Process context, RTNL
    /// held; the discipline is in use.
    fn change(
        input: &Self::Input,
        config: Self::Config,
    ) -> Result<Option<(Self::Input, Self::Output)>> {
        let _ = (input, config);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Adapts the discipline to a new queue length of the device, as [`Self::change`] does.
    ///
    /// If this fails, the length stays as it was. Process context, RTNL held.
    fn change_tx_queue_len(
        input: &Self::Input,
        tx_queue_len: u32,
    ) -> Result<Option<(Self::Input, Self::Output)>> {
        let _ = (input, tx_queue_len);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Reports the options.
    ///
    /// Process context, RTNL held; the discipline may be in use.
    fn dump(input: &Self::Input, dump: &mut Dump<'_>) -> Result {
        let _ = (input, dump);
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

/// A kind of discipline that `tc` can create, until this is dropped.
///
/// Disciplines that exist then continue to work: the operations are static, and each of the
/// disciplines keeps the module that owns them from being unloaded.
///
/// # Invariants
///
/// `ops` is registered.
pub struct Registration<T: Qdisc> {
    ops: &'static Ops<T>,
}

impl<T: Qdisc> Registration<T> {
    /// Registers a kind of discipline. [`module_qdisc!`](crate::module_qdisc) does that.
    ///
    /// # Errors
    ///
    /// `EEXIST` if there is one of that name.
    ///
    /// # Safety
    ///
    /// If this is called while the module that owns the operations is being initialised, the
    /// initialisation must not fail afterwards: a discipline that exists by then would not keep the
    /// module.
    pub unsafe fn new(ops: &'static Ops<T>) -> Result<Self> {
        // SAFETY: The operations are static, and complete.
        to_result(unsafe { bindings::register_qdisc(ops.as_raw()) })?;
        // INVARIANT: Registered just now.
        Ok(Self { ops })
    }
}

impl<T: Qdisc> Drop for Registration<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, they are registered.
        unsafe { bindings::unregister_qdisc(self.ops.as_raw()) };
    }
}

/// Declares a module that provides one queueing discipline.
///
/// `type` is a [`Qdisc`](crate::net::sched::Qdisc); everything else is as for [`module!`]. For `tc`
/// to load the module by itself, it needs the alias `net-sch-` followed by the discipline's name.
///
/// [`module!`]: crate::prelude::module
///
/// # Examples
///
/// ```ignore
/// kernel::module_qdisc! {
///     type: Short,
///     name: "sch_short",
///     authors: ["Author name"],
///     description: "Short queue",
///     license: "GPL",
///     alias: ["net-sch-short"],
/// }
/// ```
#[macro_export]
macro_rules! module_qdisc {
    (type: $type:ty, $($rest:tt)*) => {
        struct QdiscModule {
            _registration: $crate::net::sched::Registration<$type>,
        }

        impl $crate::Module for QdiscModule {
            fn init(_module: &'static $crate::ThisModule) -> $crate::error::Result<Self> {
                static OPS: $crate::net::sched::Ops<$type> = $crate::net::sched::Ops::new();

                // SAFETY: Nothing that could fail follows.
                let _registration = unsafe { $crate::net::sched::Registration::new(&OPS) }?;

                ::core::result::Result::Ok(Self { _registration })
            }
        }

        $crate::prelude::module! {
            type: QdiscModule,
            $($rest)*
        }
    };
}
