// SPDX-License-Identifier: GPL-2.0

//! The path of a packet from the stack to a driver's transmit ring.
//!
//! A device has one [`TxPath`], from its registration on. [`Direct`] is the default: the core locks
//! the transmit queue, and the packet goes straight to [`Driver::start_xmit`]. Anything else, for
//! instance a path that gathers packets in front of the lock, is chosen with
//! [`register_with`](super::register_with). The rest of the device abstraction knows this trait and
//! none of its implementations. When the card is told of packets that are in the ring is another
//! choice, with a trait of its own: [`Doorbell`].
//!
//! The hot functions of a path, [`TxPath::start_xmit`] and [`TxPath::poll`], are statically
//! dispatched. The choice is made by function pointers that the core has in any case,
//! `ndo_start_xmit` and the poll function of a NAPI instance, so it costs a packet neither a branch
//! nor an indirect call. The other functions are called through a trait object.

use super::{
    ethtool::Statistics,
    ops::{
        self,
        Ops, //
    },
    registration::Inner,
    vector::Vector,
    Device,
    Driver, //
};

use crate::{
    bindings,
    net::{
        napi::{
            Poll,
            Polled, //
        },
        queue::WakeQueue,
        skbuff::{
            DropReason,
            SkBuff, //
        }, //
    },
    prelude::*, //
};

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

mod direct;
mod doorbell;

pub use self::{
    direct::Direct,
    doorbell::{
        Doorbell,
        DoorbellOf,
        Immediate, //
    }, //
};

/// How packets get from the stack to the transmit rings of a driver.
///
/// The implementing type holds the state of a device for that. Implementations are part of this
/// abstraction; a driver only names the one that it wants.
pub trait TxPath<T: Driver>: Send + Sync + 'static {
    /// Makes the path of a device with `queues` transmit queues.
    fn new(queues: u16) -> Result<Self>
    where
        Self: Sized;

    /// Transmits a packet, or returns it to the core with `NETDEV_TX_BUSY`.
    ///
    /// # Safety
    ///
    /// To be called by `ndo_start_xmit()` of `dev`, for a packet of that device, with bottom halves
    /// disabled. `inner` must be the private part of `dev`, and `self` belong to it.
    unsafe fn start_xmit(
        &self,
        inner: &Inner<T>,
        dev: &Device,
        skb: SkBuff,
    ) -> bindings::netdev_tx_t
    where
        Self: Sized;

    /// The waker of the transmit queue, for completions that have made room in its ring.
    fn waker(&self, index: u16) -> &dyn WakeQueue
    where
        Self: Sized;

    /// Calls `poll`, the driver's poll function, by way of [`DoorbellOf::poll`], and does for the
    /// transmit queue of the vector what has to follow.
    ///
    /// # Safety
    ///
    /// To be called by the poll function of a vector of the device of `inner`, to which `self`
    /// belongs.
    #[inline]
    unsafe fn poll(
        &self,
        _inner: &Inner<T>,
        cx: &Poll<'_>,
        poll: impl FnMut(&Poll<'_>) -> Polled,
    ) -> Polled
    where
        Self: Sized,
    {
        // SAFETY: By the safety requirements.
        unsafe { T::Doorbell::poll(cx, poll) }
    }

    /// The functions of this path that the core calls: `Callbacks::of` this type.
    fn callbacks(&self) -> Callbacks;

    /// Prepares a device that is about to be registered.
    fn prepare(&self, dev: &Device) {
        let _ = dev;
    }

    /// Gives up the packets that have not reached the driver, since the producer of the queue is
    /// being exchanged.
    ///
    /// # Safety
    ///
    /// The queue must be locked by this CPU.
    unsafe fn abandon(&self, inner: &Inner<T>, index: u16) {
        let _ = (inner, index);
    }

    /// Adds the statistics of the path to those of the driver.
    fn statistics(&self, statistics: &mut Statistics<'_>) {
        let _ = statistics;
    }
}

/// Makes a path for a device with that many queues.
pub(super) type NewPath<T> = fn(u16) -> Result<KBox<dyn TxPath<T>>>;

/// [`TxPath::new`] for a path of type `P`, whose type is forgotten.
pub(super) fn new<T: Driver, P: TxPath<T>>(queues: u16) -> Result<KBox<dyn TxPath<T>>> {
    let path: KBox<dyn TxPath<T>> = KBox::new(P::new(queues)?, GFP_KERNEL)?;

    Ok(path)
}

/// The functions of a path that the core calls.
#[derive(Clone, Copy)]
pub struct Callbacks {
    pub(super) ops: &'static bindings::net_device_ops,
    pub(super) poll: unsafe extern "C" fn(*mut bindings::napi_struct, c_int) -> c_int,
}

impl Callbacks {
    /// Those of a driver `T` whose packets take a path of type `P`.
    pub(super) const fn of<T: Driver, P: TxPath<T>>() -> Self {
        Self {
            ops: &Entry::<T, P>::OPS,
            poll: Vector::<T>::poll_callback::<P>,
        }
    }
}

/// `ndo_start_xmit()` of a path, and the table that it is part of.
struct Entry<T, P>(PhantomData<(T, P)>);

impl<T: Driver, P: TxPath<T>> Entry<T, P> {
    const OPS: bindings::net_device_ops = bindings::net_device_ops {
        ndo_start_xmit: Some(Self::start_xmit),
        ..Ops::<T>::WITHOUT_XMIT
    };

    /// # Safety
    ///
    /// To be called by the core only, for a device of driver `T` and path `P` between the beginning
    /// of its registration and the end of its unregistration. `skb` is ours.
    unsafe extern "C" fn start_xmit(
        skb: *mut bindings::sk_buff,
        dev: *mut bindings::net_device,
    ) -> bindings::netdev_tx_t {
        // SAFETY: The device is registered.
        let (inner, dev) = unsafe { (ops::inner::<T>(dev), Device::from_raw(dev)) };
        // SAFETY: The core gives us a valid packet, and with it its reference.
        let skb = unsafe { SkBuff::from_raw(NonNull::new_unchecked(skb)) };

        // SAFETY: The device has a path of type `P`. The core disables bottom halves.
        unsafe { inner.path_as::<P>().start_xmit(inner, dev, skb) }
    }
}

/// Drops a packet that cannot be transmitted, and counts it.
#[cold]
pub(super) fn drop_unsent<T: Driver>(inner: &Inner<T>, skb: SkBuff) -> bindings::netdev_tx_t {
    skb.drop_with(DropReason::DeviceNotReady);

    // SAFETY: The device is valid.
    unsafe { bindings::dev_core_stats_tx_dropped_inc(inner.dev().as_raw()) };
    bindings::netdev_tx::NETDEV_TX_OK
}

/// Returns a packet to the core, which keeps it and tries again.
#[inline]
pub(super) fn busy(skb: SkBuff) -> bindings::netdev_tx_t {
    let _ = skb.into_raw();
    bindings::netdev_tx::NETDEV_TX_BUSY
}
