// SPDX-License-Identifier: GPL-2.0

//! Queueing disciplines: where packets wait for a device to transmit them.
//!
//! A discipline is written as a type that implements [`Qdisc`], and made known with
//! [`module_qdisc!`](crate::module_qdisc). It is lockless, as `pfifo_fast` is: any number of CPUs
//! put packets in at the same time, and one at a time takes them out. What a discipline keeps is
//! split by that, and owned by the abstraction:
//!
//! | part | lent to | context |
//! | --- | --- | --- |
//! | [`Input`] | [`enqueue`], [`enqueue_batch`], shared | bottom halves off, any number of CPUs |
//! | [`Output`] | [`dequeue`], [`peek`], [`reset`], exclusively | any that does not sleep |
//! | both | [`change`], [`change_tx_queue_len`], exclusively | process context |
//!
//! The core excludes those that need a part exclusively. [`dequeue`] runs with `q->seqlock` held
//! (see `qdisc_run_begin()`), and so does [`reset`] while the discipline is in use; before it is
//! destroyed, it is taken out of use, and grace periods make sure that nobody is still in it. When
//! it is changed, the abstraction does the same for the time of the change. As the child of a
//! discipline that has a lock, everything runs under that lock.
//!
//! Statistics are kept by the abstraction: per CPU, or, as a child, under the lock. What is refused
//! is counted, gets its reason, and is freed when the locks have been released.
//!
//! Packets that come when a discipline is empty can go past it, see [`Qdisc::CAN_BYPASS`].
//!
//! C headers: [`include/net/sch_generic.h`](srctree/include/net/sch_generic.h),
//! [`include/net/pkt_sched.h`](srctree/include/net/pkt_sched.h)
//!
//! [`Input`]: Qdisc::Input
//! [`Output`]: Qdisc::Output
//! [`change`]: Qdisc::change
//! [`change_tx_queue_len`]: Qdisc::change_tx_queue_len
//! [`dequeue`]: Qdisc::dequeue
//! [`enqueue`]: Qdisc::enqueue
//! [`enqueue_batch`]: Qdisc::enqueue_batch
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
//!             DropReason,
//!             ExtAck,
//!             Options,
//!             Qdisc,
//!             Refused, //
//!         },
//!         skbuff::SkBuff, //
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
//!     type Input = SharedProducer<SkBuff>;
//!     type Output = Consumer<SkBuff>;
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
//!     fn enqueue(input: &Self::Input, cx: Softirq<'_>, skb: SkBuff) -> Result<(), Refused> {
//!         input
//!             .push(cx, skb)
//!             .map_err(|skb| Refused::new(skb, DropReason::OverLimit))
//!     }
//!
//!     fn dequeue(output: &mut Self::Output) -> Option<SkBuff> {
//!         output.pop()
//!     }
//!
//!     fn peek(output: &mut Self::Output) -> Option<&SkBuff> {
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
    net::skbuff::SkBuff,
    prelude::*,
    softirq::Softirq,
    sync::alf_queue::Chunk, //
};

mod drops;
mod netlink;
mod ops;
mod tests;

pub use self::{
    drops::{
        DropReason,
        Drops,
        Refused, //
    },
    netlink::{
        Dump,
        ExtAck,
        FifoOptions,
        Options, //
    },
    ops::Ops, //
};

/// The most packets that [`Qdisc::enqueue_batch`] gets at once.
pub const BATCH: usize = 32;

/// Packets on their way into a discipline, in order.
pub type Batch = Chunk<SkBuff, BATCH>;

/// A lockless queueing discipline.
///
/// The implementing type is a marker: it holds nothing. See the [module](self) for who may use what
/// at which time.
#[vtable]
pub trait Qdisc: Sized + 'static {
    /// What `tc` calls it: 1 to 15 characters.
    const NAME: &'static CStr;

    /// Whether a packet that finds the discipline empty and the device idle may be transmitted
    /// without having been put in.
    ///
    /// Only for those that would take any packet out again at once.
    const CAN_BYPASS: bool = false;

    /// What options say.
    type Config;

    /// What is needed to put packets in.
    type Input: Send + Sync;

    /// What is needed to take packets out.
    type Output: Send;

    /// Looks at the options for a new discipline, or for a change.
    ///
    /// `tx_queue_len` is how many packets the device's owner wants to have waiting, and may be 0.
    /// Options that are refused should be with a message, see [`ExtAck::refuse`]. Process context,
    /// RTNL held.
    fn parse(
        tx_queue_len: u32,
        options: Option<Options<'_>>,
        extack: &mut ExtAck<'_>,
    ) -> Result<Self::Config>;

    /// Makes a discipline.
    ///
    /// Process context, RTNL held.
    fn init(config: Self::Config) -> Result<(Self::Input, Self::Output)>;

    /// Puts a packet in, or refuses it.
    fn enqueue(input: &Self::Input, cx: Softirq<'_>, skb: SkBuff) -> Result<(), Refused>;

    /// Puts the first of `packets` in, as many as there is room for.
    ///
    /// What is left is dropped with [`DropReason::OverLimit`]. Without this, several packets at
    /// once are put in one by one.
    fn enqueue_batch(input: &Self::Input, cx: Softirq<'_>, packets: &mut Batch) {
        let _ = (input, cx, packets);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Takes out the packet that is to be transmitted next.
    ///
    /// What [`enqueue`](Qdisc::enqueue) had put in before this was called must be found.
    fn dequeue(output: &mut Self::Output) -> Option<SkBuff>;

    /// Looks at the packet that [`dequeue`](Qdisc::dequeue) would take out.
    fn peek(output: &mut Self::Output) -> Option<&SkBuff>;

    /// Drops all packets.
    ///
    /// Without this, they are taken out until there is none. A discipline that keeps packets back
    /// has to say more.
    fn reset(output: &mut Self::Output, drops: &mut Drops) {
        let _ = (output, drops);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Makes the discipline one with other options. Packets stay, or are dropped.
    ///
    /// If this fails, the discipline should be as before. Without this, options cannot be changed.
    /// Process context, RTNL held; the discipline is not in use.
    fn change(
        input: &mut Self::Input,
        output: &mut Self::Output,
        config: Self::Config,
        drops: &mut Drops,
    ) -> Result {
        let _ = (input, output, config, drops);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The device's owner wants to have another number of packets waiting.
    ///
    /// If this fails, that number stays as it was. Process context, RTNL held; the discipline is
    /// not in use.
    fn change_tx_queue_len(
        input: &mut Self::Input,
        output: &mut Self::Output,
        tx_queue_len: u32,
        drops: &mut Drops,
    ) -> Result {
        let _ = (input, output, tx_queue_len, drops);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Says what the options are.
    ///
    /// Process context, RTNL held; the discipline may be in use.
    fn dump(input: &Self::Input, dump: &mut Dump<'_>) -> Result {
        let _ = (input, dump);
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

/// A kind of discipline that `tc` can create, until this is dropped.
///
/// Disciplines that exist then go on: the operations are static, and each of the disciplines keeps
/// the module that owns them from being unloaded.
///
/// # Invariants
///
/// `ops` is registered.
pub struct Registration<T: Qdisc> {
    ops: &'static Ops<T>,
}

impl<T: Qdisc> Registration<T> {
    /// Makes a kind of discipline known. [`module_qdisc!`](crate::module_qdisc) does that.
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
        // SAFETY: The operations are valid for ever, and complete.
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

                // SAFETY: Nothing that could fail comes after this.
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
