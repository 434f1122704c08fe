// SPDX-License-Identifier: GPL-2.0

//! AF_XDP without copies, see [`xsk`](crate::net::xdp::xsk).
//!
//! To bind a pool to a queue, and to unbind it, takes a restart of the queue, as for a program: the
//! link stays up.

use super::{
    super::{
        inner::Inner,
        ops_lock::Locks,
        prelude::*,
        Feature, //
    },
    restart_queue,
    XdpOps, //
};

use crate::net::napi::XskPool;

use core::ptr::NonNull;

/// A driver whose queues can have memory of users, see [`OptionalOps::xsk`].
pub trait XskOps: XdpOps {
    /// Whether the NIC can receive to frames of so many bytes, as it is set up: each takes all
    /// that it may receive.
    fn takes_frames(dev: &Device, frame_len: u32) -> bool;

    /// The shortest frames of all pools that are bound to queues have this length from now on, or
    /// there are none. The driver has to refuse LRO while there are pools, and in
    /// [`Driver::change_mtu`] an MTU with which received frames may be longer.
    ///
    /// A queue with [a pool](crate::net::napi::Napi::xsk_pool) gets an [`XskRing`].
    ///
    /// [`XskRing`]: crate::net::xdp::xsk::XskRing
    fn frames_changed(data: &Self::Data<'_>, frame_len: Option<u32>);
}

impl<T: XskOps> OptionalOps<T> {
    /// Adds the callbacks of [`XskOps`], beside those of [`XdpOps`].
    pub const fn xsk(mut self) -> Self {
        self.netdev.ndo_xsk_wakeup = Some(Self::xsk_wakeup);
        self.xdp_features |= bindings::netdev_xdp_act_NETDEV_XDP_ACT_XSK_ZEROCOPY;
        self.setup_xsk = Some(Self::setup_xsk);
        self
    }

    /// # Safety
    ///
    /// See [`OptionalOps::setup_xsk`]. The device must be one of driver `T`.
    unsafe fn setup_xsk(
        dev: &Device,
        pool: *mut bindings::xsk_buff_pool,
        queue: u16,
        locks: &mut Locks<'static>,
    ) -> Result {
        // SAFETY: By the safety requirements.
        let inner = unsafe { ops::inner::<T>(dev.as_raw()) };

        match NonNull::new(pool) {
            // SAFETY: By the safety requirements.
            Some(pool) => unsafe { bind(inner, pool, queue, locks) },
            None => {
                unbind(inner, queue, locks);
                Ok(())
            }
        }
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with the lock of RCU readers
    /// held.
    unsafe extern "C" fn xsk_wakeup(
        dev: *mut bindings::net_device,
        queue: u32,
        _flags: u32,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        from_result(|| unsafe { wake(dev, queue) }.map(|()| 0))
    }
}

/// Has a queue polled, on this CPU. If it is being polled, that is done once more.
///
/// Not generic, so that this is not part of a driver's module.
///
/// # Safety
///
/// The device must be valid, and the lock of RCU readers be held.
unsafe fn wake(dev: *mut bindings::net_device, queue: u32) -> Result {
    // SAFETY: The device is valid, and has an array of so many queues. An instance is taken from
    // its queue first, and deleted after a grace period. One that is disabled is not scheduled.
    // Enabling bottom halves runs the poll function, if that is possible here.
    unsafe {
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        let index = queue as usize;
        if queue >= (*dev).num_rx_queues {
            return Err(EINVAL);
        }
        let napi = (&raw const (*(*dev)._rx.add(index)).napi).read_volatile();
        if napi.is_null() {
            return Err(ENETDOWN);
        }
        bindings::local_bh_disable();
        bindings::napi_schedule(napi);
        bindings::local_bh_enable();
    }
    Ok(())
}

/// Binds a pool to a queue.
///
/// # Safety
///
/// `raw` must be a pool that C binds to the queue, and that it keeps until it is unbound, or until
/// this fails.
unsafe fn bind<T: XskOps>(
    inner: &Inner<T>,
    raw: NonNull<bindings::xsk_buff_pool>,
    queue: u16,
    locks: &mut Locks<'static>,
) -> Result {
    let dev = inner.dev();

    inner.check_reachable()?;
    if T::attachment(inner.data().get_ref()).has_hook() {
        crate::netdev_err!(
            dev,
            "no AF_XDP without copies: a module handles the frames\n"
        );
        return Err(EBUSY);
    }
    if dev.features().contains(Feature::Lro) {
        crate::netdev_err!(dev, "no AF_XDP without copies: LRO is on\n");
        return Err(EINVAL);
    }
    // SAFETY: By the safety requirements.
    let frame_len = unsafe { bindings::xsk_pool_get_rx_frame_size(raw.as_ptr()) };
    // SAFETY: As above; it is mapped next.
    let pool = unsafe { XskPool::new(raw, dev.as_raw(), queue, frame_len)? };
    if !T::takes_frames(dev, frame_len) {
        let mtu = dev.mtu();
        crate::netdev_err!(
            dev,
            "no AF_XDP with {frame_len} bytes in a frame and an MTU of {mtu}\n"
        );
        return Err(EINVAL);
    }
    // SAFETY: The device is valid.
    let parent = NonNull::new(unsafe { (*dev.as_raw()).dev.parent }).ok_or(EOPNOTSUPP)?;
    // SAFETY: The pool is valid, and so is the parent of the device.
    unsafe { pool.map(parent)? };
    let are_in_use = inner
        .orphans
        .add_pool(queue, pool.clone())
        // SAFETY: It was just mapped, and is not in use.
        .inspect_err(|_| unsafe { pool.unmap() })?;
    tell(inner);
    if !are_in_use || inner.rx_vector(queue, locks.ops()).is_none() {
        // It is used when there is a program, and when the device goes up.
        return Ok(());
    }
    let result = restart_queue(dev, queue, locks).and_then(|()| {
        if pool.rings() == 0 {
            // The driver has made other memory.
            return Err(EOPNOTSUPP);
        }
        Ok(())
    });
    result.inspect_err(|_| unbind(inner, queue, locks))
}

/// Unbinds the pool of a queue, if it has one.
fn unbind<T: XskOps>(inner: &Inner<T>, queue: u16, locks: &mut Locks<'static>) {
    let Some(pool) = inner.orphans.take_pool(queue) else {
        return;
    };

    tell(inner);
    pool.leave();
    if inner.rx_vector(queue, locks.ops()).is_some() && pool.rings() != 0 {
        let restarted = restart_queue(inner.dev(), queue, locks);

        // No ring is left of a queue that was restarted, unless it did not stop.
        if restarted.is_err() || pool.rings() != 0 {
            // All of them go with the device. If it does not go up again, it is closed.
            let _ = inner.restart_or_close(locks);
        }
    }
    // SAFETY: The locks are held. There is no ring, or it is that of a device that has gone down
    // since, whose NIC did not stop. No other was made, as the pool has refused that. C keeps the
    // pool until this returns, and it was mapped.
    unsafe { pool.end() };
}

/// Has the queues of a device that has no program any more get other memory than users' one.
pub(super) fn without_program<T: Driver>(inner: &Inner<T>, locks: &mut Locks<'static>) {
    inner.orphans.use_pools(false);

    while let Some(queue) = inner.orphans.queue_with_rings() {
        if inner.rx_vector(queue, locks.ops()).is_none() {
            // They are those of a device that is down, whose NIC did not stop.
            return;
        }
        let restarted = restart_queue(inner.dev(), queue, locks);

        if restarted.is_err() || inner.orphans.queue_with_rings() == Some(queue) {
            // As when it is unbound.
            let _ = inner.restart_or_close(locks);
            return;
        }
    }
}

/// Tells the driver of the length of frames.
fn tell<T: XskOps>(inner: &Inner<T>) {
    T::frames_changed(inner.data().get_ref(), inner.orphans.frame_len());
}
