// SPDX-License-Identifier: GPL-2.0

//! Pools of users' memory.

use crate::{
    bindings,
    error::to_result,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        static_lock_class,
        Arc,
        Mutex, //
    }, //
};

use core::ptr::NonNull;
#[cfg(CONFIG_XDP_SOCKETS)]
use core::{
    mem::{
        self,
        MaybeUninit, //
    },
    ptr, //
};

/// The pool syncs what needs that, not the mapping.
const MAPPING: c_ulong = bindings::DMA_ATTR_SKIP_CPU_SYNC as c_ulong;

/// The room for received frames in the memory of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XskRoom {
    /// The number of bytes of a frame in one buffer.
    pub whole: u32,
    /// The number of bytes in each buffer of a frame in several ones, up to [`Self::PARTS`], if the
    /// user and the program of the device take such frames.
    pub part: Option<u32>,
}

impl XskRoom {
    /// The most buffers of a frame: there may be room to list more in kernels for other needs. No
    /// frame of Ethernet needs more.
    pub const PARTS: u32 = 1 + 17;

    /// The room in the frames of a pool.
    ///
    /// # Safety
    ///
    /// It must be valid.
    pub(in crate::net) unsafe fn of(pool: NonNull<bindings::xsk_buff_pool>) -> Self {
        // SAFETY: By the safety requirements.
        let (whole, part) = unsafe {
            (
                bindings::xsk_pool_get_rx_frame_size(pool.as_ptr()),
                bindings::xsk_pool_get_rx_part_size(pool.as_ptr()),
            )
        };

        Self {
            whole,
            part: (part != 0).then_some(part),
        }
    }
}

const _: () = assert!(XskRoom::PARTS <= 1 + bindings::MAX_SKB_FRAGS);

/// The frames of a user's sockets, which are bound to a queue: `struct xsk_buff_pool` in C.
///
/// A driver finds it by [`Napi::xsk_pool`](super::Napi::xsk_pool) when it makes a receive ring. To
/// keep it longer is of no use.
///
/// # Invariants
///
/// - As long as `is_there`, `raw` is bound to `queue` of `dev`, and mapped for the parent of that.
///   It is set to false with the lock of the device's operations held, when no ring is in use by
///   an instance that is enabled.
/// - `rings` is the number of rings with this pool. It does not grow when `takes_rings` is false.
///   `rings_of_parts` are those of them that were made when `takes_parts` was true.
/// - If there are rings when the pool goes, `kept` has the memory until there are none.
#[pin_data]
pub struct XskPool {
    raw: NonNull<bindings::xsk_buff_pool>,
    dev: *mut bindings::net_device,
    queue: u16,
    room: XskRoom,
    has_metadata: bool,
    rings: Atomic<u32>,
    rings_of_parts: Atomic<u32>,
    takes_rings: Atomic<bool>,
    takes_parts: Atomic<bool>,
    is_there: Atomic<bool>,
    #[pin]
    kept: Mutex<Option<Kept>>,
}

/// The name of a lock class, see [`ATTACHED`](super::ATTACHED).
static KEPT: &CStr = c"napi::Kept";

// SAFETY: A pool is not tied to a thread. What accesses it asks for what it takes.
unsafe impl Send for XskPool {}

// SAFETY: As for `Send`. The fields change with the lock of the device's operations held.
unsafe impl Sync for XskPool {}

impl XskPool {
    /// Takes over a pool with this room in its frames that is about to be bound to a queue.
    ///
    /// # Safety
    ///
    /// `raw` must be valid, bound to that queue and [mapped](Self::map), until [`Self::end`].
    pub(in crate::net) unsafe fn new(
        raw: NonNull<bindings::xsk_buff_pool>,
        dev: *mut bindings::net_device,
        queue: u16,
        room: XskRoom,
        has_metadata: bool,
    ) -> Result<Arc<Self>> {
        // INVARIANT: By the safety requirements. There is no ring.
        let this = pin_init!(Self {
            raw,
            dev,
            queue,
            room,
            has_metadata,
            rings: Atomic::new(0),
            rings_of_parts: Atomic::new(0),
            takes_rings: Atomic::new(false),
            takes_parts: Atomic::new(true),
            is_there: Atomic::new(true),
            kept <- Mutex::new(None, KEPT, static_lock_class!()),
        });

        Arc::pin_init(this, GFP_KERNEL)
    }

    /// Maps the memory for a device, until [`Self::end`], or until [`Self::unmap`].
    ///
    /// # Safety
    ///
    /// The pool must be there, and `parent` be valid. RTNL must be held.
    pub(in crate::net) unsafe fn map(&self, parent: NonNull<bindings::device>) -> Result {
        // SAFETY: By the safety requirements.
        to_result(unsafe { bindings::xsk_pool_dma_map(self.as_raw(), parent.as_ptr(), MAPPING) })
    }

    /// Removes the mapping of a pool that was never in use.
    ///
    /// # Safety
    ///
    /// It must have been mapped. RTNL must be held.
    pub(in crate::net) unsafe fn unmap(&self) {
        // SAFETY: By the safety requirements.
        unsafe { bindings::xsk_pool_dma_unmap(self.as_raw(), MAPPING) };
    }

    /// The room for frames that the NIC receives. It changes with the program of the device, for
    /// rings that are made after that.
    pub fn room(&self) -> XskRoom {
        XskRoom {
            part: self.room.part.filter(|_| self.takes_parts.load(Relaxed)),
            ..self.room
        }
    }

    /// Whether users can ask for more with a frame than to send it.
    pub(in crate::net) fn has_metadata(&self) -> bool {
        self.has_metadata
    }

    /// The most descriptors of a frame of the user, for a NIC that sends frames in `most` ones.
    pub(in crate::net) fn sent_parts(&self, most: usize) -> usize {
        if self.room.part.is_some() {
            most.min(XskRoom::PARTS as usize)
        } else {
            1
        }
    }

    /// The pool, for those who know that it is there.
    #[inline(always)]
    pub(in crate::net) fn as_raw(&self) -> *mut bindings::xsk_buff_pool {
        self.raw.as_ptr()
    }

    /// Whether a socket has the pool. C unbinds one that none has, as soon as it gets RTNL.
    ///
    /// # Safety
    ///
    /// The pool must be there.
    #[cfg(CONFIG_XDP_SOCKETS)]
    pub(super) unsafe fn has_users(&self) -> bool {
        let users = {
            // SAFETY: By the safety requirements. A `refcount_t` is an `atomic_t`, which is an
            // `i32` in memory.
            unsafe { Atomic::<i32>::from_ptr((&raw mut (*self.as_raw()).users).cast::<i32>()) }
        };

        users.load(Relaxed) != 0
    }

    /// # Safety
    ///
    /// There must be such a pool, which there is not.
    #[cfg(not(CONFIG_XDP_SOCKETS))]
    pub(super) unsafe fn has_users(&self) -> bool {
        false
    }

    /// Whether the pool is there. With the lock of the device's operations held.
    pub(in crate::net) fn is_there(&self) -> bool {
        self.is_there.load(Relaxed)
    }

    /// Counts a ring of that queue, which is about to be made, for frames with this room. Fails if
    /// the pool is bound to another queue, or is about to go. With the lock of the device's
    /// operations held.
    pub(super) fn add_ring(
        &self,
        dev: *mut bindings::net_device,
        queue: u16,
        room: XskRoom,
    ) -> Result {
        if !self.takes_rings.load(Relaxed) || dev != self.dev || queue != self.queue {
            return Err(EINVAL);
        }
        if room.part.is_some() {
            self.rings_of_parts.fetch_add(1, Relaxed);
        }
        self.rings.fetch_add(1, Relaxed);
        Ok(())
    }

    /// A ring with this room is gone. Process context; if the pool is not there any more, with RTNL
    /// held.
    pub(in crate::net) fn remove_ring(&self, room: XskRoom) {
        if room.part.is_some() {
            self.rings_of_parts.fetch_sub(1, Relaxed);
        }
        if self.rings.fetch_sub(1, Relaxed) == 1 {
            // Dropped when the lock is not held.
            let _kept = self.kept.lock().take();
        }
    }

    /// The number of rings.
    pub(in crate::net) fn rings(&self) -> u32 {
        self.rings.load(Relaxed)
    }

    /// Whether it takes rings. With the lock of the device's operations held.
    pub(super) fn takes_rings(&self) -> bool {
        self.takes_rings.load(Relaxed)
    }

    /// Whether it has a ring that is as the program of the device wants it.
    pub(super) fn has_ring(&self) -> bool {
        let is_for_others =
            !self.takes_parts.load(Relaxed) && self.rings_of_parts.load(Relaxed) != 0;

        self.rings() != 0 && !is_for_others
    }

    /// Has rings take frames in several buffers from now on, or not, if the user takes them. With
    /// the lock of the device's operations held.
    pub(in crate::net) fn take_parts(&self, takes_parts: bool) {
        self.takes_parts.store(takes_parts, Relaxed);
    }

    /// Takes rings from now on, or not. With the lock of the device's operations held.
    pub(super) fn take_rings(&self, takes_rings: bool) {
        self.takes_rings.store(takes_rings, Relaxed);
    }

    /// Refuses other rings from now on. With the lock of the device's operations held.
    pub(in crate::net) fn leave(&self) {
        self.take_rings(false);
    }

    /// The pool is about to go. If there are rings, whose NIC did not stop, its memory stays pinned
    /// and mapped as long as they do.
    ///
    /// # Safety
    ///
    /// RTNL and the lock of the device's operations must be held. After [`Self::leave`], all rings
    /// must have gone that instances have which are enabled, or will be again.
    pub(in crate::net) unsafe fn end(&self) {
        // INVARIANT: By the safety requirements.
        self.is_there.store(false, Relaxed);
        if self.rings() == 0 {
            // SAFETY: C keeps the pool, and the memory is mapped.
            unsafe { self.unmap() };
        } else {
            // SAFETY: As above.
            *self.kept.lock() = Some(unsafe { Kept::take(self.raw, self.dev) });
        }
    }

    /// The device is about to go, and its NIC has not stopped. With RTNL held.
    pub(in crate::net) fn lose(&self) {
        if let Some(kept) = &mut *self.kept.lock() {
            kept.lose();
        }
    }
}

/// The memory of a pool that is gone, which a NIC may still access.
///
/// # Invariants
///
/// A reference to `umem` is ours, which has a mapping for `dev`, or for one that is gone if that is
/// null, counted for us, and the addresses of that are ours, as those of a pool are.
#[cfg(CONFIG_XDP_SOCKETS)]
struct Kept {
    umem: NonNull<bindings::xdp_umem>,
    dev: *mut bindings::net_device,
    addresses: *mut bindings::dma_addr_t,
}

/// In place of it: kernels without such sockets have no pools.
#[cfg(not(CONFIG_XDP_SOCKETS))]
struct Kept;

#[cfg(CONFIG_XDP_SOCKETS)]
impl Kept {
    /// Takes the memory of a pool over.
    ///
    /// # Safety
    ///
    /// The pool must be valid, and mapped for `dev`. RTNL must be held.
    unsafe fn take(pool: NonNull<bindings::xsk_buff_pool>, dev: *mut bindings::net_device) -> Self {
        let pool = pool.as_ptr();

        // SAFETY: By the safety requirements, the pool has memory.
        let (umem, addresses) = unsafe {
            let umem = NonNull::new_unchecked((*pool).umem);

            bindings::xdp_get_umem(umem.as_ptr());
            // The pool is as one without a mapping, for C.
            (umem, mem::replace(&mut (*pool).dma_pages, ptr::null_mut()))
        };

        // INVARIANT: The pool has given up its share of the mapping.
        Self {
            umem,
            dev,
            addresses,
        }
    }

    /// Keeps the mapping from devices that get the address of this one later. RTNL must be held.
    fn lose(&mut self) {
        // SAFETY: By the type invariants.
        unsafe { bindings::xdp_umem_forget(self.umem.as_ptr(), self.dev) };
        // INVARIANT: All mappings for the device have this one now.
        self.dev = ptr::null_mut();
    }
}

#[cfg(not(CONFIG_XDP_SOCKETS))]
impl Kept {
    fn lose(&mut self) {}

    /// # Safety
    ///
    /// There must be such a pool, which there is not.
    unsafe fn take(_: NonNull<bindings::xsk_buff_pool>, _: *mut bindings::net_device) -> Self {
        Self
    }
}

// SAFETY: The memory can be unmapped and given up by any task that holds RTNL.
#[cfg(CONFIG_XDP_SOCKETS)]
unsafe impl Send for Kept {}

#[cfg(CONFIG_XDP_SOCKETS)]
impl Drop for Kept {
    fn drop(&mut self) {
        // C takes the mapping from a pool: this one has nothing else.
        //
        // SAFETY: Zeroes are values of all its fields.
        let mut pool = unsafe { MaybeUninit::<bindings::xsk_buff_pool>::zeroed().assume_init() };

        (pool.umem, pool.netdev) = (self.umem.as_ptr(), self.dev);
        pool.dma_pages = self.addresses;
        // SAFETY: By the type invariants, and `remove_ring()` is called with RTNL held.
        unsafe {
            bindings::xp_dma_unmap(&raw mut pool, MAPPING);
            bindings::xdp_put_umem(self.umem.as_ptr(), false);
        }
    }
}
