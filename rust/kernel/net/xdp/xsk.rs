// SPDX-License-Identifier: GPL-2.0

//! AF_XDP without copies: the NIC receives to, and sends from, memory of users.
//!
//! C header: [`include/net/xdp_sock_drv.h`](srctree/include/net/xdp_sock_drv.h)
//!
//! A user binds a socket to a queue, with a pool of frames in memory of its own ([`XskPool`]). The
//! receive queue gets an [`XskRing`] in place of its ring of pages, by a restart of that queue. A
//! program decides which frames the socket gets: it redirects them there. Others are copied if
//! they go to the stack.
//!
//! # User memory
//!
//! The user may write to the memory at any time, also to what a NIC receives, and give a frame to
//! the kernel several times. So there is no reference to what is in it, nor to the description of a
//! frame: an [`XskFrame`] is a pointer, and its bytes can be copied, by C, as they are by then.
//! A length or an address that counts was checked in memory of the kernel.
//!
//! # Frames in several buffers
//!
//! The kernel's list of the buffers is that of the pool, for one frame at a time: so such a frame
//! is taken from the ring, seen by a program, and gone or copied, in one call
//! ([`XskPolling::take_other`]). C has a second list, for functions that programs call, as
//! `bpf_xdp_adjust_tail()`: it is at the end of the first buffer, where the user may write. Nothing
//! here reads that list, and what C has made of it is checked.
//!
//! # Lifetimes
//!
//! * A pool is C's, from when it is bound until it is unbound. Unbinding cannot fail, as the user's
//!   memory goes away: the queue is restarted without it, else the device, else that is closed.
//!   After that, there is no ring with this pool that a poll function has. If the NIC did not stop,
//!   one is left that waits for a reset: it does not touch the pool any more, and keeps the memory
//!   of the user pinned and mapped.
//! * A ring allocates no frame of its pool before it is polled for the first time: the one before
//!   may be in use with the same pool, while it is made.
//! * An [`XskFrame`] does not outlive the poll. It goes back to the pool when it is dropped, and
//!   not to the ring: C may have taken it back before, when a socket had no room for it.

mod copy;
mod frame;
mod parts;
mod polling;
mod ring;
mod several;
mod tx;

use crate::bindings;

pub(in crate::net) use self::tx::TX_METADATA;
pub use crate::net::napi::{
    XskPool,
    XskRoom, //
};

pub use self::{
    copy::XskCopy,
    frame::XskFrame,
    polling::{
        XskNext,
        XskPolling,
        XskReceived,
        XskVerdict, //
    },
    ring::{
        XskRefilled,
        XskRing, //
    },
    several::XskOther,
    tx::XskSent, //
};

/// Whether the memory of a pool has to be synced. It was mapped before, so this does not change.
///
/// # Safety
///
/// The pool must be there.
#[cfg(CONFIG_XDP_SOCKETS)]
#[inline(always)]
unsafe fn needs_sync(pool: *mut bindings::xsk_buff_pool) -> bool {
    // SAFETY: By the safety requirements. A pool that is mapped has a device.
    unsafe { bindings::dma_dev_need_sync((*pool).dev) }
}

/// The same of kernels without such sockets, which have no pools.
///
/// # Safety
///
/// As there.
#[cfg(not(CONFIG_XDP_SOCKETS))]
unsafe fn needs_sync(_: *mut bindings::xsk_buff_pool) -> bool {
    false
}
