// SPDX-License-Identifier: GPL-2.0

//! Frames that XDP redirects to a device, whether that has a program of its own or not.
//!
//! There is a ring for each queue vector, which belongs to its NAPI instance. It has a transmit
//! queue of the NIC to itself, and frames find it by the CPU that they come on: with fewer vectors
//! than CPUs, some share one. The poll function of the vector takes back what was sent, so the
//! interrupt of the queue has to be that of the vector. A sender does so if there is no room.
//!
//! The rings are found while the device is up. When it goes down, they are withdrawn first, and
//! nobody uses them any more when a grace period has passed: before the NIC is stopped.

use super::{
    super::{
        inner::Inner,
        prelude::*,
        shared,
        targets::Target,
        Opening, //
    },
    XdpOps, //
};

use crate::{
    cpu::CpuId,
    device::{
        self,
        Bound, //
    },
    net::{
        queue::RingSize,
        xdp::{
            tx::XdpTxRing,
            XdpFormat,
            XdpTxAddress,
            XdpTxCounts, //
        }, //
    },
    sync::Arc, //
};

use core::{
    ptr::NonNull,
    slice, //
};

/// A driver whose NIC sends frames that are redirected to the device, see
/// [`OptionalOps::xdp_xmit`].
///
/// In these callbacks, a lock of the ring is held, and bottom halves are disabled.
pub trait XdpXmitOps: XdpOps {
    /// The descriptors of the rings.
    type Format: XdpFormat;

    /// Tells the NIC of all frames in the ring of a vector: `tail` is the descriptor behind them.
    fn xdp_doorbell<'bound>(data: Pin<&Self::Data<'bound>>, vector: u16, tail: usize);

    /// Counts frames of a ring that have ended.
    fn xdp_count<'bound>(data: Pin<&Self::Data<'bound>>, vector: u16, counts: XdpTxCounts);
}

impl<T: XdpXmitOps> Opening<'_, '_, T> {
    /// Adds the ring for frames that are redirected to the device, to the vector that was added
    /// last. All vectors have to have one, or none.
    ///
    /// `dev` must be the parent of the network device. The NIC is told of the ring in
    /// [`Driver::start`].
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory; [`EINVAL`] if `dev` is another device, or if a vector has
    /// no ring, or has one already.
    pub fn add_xdp_ring(
        &mut self,
        dev: &device::Device<Bound>,
        len: RingSize,
    ) -> Result<XdpTxAddress> {
        let (napi, targets) = self.last_vector().ok_or(EINVAL)?;

        napi.check_parent(dev)?;
        targets.reserve(1, GFP_KERNEL)?;
        // SAFETY: The parent is bound as long as objects belong to the instance.
        let ring = Arc::pin_init(unsafe { XdpTxRing::new(dev, len)? }, GFP_KERNEL)?;
        let target = Target(NonNull::from(&*ring).cast());
        let address = ring.address();

        napi.attach(ring)?;
        // There is room.
        let _ = targets.push_within_capacity(target);
        Ok(address)
    }
}

impl<T: XdpXmitOps> OptionalOps<T> {
    /// Adds the callback of [`XdpXmitOps`].
    pub const fn xdp_xmit(mut self) -> Self {
        self.netdev.ndo_xdp_xmit = Some(Self::ndo_xdp_xmit);
        self.complete_xdp = Some(complete::<T>);
        self.finish_xdp = Some(finish::<T>);
        self.xdp_features |= bindings::netdev_xdp_act_NETDEV_XDP_ACT_NDO_XMIT
            | bindings::netdev_xdp_act_NETDEV_XDP_ACT_NDO_XMIT_SG;
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with bottom halves disabled,
    /// and so many frames. Those that are taken become ours.
    unsafe extern "C" fn ndo_xdp_xmit(
        dev: *mut bindings::net_device,
        count: c_int,
        frames: *mut *mut bindings::xdp_frame,
        flags: u32,
    ) -> c_int {
        from_result(|| {
            if flags & !bindings::XDP_XMIT_FLAGS_MASK != 0 {
                return Err(EINVAL);
            }
            // SAFETY: The device is registered.
            let inner = unsafe { ops::inner::<T>(dev) };
            let (vector, ring) = find(inner).ok_or(ENETDOWN)?;
            let has_link = inner.dev().is_carrier_ok();
            // Without a link, frames would stay in the ring, with pages of other devices.
            let count = usize::try_from(count).map_or(0, |count| if has_link { count } else { 0 });
            // SAFETY: The core gives us so many frames, none of which is null.
            let frames = unsafe { slice::from_raw_parts(frames.cast_const().cast(), count) };
            let flush = flags & bindings::XDP_XMIT_FLUSH != 0;

            // SAFETY: By the safety requirements. The driver has no way to the ring.
            let taken = unsafe {
                ring.send::<T::Format>(frames, flush, |tail, counts| {
                    if let Some(tail) = tail {
                        T::xdp_doorbell(inner.data(), vector, tail);
                    }
                    if counts != XdpTxCounts::default() {
                        T::xdp_count(inner.data(), vector, counts);
                    }
                })
            };
            if !has_link {
                return Err(ENETDOWN);
            }
            // CAST: It was a `c_int`.
            Ok(taken as c_int)
        })
    }
}

/// The ring for frames on this CPU, and the number of its vector. Bottom halves are disabled, so
/// this is a section of RCU readers.
fn find<T: XdpXmitOps>(inner: &Inner<T>) -> Option<(u16, &XdpTxRing)> {
    let vector = CpuId::current()
        .as_u32()
        .checked_rem(inner.targets.count())?;
    // CAST: The number of vectors is a `u16`.
    let vector = vector as u16;
    let target = inner.targets.get(vector)?;

    // SAFETY: By the invariants of `Targets`, it exists. `add_xdp_ring()` has made it.
    Some((vector, unsafe { target.0.cast().as_ref() }))
}

/// Takes back frames that the NIC has sent.
///
/// # Safety
///
/// This must be the poll function of the vector, of a device of driver `T`, and not netpoll.
/// `target` must be its ring.
#[inline]
unsafe fn complete<T: XdpXmitOps>(dev: &Device, vector: u16, target: Target) {
    // SAFETY: By the safety requirements; `add_xdp_ring()` has made it.
    let ring = unsafe { target.0.cast::<XdpTxRing>().as_ref() };

    if ring.has_frames() {
        // SAFETY: By the safety requirements.
        unsafe { complete_some::<T>(dev, vector, ring) };
    }
}

/// As [`complete`].
///
/// # Safety
///
/// As there.
#[inline(never)]
unsafe fn complete_some<T: XdpXmitOps>(dev: &Device, vector: u16, ring: &XdpTxRing) {
    // SAFETY: By the safety requirements.
    let shared = unsafe { shared::of::<T>(dev.as_raw()) };

    // SAFETY: A poll function runs with bottom halves disabled, and without interrupts disabled if
    // it is not netpoll. The driver has no way to the ring.
    unsafe { ring.complete::<T::Format>(|counts| T::xdp_count(shared.data(), vector, counts)) };
}

/// Takes back all frames of a device that has gone down.
///
/// # Safety
///
/// This must be a device of driver `T`, and its NIC be stopped or have been reset. `target` must be
/// the ring of that vector, which nobody finds any more. Process context.
unsafe fn finish<T: XdpXmitOps>(dev: &Device, vector: u16, target: Target) {
    // SAFETY: By the safety requirements.
    let shared = unsafe { shared::of::<T>(dev.as_raw()) };
    // SAFETY: As above; `add_xdp_ring()` has made it.
    let ring = unsafe { target.0.cast::<XdpTxRing>().as_ref() };

    // SAFETY: By the safety requirements, and bottom halves are disabled meanwhile.
    unsafe {
        bindings::local_bh_disable();
        ring.finish::<T::Format>(|counts| T::xdp_count(shared.data(), vector, counts));
        bindings::local_bh_enable();
    }
}
