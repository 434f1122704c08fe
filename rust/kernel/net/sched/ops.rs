// SPDX-License-Identifier: GPL-2.0

//! The operations of a queueing discipline, as C calls them.

use super::{
    older::{
        Older,
        Parts,
        MOST_OLDER, //
    },
    Drops,
    Dump,
    ExtAck,
    Options,
    Qdisc,
    QdiscDropReason,
    QueuedSkBuff, //
};

use crate::{
    bindings,
    error::from_result,
    module::this_module,
    pr_warn_once,
    prelude::*,
    softirq::Softirq,
    sync::atomic::{
        Acquire,
        Atomic,
        Full, //
    },
    types::Opaque, //
};

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    mem::{
        align_of,
        size_of,
        MaybeUninit, //
    },
    ptr::{
        self,
        NonNull, //
    }, //
};

/// The private part of a `struct Qdisc`.
///
/// The memory comes zeroed from C.
///
/// # Invariants
///
/// - If `ready` is set, `input` points to a box that the discipline owns, and `output` is
///   initialised.
/// - What `input` points to is only read, until a grace period after it was replaced.
/// - `output` is used by one context at a time.
#[repr(C)]
struct Private<T: Qdisc> {
    /// Written by `init()` and `destroy()` only.
    ready: bool,
    input: Atomic<*mut T::Input>,
    /// Keeps the state that all enqueueing CPUs read and the state that dequeueing writes on
    /// different cache lines.
    _apart: [u8; 64],
    output: UnsafeCell<MaybeUninit<Parts<T>>>,
}

/// Excludes dequeueing from a discipline until it is dropped.
///
/// # Invariants
///
/// The lock of `sch` for dequeueing is held, and RTNL.
struct DequeueLock {
    sch: *mut bindings::Qdisc,
}

impl DequeueLock {
    /// # Safety
    ///
    /// `sch` must be valid as long as this lives, and RTNL be held.
    unsafe fn new(sch: *mut bindings::Qdisc) -> Self {
        // SAFETY: By the safety requirements.
        unsafe { bindings::qdisc_dequeue_lock(sch) };
        // INVARIANT: Locked just now.
        Self { sch }
    }
}

impl Drop for DequeueLock {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, the lock is held.
        unsafe { bindings::qdisc_dequeue_unlock(self.sch) };
    }
}

/// The operations of a kind of discipline. To be put into a `static`.
///
/// C calls the callbacks as documented at `struct Qdisc_ops`, for a `struct Qdisc` that was created
/// with these operations, in the context that the [module](super) names.
#[repr(transparent)]
pub struct Ops<T: Qdisc> {
    ops: Opaque<bindings::Qdisc_ops>,
    _type: PhantomData<fn(T)>,
}

// SAFETY: Only C accesses the contents, with locks of its own.
unsafe impl<T: Qdisc> Sync for Ops<T> {}

// Callbacks.
//
// # Safety
//
// The conditions that are given at `Ops` must hold.
impl<T: Qdisc> Ops<T> {
    /// Returns the operations. The module that implements `T` stays loaded as long as there is a
    /// discipline of this kind.
    #[expect(clippy::new_without_default, reason = "they are put into statics only")]
    pub const fn new() -> Self {
        const {
            // C allocates the private part right behind a `struct Qdisc`.
            assert!(align_of::<Private<T>>() <= align_of::<bindings::Qdisc>());
            assert!(size_of::<Private<T>>() <= i32::MAX as usize);
        }
        // CAST: Checked above.
        let priv_size = size_of::<Private<T>>() as c_int;

        Self {
            ops: Opaque::new(bindings::Qdisc_ops {
                id: Self::ID,
                priv_size,
                static_flags: bindings::TCQ_F_NOLOCK | bindings::TCQ_F_CPUSTATS,
                enqueue: Some(Self::enqueue),
                dequeue: Some(Self::dequeue),
                peek: Some(Self::peek),
                init: Some(Self::init),
                reset: Some(Self::reset),
                destroy: Some(Self::destroy),
                change: if T::HAS_CHANGE {
                    Some(Self::change)
                } else {
                    None
                },
                change_tx_queue_len: if T::HAS_CHANGE_TX_QUEUE_LEN {
                    Some(Self::change_tx_queue_len)
                } else {
                    None
                },
                dump: if T::HAS_DUMP { Some(Self::dump) } else { None },
                owner: this_module::<T::OwnerModule>().as_ptr(),
                // SAFETY: The other operations may be null: they are not implemented.
                ..unsafe { MaybeUninit::<bindings::Qdisc_ops>::zeroed().assume_init() }
            }),
            _type: PhantomData,
        }
    }

    /// The name, in C's form.
    const ID: [c_char; bindings::IFNAMSIZ as usize] = {
        let name = T::NAME.to_bytes();
        let mut id = [0; bindings::IFNAMSIZ as usize];
        assert!(!name.is_empty() && name.len() < id.len());

        let mut at = 0;
        while at < name.len() {
            // CAST: Either is one byte.
            id[at] = name[at] as c_char;
            at += 1;
        }
        id
    };

    pub(super) const fn as_raw(&self) -> *mut bindings::Qdisc_ops {
        self.ops.get()
    }

    /// # Safety
    ///
    /// `sch` must be a discipline of this kind, and outlive `'a`.
    #[inline(always)]
    unsafe fn private<'a>(sch: *mut bindings::Qdisc) -> &'a Private<T> {
        // SAFETY: By the safety requirements. C has allocated as much as we asked for, zeroed.
        unsafe { &*bindings::qdisc_priv(sch).cast::<Private<T>>() }
    }

    /// # Safety
    ///
    /// `sch` must be a discipline of this kind that is ready. It must outlive `'a`, during which
    /// either bottom halves are disabled or RTNL is held.
    #[inline(always)]
    pub(super) unsafe fn input<'a>(sch: *mut bindings::Qdisc) -> &'a T::Input {
        // SAFETY: By the safety requirements and the invariants of `Private`. It is replaced with
        // RTNL held only, and freed a grace period later, which waits for disabled bottom halves.
        // Acquire pairs with the exchange that makes it visible.
        unsafe { &*Self::private(sch).input.load(Acquire) }
    }

    /// # Safety
    ///
    /// `sch` must be a discipline of this kind that is ready, and outlive `'a`, during which there
    /// must be no other access to its dequeueing state.
    #[inline(always)]
    pub(super) unsafe fn output<'a>(sch: *mut bindings::Qdisc) -> &'a mut Parts<T> {
        // SAFETY: By the safety requirements and the invariants of `Private`.
        unsafe { (*Self::private(sch).output.get()).assume_init_mut() }
    }

    /// Parses the options of a message.
    ///
    /// # Safety
    ///
    /// `sch` must be a valid discipline, `opt` and `extack` null or valid.
    unsafe fn parse(
        sch: *mut bindings::Qdisc,
        opt: *mut bindings::nlattr,
        extack: *mut bindings::netlink_ext_ack,
    ) -> Result<T::Config> {
        // SAFETY: By the safety requirements.
        let (options, mut extack, tx_queue_len) = unsafe {
            (
                Options::from_raw(opt),
                ExtAck::from_raw(extack),
                bindings::qdisc_tx_queue_len(sch),
            )
        };
        T::parse(tx_queue_len, options, &mut extack)
    }

    /// # Safety
    ///
    /// See [`Ops`]. The discipline was not used before, `opt` and `extack` are null or valid.
    unsafe extern "C" fn init(
        sch: *mut bindings::Qdisc,
        opt: *mut bindings::nlattr,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the safety requirements, which the parser of the message ensures.
            let config = unsafe { Self::parse(sch, opt, extack) }?;
            let (input, output) = T::init(config)?;
            let input = KBox::new(input, GFP_KERNEL)?;

            // INVARIANT: Both parts are initialised.
            //
            // SAFETY: The discipline is new, and not in use yet.
            unsafe {
                let private = bindings::qdisc_priv(sch).cast::<Private<T>>();
                (&raw mut (*private).input).write(Atomic::new(KBox::into_raw(input)));
                (&raw mut (*private).output)
                    .cast::<Parts<T>>()
                    .write(Parts::new(output));
                (*private).ready = true;
                if T::CAN_BYPASS {
                    bindings::qdisc_allow_bypass(sch);
                }
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See [`Ops`]. The discipline is not in use any more. It need not have become ready.
    unsafe extern "C" fn destroy(sch: *mut bindings::Qdisc) {
        // SAFETY: By the safety requirements. If both parts are initialised, they are not used
        // again.
        unsafe {
            let private = bindings::qdisc_priv(sch).cast::<Private<T>>();
            if ptr::replace(&raw mut (*private).ready, false) {
                drop(KBox::from_raw((*private).input.load(Acquire)));
                ptr::drop_in_place((&raw mut (*private).output).cast::<Parts<T>>());
            }
        }
    }

    /// # Safety
    ///
    /// See [`Ops`]. `skb` is ours, its control block is that of queueing disciplines, and `to_free`
    /// is the head of a list. Bottom halves are disabled.
    unsafe extern "C" fn enqueue(
        skb: *mut bindings::sk_buff,
        sch: *mut bindings::Qdisc,
        to_free: *mut *mut bindings::sk_buff,
    ) -> c_int {
        // SAFETY: By the safety requirements; this is not built for kernels where disabled bottom
        // halves exclude nothing. A discipline that gets packets is ready. The packet may be gone
        // as soon as it is enqueued. There may be other references to it, pktgen keeps one, but its
        // links and its control block are the discipline's.
        unsafe {
            let bytes = bindings::qdisc_pkt_len(skb);
            let owned = QueuedSkBuff::from_raw(NonNull::new_unchecked(skb));
            match T::enqueue(Self::input(sch), Softirq::assume(), owned) {
                Ok(()) => {
                    bindings::qdisc_enqueued(sch, bytes);
                    bindings::NET_XMIT_SUCCESS as c_int
                }
                Err(refused) => {
                    Self::refuse(refused.skb, refused.reason, sch, to_free);
                    bindings::NET_XMIT_DROP as c_int
                }
            }
        }
    }

    /// Counts a packet as dropped, and puts it on the list of packets to free.
    ///
    /// # Safety
    ///
    /// `sch` must be a valid discipline, and `to_free` the head of a list.
    #[cold]
    unsafe fn refuse(
        skb: QueuedSkBuff,
        reason: QdiscDropReason,
        sch: *mut bindings::Qdisc,
        to_free: *mut *mut bindings::sk_buff,
    ) {
        // SAFETY: By the safety requirements. The packet is ours, and is given away.
        unsafe {
            bindings::qdisc_refuse(skb.into_raw().as_ptr(), sch, to_free, reason as u32);
        }
    }

    /// # Safety
    ///
    /// See [`Ops`]. No other CPU dequeues packets.
    unsafe extern "C" fn dequeue(sch: *mut bindings::Qdisc) -> *mut bindings::sk_buff {
        // SAFETY: By the safety requirements. A discipline that is asked for packets is ready.
        unsafe {
            let output = Self::output(sch);
            let mut skb = output.dequeue();
            if skb.is_none() && bindings::qdisc_look_again(sch) {
                skb = output.dequeue();
            }
            match skb {
                Some(skb) if skb.may_leave(sch) => {
                    let skb = skb.into_raw().as_ptr();
                    bindings::qdisc_dequeued(sch, skb);
                    skb
                }
                Some(skb) => {
                    drop_foreign(skb);
                    ptr::null_mut()
                }
                None => ptr::null_mut(),
            }
        }
    }

    /// # Safety
    ///
    /// As for [`Self::dequeue`].
    unsafe extern "C" fn peek(sch: *mut bindings::Qdisc) -> *mut bindings::sk_buff {
        // SAFETY: As in `dequeue()`.
        unsafe { Self::output(sch) }
            .peek()
            .map_or(ptr::null_mut(), |skb| skb.as_raw())
    }

    /// # Safety
    ///
    /// As for [`Self::dequeue`], but the discipline need not have become ready.
    unsafe extern "C" fn reset(sch: *mut bindings::Qdisc) {
        // SAFETY: By the safety requirements.
        unsafe {
            if !Self::private(sch).ready {
                return;
            }
            Self::output(sch).reset(&mut Drops::new());
            bindings::qdisc_emptied(sch);
        }
    }

    /// Replaces both parts of a discipline by those that `f` makes, if any, while it is in use.
    ///
    /// Packets go on to be dequeued in order: those that were enqueued before come first. If there
    /// are packets from before [`MOST_OLDER`] changes, this fails with `EBUSY`.
    ///
    /// # Safety
    ///
    /// `sch` must be a discipline of this kind that is ready, and `extack` null or valid. RTNL must
    /// be held.
    unsafe fn replace(
        sch: *mut bindings::Qdisc,
        extack: *mut bindings::netlink_ext_ack,
        f: impl FnOnce(&T::Input) -> Result<Option<(T::Input, T::Output)>>,
    ) -> Result {
        // SAFETY: By the safety requirements.
        let (private, current) = unsafe { (Self::private(sch), Self::input(sch)) };
        let Some((input, output)) = f(current)? else {
            return Ok(());
        };
        // SAFETY: By the safety requirements. The lock excludes other accesses.
        let has_room = unsafe {
            let _lock = DequeueLock::new(sch);
            Self::output(sch).has_room()
        };
        if !has_room {
            // SAFETY: By the safety requirements.
            let mut extack = unsafe { ExtAck::from_raw(extack) };
            return Err(extack.refuse(
                EBUSY,
                fmt!("packets of {MOST_OLDER} changes wait: try again later, or replace it"),
            ));
        }
        let input = KBox::new(input, GFP_KERNEL)?;
        let older = Older::memory(GFP_KERNEL)?;

        // The new part is dequeued from before anything is enqueued there. There is room still:
        // only changes take it up.
        //
        // SAFETY: By the safety requirements. The lock excludes other accesses.
        unsafe {
            let _lock = DequeueLock::new(sch);
            Self::output(sch).replace(output, older);
        }
        // INVARIANT: The box is given to the discipline, and the old one taken from it.
        let old = private.input.xchg(KBox::into_raw(input), Full);
        // SAFETY: RTNL is held, so this is process context.
        unsafe { bindings::synchronize_net() };
        // SAFETY: It was a box, and those that have read the pointer before have ended since.
        drop(unsafe { KBox::from_raw(old) });
        // SAFETY: As above.
        unsafe {
            let _lock = DequeueLock::new(sch);
            Self::output(sch).settle();
        }
        Ok(())
    }

    /// # Safety
    ///
    /// See [`Ops`]. The discipline is ready, RTNL is held, `opt` and `extack` are null or valid.
    unsafe extern "C" fn change(
        sch: *mut bindings::Qdisc,
        opt: *mut bindings::nlattr,
        extack: *mut bindings::netlink_ext_ack,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the safety requirements.
            unsafe {
                let config = Self::parse(sch, opt, extack)?;
                Self::replace(sch, extack, |input| T::change(input, config))?;
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See [`Ops`]. The discipline is ready, and RTNL is held.
    unsafe extern "C" fn change_tx_queue_len(
        sch: *mut bindings::Qdisc,
        tx_queue_len: c_uint,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the safety requirements.
            unsafe {
                Self::replace(sch, ptr::null_mut(), |input| {
                    T::change_tx_queue_len(input, tx_queue_len)
                })?;
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See [`Ops`]. The discipline is ready, `skb` is a message that is being built. RTNL is held,
    /// so it does not change.
    unsafe extern "C" fn dump(sch: *mut bindings::Qdisc, skb: *mut bindings::sk_buff) -> c_int {
        // SAFETY: By the safety requirements.
        let result = unsafe { T::dump(Self::input(sch), &mut Dump::from_raw(skb)) };

        match result {
            // SAFETY: The message is valid.
            Ok(()) => unsafe { (*skb).len as c_int },
            Err(error) => error.to_errno(),
        }
    }
}

/// Drops a packet that the core has not given to this discipline.
#[cold]
fn drop_foreign(skb: QueuedSkBuff) {
    pr_warn_once!("a queueing discipline returned a packet of another device or queue\n");
    drop(skb);
}
