// SPDX-License-Identifier: GPL-2.0

//! AF_XDP without copies, see [`xsk`](crate::net::xdp::xsk).
//!
//! To bind a pool to a queue, and to unbind it, takes a restart of the queue, as for a program: the
//! link stays up.

use super::{
    super::{
        inner::Inner,
        ops_lock::Locks,
        optional_ops::Exclusion,
        prelude::*,
        queue_mgmt::QueueMgmtOps,
        Feature, //
    },
    restart_queue,
    XdpOps, //
};

use crate::net::{
    napi::{
        XskPool,
        XskRoom, //
    },
    xdp::{
        xsk::TX_METADATA,
        XdpFormat, //
    }, //
};

use core::ptr::NonNull;

/// A driver whose queues can have memory of users, see [`OptionalOps::xsk`].
///
/// A queue with [a pool](crate::net::napi::Napi::xsk_pool) gets an [`XskRing`]. Pools exclude LRO,
/// and an MTU that is too great for their frames: the abstraction refuses both.
///
/// [`XskRing`]: crate::net::xdp::xsk::XskRing
pub trait XskOps: XdpOps + QueueMgmtOps {
    /// The formats of the rings.
    type Format: XdpFormat;

    /// Whether the NIC inserts checksums into frames of users: see [`XdpFormat::tx_checksum`].
    const TX_CHECKSUM: bool = false;

    /// The greatest MTU with which there is room for each frame that is received; 0 if there is
    /// none.
    fn max_mtu(room: XskRoom) -> u32;
}

impl<T: XskOps> OptionalOps<T> {
    /// Adds the callbacks of [`XskOps`], beside those of [`XdpOps`].
    pub const fn xsk(mut self) -> Self {
        self.netdev.ndo_xsk_wakeup = Some(Self::xsk_wakeup);
        self.xdp_features |= bindings::netdev_xdp_act_NETDEV_XDP_ACT_XSK_ZEROCOPY;
        self.max_xsk_parts = if T::Format::MAX_PARTS < XskRoom::PARTS as usize {
            // CAST: Just checked.
            T::Format::MAX_PARTS as u32
        } else {
            XskRoom::PARTS
        };
        if T::TX_CHECKSUM {
            self.xsk_tx_metadata = Some(TX_METADATA);
        }
        self.setup_xsk = Some(Self::setup_xsk);
        self.exclusion = Some(Self::excluded_by_pool);
        self.end_exclusions = Some(Self::end_exclusions);
        self
    }

    /// The exclusion by a pool, or by a program.
    ///
    /// # Safety
    ///
    /// See [`OptionalOps::exclusion`].
    unsafe fn excluded_by_pool(dev: &Device) -> Option<Exclusion> {
        // SAFETY: By the safety requirements.
        let (inner, by_program) = unsafe {
            (
                ops::inner::<T>(dev.as_raw()),
                Self::excluded_by_program(dev),
            )
        };
        let by_pool = inner.orphans.max_mtu(T::max_mtu).map(|max_mtu| Exclusion {
            by: c"memory of AF_XDP",
            max_mtu,
        });

        [by_pool, by_program]
            .into_iter()
            .flatten()
            .min_by_key(|one| one.max_mtu)
    }

    /// Unbinds pools whose sockets have been closed. C does so later: a user who has closed the
    /// last one, and asks for an MTU next, is not to be refused because of it.
    ///
    /// # Safety
    ///
    /// See [`OptionalOps::end_exclusions`].
    unsafe fn end_exclusions(dev: &Device, locks: &mut Locks<'static>) {
        // SAFETY: By the safety requirements.
        let inner = unsafe { ops::inner::<T>(dev.as_raw()) };

        // SAFETY: This can be called in process context. A socket gives its pool up behind readers
        // of RCU.
        unsafe { bindings::rcu_barrier() };
        // SAFETY: RTNL is held.
        while let Some(queue) = unsafe { inner.orphans.queue_without_users() } {
            unbind(inner, queue, locks);
        }
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
        from_result(|| {
            // SAFETY: By the safety requirements.
            let inner = unsafe { ops::inner::<T>(dev) };

            // Nothing takes frames from users then, who would wait for them without end.
            if !T::attachment(inner.data().get_ref()).is_in_use() {
                return Err(ENXIO);
            }
            // SAFETY: By the safety requirements.
            unsafe { wake(dev, queue) }.map(|()| 0)
        })
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
    let attachment = T::attachment(inner.data().get_ref());

    inner.check_reachable()?;
    if attachment.has_hook() {
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
    let (room, has_metadata) = unsafe {
        (
            XskRoom::of(raw),
            bindings::xsk_pool_has_tx_metadata(raw.as_ptr()),
        )
    };
    // SAFETY: As above; it is mapped next.
    let pool = unsafe { XskPool::new(raw, dev.as_raw(), queue, room, has_metadata)? };
    pool.take_parts(!attachment.is_for_one_buffer());
    let max_mtu = T::max_mtu(pool.room());
    if dev.mtu() > max_mtu {
        let why = match (room.part, pool.room().part) {
            (None, _) => c"frames in one buffer",
            (_, None) => c"a program without xdp.frags",
            _ => c"frames in several buffers",
        };
        crate::netdev_err!(
            dev,
            "no AF_XDP with {} bytes in a buffer, {why}, and an MTU above {max_mtu}\n",
            room.whole
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
    if !are_in_use || inner.rx_vector(queue, locks.ops()).is_none() {
        // It is used when there is a program, and when the device goes up.
        return Ok(());
    }
    let result = restart_queue(inner, queue, locks, || pool.leave()).and_then(|()| {
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

    pool.leave();
    if inner.rx_vector(queue, locks.ops()).is_some() && pool.rings() != 0 {
        let restarted = restart_queue(inner, queue, locks, || {});

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
        let restarted = restart_queue(inner, queue, locks, || {});

        if restarted.is_err() || inner.orphans.queue_with_rings() == Some(queue) {
            // As when it is unbound.
            let _ = inner.restart_or_close(locks);
            return;
        }
    }
}
