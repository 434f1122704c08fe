// SPDX-License-Identifier: GPL-2.0

//! Frames that a module forwards in a poll function, until another device has taken them.
//!
//! They wait on the stack of the core's caller, and not in anything that a driver has: whatever it
//! drops or forgets, they are gone when the poll is over.

use super::Poll;

use crate::{
    bindings,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        rcu, //
    }, //
};

use core::{
    cell::{
        Cell,
        UnsafeCell, //
    },
    mem::MaybeUninit,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// The most frames that a device is given at a time, as C does it.
const BULK: usize = bindings::XDP_BULK_QUEUE_SIZE as usize;

/// A network device that a module forwards frames to.
///
/// When the device goes away, or leaves the network namespace, the port stays, and drops them.
///
/// # Invariants
///
/// `dev` is null, or a device that exists for as long as a section of RCU readers lasts that has
/// read it.
pub struct Port {
    dev: Atomic<*mut bindings::net_device>,
    forwarded: Atomic<u64>,
    dropped: Atomic<u64>,
}

impl Port {
    /// # Safety
    ///
    /// The device must be registered, and [`Self::leave`] be called when it is about to go away,
    /// with a grace period of RCU before it does.
    pub(in crate::net) unsafe fn new(dev: NonNull<bindings::net_device>) -> Self {
        // INVARIANT: By the safety requirements.
        Self {
            dev: Atomic::new(dev.as_ptr()),
            forwarded: Atomic::new(0),
            dropped: Atomic::new(0),
        }
    }

    /// The device is about to go away.
    pub(in crate::net) fn leave(&self) {
        self.dev.store(ptr::null_mut(), Release);
    }

    /// The device, or null, for as long as this section of RCU readers lasts, or RTNL is held.
    #[inline]
    pub(in crate::net) fn dev(&self) -> *mut bindings::net_device {
        self.dev.load(Acquire)
    }

    /// The MAC address of the device, unless that is gone. It may be about to change.
    pub fn mac_address(&self) -> Option<[u8; 6]> {
        let _guard = rcu::read_lock();
        let dev = NonNull::new(self.dev())?;

        // SAFETY: By the type invariants, the device exists. Ethernet devices have addresses of
        // this length, in a field with room for those that are longer.
        Some(unsafe { (*dev.as_ptr()).dev_addr.cast::<[u8; 6]>().read_volatile() })
    }

    /// The number of frames that the device has taken.
    pub fn forwarded(&self) -> u64 {
        self.forwarded.load(Relaxed)
    }

    /// The number of frames that were dropped on their way to the device: it was gone, down, or
    /// without a link; it had no room; or it does not send frames of that length, or of others.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Counts frames that were dropped.
    #[inline]
    pub(in crate::net) fn count_dropped(&self, count: u64) {
        self.dropped.fetch_add(count, Relaxed);
    }

    /// Has the device send frames, as far as it can: the result is their number.
    ///
    /// # Safety
    ///
    /// `frames` must be so many, valid and ours; those that are sent are not any more. This must be
    /// a poll function, and not netpoll.
    unsafe fn send(&self, frames: *mut *mut bindings::xdp_frame, count: usize) -> usize {
        let dev = self.dev();
        let flags = bindings::XDP_XMIT_FLUSH;
        let is_target = bindings::netdev_xdp_act_NETDEV_XDP_ACT_NDO_XMIT;
        let mut sent = 0;

        if !dev.is_null() {
            // SAFETY: By the type invariants, the device exists. By the safety requirements, it can
            // be called.
            unsafe {
                let xmit = (*(*dev).netdev_ops).ndo_xdp_xmit;
                if let Some(xmit) = xmit.filter(|_| (*dev).xdp_features & is_target != 0) {
                    // CAST: A few. An error is negative: no frame was taken.
                    sent = usize::try_from(xmit(dev, count as c_int, frames, flags)).unwrap_or(0);
                }
            }
        }
        self.forwarded.fetch_add(sent as u64, Relaxed);
        if sent < count {
            self.count_dropped((count - sent) as u64);
        }
        sent
    }
}

/// Frames that wait for the port that they go to.
///
/// # Invariants
///
/// So many of `frames` as `count` says are valid and ours, in memory of a page pool of the instance
/// that is being polled. If there are some, they go to `port`, which exists until the poll is over.
pub(super) struct Forwards {
    port: Cell<*const Port>,
    count: Cell<usize>,
    frames: UnsafeCell<[MaybeUninit<*mut bindings::xdp_frame>; BULK]>,
}

impl Forwards {
    /// None.
    #[inline]
    pub(super) fn new() -> Self {
        // INVARIANT: There are none.
        Self {
            port: Cell::new(ptr::null()),
            count: Cell::new(0),
            frames: UnsafeCell::new([const { MaybeUninit::uninit() }; BULK]),
        }
    }

    /// Gives the frames to the device, and drops those that it does not take.
    #[inline]
    pub(super) fn flush(&self) {
        if self.count.get() != 0 {
            self.flush_some();
        }
    }

    /// As [`Self::flush`].
    #[inline(never)]
    fn flush_some(&self) {
        let count = self.count.replace(0);
        let frames = self.frames.get().cast::<*mut bindings::xdp_frame>();

        // SAFETY: By the type invariants, the port exists, and has so many frames, which are not
        // `self`'s any more. They came in the poll function of an instance, which is not netpoll.
        let sent = unsafe { (*self.port.get()).send(frames, count) };
        for number in sent..count {
            // SAFETY: As above; this one was not sent. Its page is of a pool of the instance.
            unsafe { bindings::xdp_return_frame_rx_napi(*frames.add(number)) };
        }
    }
}

impl Poll<'_> {
    /// Forwards a frame: to the device when there are enough, or when the poll is over.
    ///
    /// # Safety
    ///
    /// The frame must be valid, in memory of a page pool of this instance, and becomes ours. `port`
    /// must exist until the poll function returns to the core, which must not be netpoll.
    #[inline]
    pub(in crate::net) unsafe fn forward(&self, port: &Port, frame: NonNull<bindings::xdp_frame>) {
        let forwards = &self.forwards;
        let mut count = forwards.count.get();

        if count == BULK || !ptr::eq(forwards.port.get(), port) {
            forwards.flush();
            forwards.port.set(port);
            count = 0;
        }
        let frames = forwards.frames.get().cast::<*mut bindings::xdp_frame>();
        // SAFETY: There are fewer than that. Nothing else has a reference to the array.
        unsafe { frames.add(count).write(frame.as_ptr()) };
        // INVARIANT: By the safety requirements.
        forwards.count.set(count + 1);
    }
}
