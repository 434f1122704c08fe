// SPDX-License-Identifier: GPL-2.0

//! The user's side of a pool: memory, and rings that it shares with the kernel. There is no process
//! with a socket.

use crate::{
    bindings,
    error::to_result,
    prelude::*, //
};

use core::ptr::{
    self,
    NonNull, //
};

pub(super) const CHUNK: usize = 2048;
/// The chunks for received frames; as many others are for frames that the user sends.
pub(super) const CHUNKS: usize = 16;
const ORDER: u32 = 4;
const PAGES: usize = 1 << ORDER;

/// `XDP_UMEM_SG_FLAG`.
const PARTS: u8 = 1 << 3;

const _: () = assert!(2 * CHUNKS * CHUNK == PAGES * 4096);

/// The beginning of C's `struct xsk_queue`, which it keeps to itself.
#[repr(C)]
struct Queue {
    mask: u32,
    entries: u32,
    cached_producer: u32,
    cached_consumer: u32,
    ring: *mut u8,
}

// These are built in, as the tests are.
unsafe extern "C" {
    fn xskq_create(entries: u32, is_umem: bool) -> *mut Queue;
    fn xskq_destroy(queue: *mut Queue);
}

/// # Safety
///
/// There are no requirements.
unsafe extern "C" fn no_space(_: *mut bindings::sock) {}

/// A ring.
///
/// # Invariants
///
/// It is a valid queue.
struct Ring(NonNull<Queue>);

impl Ring {
    const LINE: usize = if cfg!(CONFIG_SMP) {
        1 << bindings::L1_CACHE_SHIFT
    } else {
        4
    };
    const PRODUCER: usize = 0;
    const CONSUMER: usize = 2 * Self::LINE;
    const FLAGS: usize = 3 * Self::LINE + 4;
    const ITEMS: usize = if cfg!(CONFIG_SMP) { 5 * Self::LINE } else { 24 };

    fn new(is_umem: bool) -> Result<Self> {
        // SAFETY: There are no requirements.
        let queue = unsafe { xskq_create(CHUNKS as u32, is_umem) };

        // INVARIANT: It was just made.
        NonNull::new(queue).map(Self).ok_or(ENOMEM)
    }

    /// A word of it.
    fn word(&self, at: usize) -> *mut u32 {
        // SAFETY: By the type invariants.
        unsafe { (*self.0.as_ptr()).ring.wrapping_add(at).cast() }
    }

    fn get(&self, at: usize) -> u32 {
        // SAFETY: This is within the ring.
        unsafe { self.word(at).read_volatile() }
    }

    fn put<T>(&self, item: T) {
        let producer = self.get(Self::PRODUCER);
        let place = Self::ITEMS + producer as usize % CHUNKS * size_of::<T>();

        // SAFETY: This is within the ring, whose items are of this type.
        unsafe {
            self.word(place).cast::<T>().write_unaligned(item);
            self.word(Self::PRODUCER)
                .write_volatile(producer.wrapping_add(1));
        }
    }

    fn take<T: Copy>(&self) -> Option<T> {
        let consumer = self.get(Self::CONSUMER);

        if consumer == self.get(Self::PRODUCER) {
            return None;
        }
        let place = Self::ITEMS + consumer as usize % CHUNKS * size_of::<T>();
        // SAFETY: This is within the ring, whose items are of this type.
        unsafe {
            self.word(Self::CONSUMER)
                .write_volatile(consumer.wrapping_add(1));
            Some(self.word(place).cast::<T>().read_unaligned())
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: It is ours.
        unsafe { xskq_destroy(self.0.as_ptr()) };
    }
}

/// A pool, with the rings and the memory of its user.
///
/// # Invariants
///
/// All of them are valid, as long as `self` is there.
pub(super) struct User {
    pool: NonNull<bindings::xsk_buff_pool>,
    umem: KBox<bindings::xdp_umem>,
    socket: KBox<bindings::xdp_sock>,
    pages: NonNull<bindings::page>,
    _list: KVec<*mut bindings::page>,
    fill: Ring,
    completion: Ring,
    tx: Ring,
}

impl User {
    /// Makes a pool that is to be bound to a queue of a device.
    pub(super) fn new(dev: *mut bindings::net_device, queue: u16, wakes: bool) -> Result<Self> {
        Self::with_flags(dev, queue, wakes, 0, 0)
    }

    /// The same, with metadata of so many bytes in front of frames that are sent.
    pub(super) fn with_metadata(dev: *mut bindings::net_device, metadata: u8) -> Result<Self> {
        Self::with_flags(dev, 0, false, 0, metadata)
    }

    /// The same, with frames in several buffers.
    pub(super) fn with_parts(dev: *mut bindings::net_device, wakes: bool) -> Result<Self> {
        Self::with_flags(dev, 0, wakes, PARTS, 0)
    }

    fn with_flags(
        dev: *mut bindings::net_device,
        queue: u16,
        wakes: bool,
        flags: u8,
        metadata: u8,
    ) -> Result<Self> {
        let (fill, completion, tx) = (Ring::new(true)?, Ring::new(true)?, Ring::new(false)?);
        // SAFETY: There are no requirements.
        let pages = unsafe { bindings::alloc_pages(GFP_KERNEL.as_raw(), ORDER) };
        let pages = NonNull::new(pages).ok_or(ENOMEM)?;
        // SAFETY: The device is valid.
        let segments = unsafe { (*dev).xdp_zc_max_segs };
        let mut list = KVec::with_capacity(PAGES, GFP_KERNEL)?;
        let mut umem = KBox::new(bindings::xdp_umem::default(), GFP_KERNEL)?;
        // The last reference is not given up: it is not C's memory.
        umem.users.refs.counter = 1;
        // SAFETY: All zeroes are a value of it.
        let mut socket = unsafe {
            KBox::<bindings::xdp_sock>::new_uninit(GFP_KERNEL | __GFP_ZERO)?.assume_init()
        };

        for number in 0..PAGES {
            list.push(pages.as_ptr().wrapping_add(number), GFP_KERNEL)?;
        }
        // SAFETY: The pages are ours, one behind the other.
        umem.addrs = unsafe { bindings::page_address(pages.as_ptr()) };
        umem.size = (PAGES * 4096) as u64;
        umem.chunk_size = CHUNK as u32;
        umem.chunks = 2 * CHUNKS as u32;
        umem.npgs = PAGES as u32;
        umem.flags = flags;
        umem.tx_metadata_len = metadata;
        umem.pgs = list.as_mut_ptr();
        let head = &raw mut umem.xsk_dma_list;
        (umem.xsk_dma_list.next, umem.xsk_dma_list.prev) = (head, head);
        socket.tx = tx.0.as_ptr().cast();
        socket.fq_tmp = fill.0.as_ptr().cast();
        socket.cq_tmp = completion.0.as_ptr().cast();
        socket.sk.sk_write_space = Some(no_space);
        // SAFETY: Both are filled in as C needs them for that.
        let pool =
            unsafe { bindings::xp_create_and_assign_umem(&mut *socket, &mut *umem, segments) };
        let pool = NonNull::new(pool).ok_or(ENOMEM)?;

        // SAFETY: It is ours, and not in use yet. C does the same before it binds it.
        unsafe {
            (*pool.as_ptr()).netdev = dev;
            (*pool.as_ptr()).queue_id = queue;
            (*pool.as_ptr()).uses_need_wakeup = wakes;
            (*pool.as_ptr()).xdp_zc_max_segs = segments;
            bindings::xp_add_xsk(pool.as_ptr(), &mut *socket);
        }
        Ok(Self {
            pool,
            umem,
            socket,
            pages,
            _list: list,
            fill,
            completion,
            tx,
        })
    }

    fn setup(&self, pool: *mut bindings::xsk_buff_pool) -> Result {
        // SAFETY: By the type invariants.
        let (dev, queue_id) =
            unsafe { ((*self.pool.as_ptr()).netdev, (*self.pool.as_ptr()).queue_id) };
        let mut request = bindings::netdev_bpf {
            command: bindings::bpf_netdev_command_XDP_SETUP_XSK_POOL,
            __bindgen_anon_1: bindings::netdev_bpf__bindgen_ty_1 {
                xsk: bindings::netdev_bpf__bindgen_ty_1__bindgen_ty_3 { pool, queue_id },
            },
        };

        // SAFETY: The device is registered, and tests run in process context. The core does the
        // same.
        unsafe {
            bindings::rtnl_lock();
            bindings::netdev_lock_ops(dev);
            let bpf = (*(*dev).netdev_ops).ndo_bpf;
            let result = bpf.map_or(EOPNOTSUPP.to_errno(), |bpf| bpf(dev, &mut request));
            bindings::netdev_unlock_ops(dev);
            bindings::rtnl_unlock();
            to_result(result)
        }
    }

    /// Binds the pool.
    pub(super) fn bind(&self) -> Result {
        self.setup(self.pool.as_ptr())
    }

    /// Unbinds it.
    pub(super) fn unbind(&self) -> Result {
        self.setup(ptr::null_mut())
    }

    /// Closes all sockets, or opens them again: C's work that unbinds the pool then waits.
    pub(super) fn set_closed(&self, is_closed: bool) {
        // SAFETY: By the type invariants.
        unsafe { (*self.pool.as_ptr()).users.refs.counter = (!is_closed).into() };
    }

    /// Whether it is mapped.
    pub(super) fn is_mapped(&self) -> bool {
        // SAFETY: By the type invariants.
        unsafe { !(*self.pool.as_ptr()).dma_pages.is_null() }
    }

    /// The number of references to the memory beside the user's, and whether it is mapped,
    /// whatever has become of the pool.
    pub(super) fn kept(&self) -> (i32, bool) {
        let head = &raw const self.umem.xsk_dma_list;
        let is_mapped = !ptr::eq(self.umem.xsk_dma_list.next, head);

        (self.umem.users.refs.counter - 1, is_mapped)
    }

    /// Whether a mapping of the memory is found for a device.
    pub(super) fn is_mapped_for(&self, dev: *mut bindings::net_device) -> bool {
        let head = &raw const self.umem.xsk_dma_list;
        let mut entry = self.umem.xsk_dma_list.next.cast_const();

        while !ptr::eq(entry, head) {
            // SAFETY: The list has mappings.
            let (netdev, next) = unsafe {
                let map = crate::container_of!(entry, bindings::xsk_dma_map, list);

                ((*map).netdev, (*entry).next)
            };
            if netdev == dev {
                return true;
            }
            entry = next.cast_const();
        }
        false
    }

    /// The number of frames that were given back to the pool.
    pub(super) fn given_back(&self) -> u32 {
        // SAFETY: By the type invariants.
        unsafe { (*self.pool.as_ptr()).free_list_cnt }
    }

    /// Whether the kernel waits for a system call for received frames, or for those to be sent.
    pub(super) fn is_waited_for(&self) -> [bool; 2] {
        [&self.fill, &self.tx]
            .map(|ring| ring.get(Ring::FLAGS) & bindings::XDP_RING_NEED_WAKEUP != 0)
    }

    /// Gives the kernel chunks for received frames.
    pub(super) fn fill(&self, chunks: core::ops::Range<usize>) {
        for chunk in chunks {
            self.fill.put((chunk * CHUNK) as u64);
        }
    }

    /// Has the kernel send a frame at an address.
    pub(super) fn send(&self, addr: u64, len: u32) {
        self.send_with(addr, len, 0);
    }

    /// The same, with options.
    pub(super) fn send_with(&self, addr: u64, len: u32, options: u32) {
        self.tx.put(bindings::xdp_desc { addr, len, options });
    }

    /// The address of the next frame that was sent.
    pub(super) fn sent(&self) -> Option<u64> {
        self.completion.take()
    }

    /// Writes to the memory.
    pub(super) fn write(&self, at: usize, bytes: &[u8]) {
        // SAFETY: By the type invariants, it is ours, and all of it is there.
        unsafe {
            self.umem
                .addrs
                .cast::<u8>()
                .add(at)
                .copy_from(bytes.as_ptr(), bytes.len());
        }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        // SAFETY: It is unbound, and all of them are ours. The rings go by themselves.
        unsafe {
            bindings::xp_del_xsk(self.pool.as_ptr(), &mut *self.socket);
            bindings::synchronize_net();
            bindings::xp_destroy(self.pool.as_ptr());
            bindings::__free_pages(self.pages.as_ptr(), ORDER);
        }
    }
}
