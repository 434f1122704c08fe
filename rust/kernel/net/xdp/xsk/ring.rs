// SPDX-License-Identifier: GPL-2.0

//! Receive rings with memory of users.

use super::tx::{
    Sent,
    TxSide,
    XskSent, //
};

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    net::{
        napi::{
            self,
            Attached,
            Napi,
            Poll,
            RxStopped,
            XskPool,
            XskRoom, //
        },
        page_pool::ring::places::Places,
        queue::{
            bus_address,
            Place,
            RingMemory,
            RingSize,
            RingSlots, //
        },
        xdp::{
            rxq::RxqInfo,
            XdpFormat, //
        }, //
    },
    prelude::*,
    sync::{
        barrier,
        Arc, //
    }, //
};

use core::{
    mem,
    ptr::NonNull, //
};

/// A frame that the NIC has: a pointer, which is null if there is none.
type Held = Option<NonNull<bindings::xdp_buff>>;

/// The memory of both rings, which the NAPI instance owns. It counts as a ring of the pool.
struct XskMemory {
    _rx: RingMemory,
    _tx: RingMemory,
    held: Places<Held>,
    sent: Places<Sent>,
    pool: Arc<XskPool>,
    room: XskRoom,
}

// SAFETY: What is in the places is not tied to a thread: they are used by a poll function, or in
// process context when that cannot run.
unsafe impl Send for XskMemory {}

// SAFETY: The one user of the places has the handle exclusively.
unsafe impl Sync for XskMemory {}

impl Attached for XskMemory {
    fn is_of_rx_queue(&self) -> bool {
        true
    }

    fn lose(&self) {
        self.pool.lose();
    }
}

impl Drop for XskMemory {
    fn drop(&mut self) {
        // If not, frames and users are gone.
        if self.pool.is_there() {
            let mut users = 0;

            for buff in self.held.0.get_mut().iter_mut().filter_map(Option::take) {
                // SAFETY: The pool is there, and was given to the NIC by this ring, which has
                // stopped. The instance is disabled, or has never used it: nothing else uses the
                // pool.
                unsafe { bindings::xsk_buff_free(buff.as_ptr()) };
            }
            for sent in self.sent.0.get_mut() {
                // SAFETY: As above.
                users += unsafe { mem::take(sent).give_back() };
            }
            if users != 0 {
                // SAFETY: As above. C has counted as many when it gave them to us.
                unsafe { bindings::xsk_tx_completed(self.pool.as_raw(), users) };
            }
        }
        self.pool.remove_ring(self.room);
    }
}

/// A receive ring with memory of users, which programs see, and a transmit ring for frames of
/// those, and for what programs send back.
///
/// It has no frames before it is polled for the first time: see [`Self::refill`]. After a device
/// has started, that has to be brought about; after the restart of a queue it is polled anyway.
///
/// # Invariants
///
/// - The memory of `slots`, `held` and `tx` belongs to the NAPI instance that has or had the
///   identity `napi`, which keeps it as long as it has that. No other handle uses it.
/// - As long as an instance of that identity is enabled, or stopped for a restart, `pool` is there,
///   and no other instance uses it.
/// - `rxq` belongs to the same instance.
/// - Positions are free-running, and count words. `next_free` is ahead of `next_done` by less than
///   the ring has.
pub struct XskRing<F: XdpFormat> {
    pub(super) slots: RingSlots,
    held: NonNull<Held>,
    /// The descriptor that the NIC completes next.
    pub(super) next_done: usize,
    /// The descriptor that is given to the NIC next.
    pub(super) next_free: usize,
    /// The next descriptor goes on with a frame that was dropped.
    pub(super) is_lost: bool,
    /// The NIC is done with so many descriptors of a frame, but not with all of them.
    pub(super) waiting: usize,
    pub(super) room: XskRoom,
    pub(super) tx: TxSide<F>,
    pub(super) pool: Arc<XskPool>,
    pub(super) rxq: NonNull<bindings::xdp_rxq_info>,
    napi: napi::Id,
    addresses: [u64; 2],
    /// A NIC may have got the addresses.
    is_told: bool,
    /// The frames of the pool have the description of this queue.
    is_described: bool,
    /// Users wait to be told when the kernel needs a system call: that it takes frames, or sends
    /// them. They were told so, or that it does not.
    uses_need_wakeup: bool,
    needs_rx_wakeup: Option<bool>,
    needs_tx_wakeup: Option<bool>,
}

// SAFETY: The handle is not tied to a thread; what it refers to is `Send`.
unsafe impl<F: XdpFormat> Send for XskRing<F> {}

// SAFETY: Nothing can be done with a shared reference but to read numbers, and descriptors by the
// poll function of the instance.
unsafe impl<F: XdpFormat> Sync for XskRing<F> {}

/// The result of [`XskRing::refill`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XskRefilled {
    /// The number of frames that the NIC has to be told of.
    pub added: usize,
    /// The poll function has to go on: the user has given no frames, and does not tell when it
    /// does.
    pub has_to_poll: bool,
}

impl<F: XdpFormat> XskRing<F> {
    /// Makes the rings of `napi`, with `len` descriptors each, for a pool that is bound to its
    /// queue. `dev` must be the parent of the network device.
    ///
    /// Context: process context, while `napi` is being set up, or while its receive queue gets
    /// other memory.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory; [`EINVAL`] if `dev` is another device, if the pool is not
    /// that of the queue, or if it is about to go, and if the ring is too short for the frames that
    /// the user sends.
    pub fn new(
        dev: &device::Device<Bound>,
        napi: &Napi,
        len: RingSize,
        pool: &Arc<XskPool>,
    ) -> Result<Self> {
        napi.check_parent(dev)?;
        TxSide::<F>::check_len(len, pool)?;
        let room = pool.room();
        let (rx, tx) = (RingMemory::new(dev, len)?, RingMemory::new(dev, len)?);
        let (held, sent) = (Places::new(len.get())?, Places::new(len.get())?);
        let addresses = [rx.address(), tx.address()];
        let (slots, tx_slots) = (rx.slots(), tx.slots());
        let (first_held, first_sent) = (held.first()?, sent.first()?);

        napi.add_xsk_ring(pool, room)?;
        let memory = XskMemory {
            _rx: rx,
            _tx: tx,
            held,
            sent,
            pool: pool.clone(),
            room,
        };
        // From here on, to drop the memory takes the ring from the pool.
        napi.attach(Arc::new(memory, GFP_KERNEL)?)?;
        // SAFETY: It takes rings, so it is there.
        let step = unsafe { bindings::xsk_pool_get_rx_frag_step(pool.as_raw()) };
        let rxq = RxqInfo::attach(napi, None, step)?;

        // INVARIANT: `napi` owns all of them, and there is no other handle. The pool takes rings of
        // the instance of its queue only, and is unbound when there are none.
        Ok(Self {
            slots,
            held: first_held,
            next_done: 0,
            next_free: 0,
            is_lost: false,
            waiting: 0,
            room,
            // SAFETY: They are of the same memory.
            tx: unsafe { TxSide::new(tx_slots, first_sent, pool) },
            pool: pool.clone(),
            rxq,
            napi: napi.id_of_new(),
            addresses,
            is_told: false,
            is_described: false,
            uses_need_wakeup: false,
            needs_rx_wakeup: None,
            needs_tx_wakeup: None,
        })
    }

    /// The addresses of the first descriptor of the receive ring and of the transmit ring, for a
    /// NIC that is about to start.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if `napi` is not the instance that this ring is in use with; [`EBUSY`] if a NIC
    /// may have used them, see [`Self::rewind`].
    pub fn dma_addresses(&mut self, napi: &Napi) -> Result<[u64; 2]> {
        if napi.id() != self.napi {
            return Err(EINVAL);
        }
        if mem::replace(&mut self.is_told, true) {
            return Err(EBUSY);
        }
        Ok(self.addresses)
    }

    /// Lets the NIC begin with the first descriptors again, which have no frames. Those of users
    /// that were not sent are lost; users get them back.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if the queue that has stopped is not the one that this ring was made for.
    pub fn rewind(&mut self, stopped: RxStopped<'_>) -> Result<[u64; 2]> {
        if stopped.napi().id() != self.napi {
            return Err(EINVAL);
        }
        while self.next_done != self.next_free {
            let place = self.slots.place(self.next_done);

            // SAFETY: By the type invariants, the instance has the memory, and cannot be polled.
            if let Some(buff) = unsafe { self.held(place) }.take() {
                // SAFETY: By the type invariants, the pool is there, and nothing else uses it.
                unsafe { bindings::xsk_buff_free(buff.as_ptr()) };
            }
            self.next_done = self.next_done.wrapping_add(RingSlots::WORDS);
        }
        // SAFETY: As above, and the NIC has stopped.
        unsafe { self.tx.restart(&self.pool) };
        // INVARIANT: The NIC has none.
        (self.next_done, self.next_free) = (0, 0);
        (self.is_lost, self.waiting) = (false, 0);
        self.is_told = true;
        Ok(self.addresses)
    }

    /// The frame of a descriptor.
    ///
    /// # Safety
    ///
    /// The instance must have the memory, and `place` be one of this ring.
    #[inline(always)]
    pub(super) unsafe fn held(&mut self, place: Place) -> &mut Held {
        // SAFETY: By the type invariants and the safety requirements.
        unsafe { self.held.byte_add(place.offset::<Held>()).as_mut() }
    }

    /// The descriptor behind the last one that has a frame: a value for the NIC's tail register.
    #[inline]
    pub fn tail(&self) -> usize {
        self.slots.index(self.next_free)
    }

    /// Whether the NIC may have completed descriptors: if not, [`Self::poll`] would find none, and
    /// [`Self::complete`] is what else it does.
    #[inline]
    pub fn may_have_completed(&self, cx: &Poll<'_>) -> bool {
        // SAFETY: By the type invariants: this is the poll function of the instance that has the
        // memory.
        let has_completed = || unsafe {
            let next = self.slots.place(self.next_done);

            self.slots.second(next) & F::DONE != 0
        };

        cx.napi().id() == self.napi && has_completed()
    }

    /// Takes back what the NIC has sent.
    ///
    /// # Errors
    ///
    /// As for [`Self::refill`].
    #[inline]
    pub fn complete(&mut self, cx: &Poll<'_>) -> Result {
        self.check(cx)?;
        // SAFETY: Just checked.
        unsafe { self.tx.complete(&self.pool) };
        Ok(())
    }

    /// Number of frames that the NIC has.
    #[inline]
    pub fn in_use(&self) -> usize {
        self.next_free.wrapping_sub(self.next_done) / RingSlots::WORDS
    }

    /// Number of frames that could be given to the NIC: all descriptors but one can be in use.
    #[inline]
    pub fn missing(&self) -> usize {
        self.slots.len() - 1 - self.in_use()
    }

    /// The descriptor behind the last frame that is to be sent, for the NIC's tail register, if
    /// there are frames that the NIC was not told of.
    #[inline]
    pub fn take_tx_tail(&mut self) -> Option<usize> {
        self.tx.take_tail()
    }

    /// Number of frames in the transmit ring.
    #[inline]
    pub fn tx_in_use(&self) -> usize {
        self.tx.in_use()
    }

    /// Checks that `cx` is the poll function of the instance, and not netpoll. Then the pool is
    /// ours, and has this queue in its description.
    #[inline]
    pub(super) fn check(&mut self, cx: &Poll<'_>) -> Result {
        if cx.napi().id() != self.napi {
            return Err(EINVAL);
        }
        if cx.is_netpoll() {
            return Err(EBUSY);
        }
        if !self.is_described {
            self.describe();
        }
        Ok(())
    }

    /// Has the frames of the pool describe this queue to programs. The instance is being polled.
    #[cold]
    fn describe(&mut self) {
        let pool = self.pool.as_raw();

        // SAFETY: By the type invariants, the pool is there, and the description stays as long as
        // a poll function has this ring. The next ring of the pool sets its own.
        unsafe { bindings::xsk_pool_set_rxq_info(pool, self.rxq.as_ptr()) };
        // This does not change.
        //
        // SAFETY: The pool is there.
        self.uses_need_wakeup = unsafe { bindings::xsk_uses_need_wakeup(pool) };
        self.is_described = true;
    }

    /// Tells users whether the kernel needs a system call when they have given frames to receive.
    ///
    /// Returns whether it has to look again: users that looked before they were told so have given
    /// frames before.
    ///
    /// # Safety
    ///
    /// [`Self::check`] must have been true.
    #[inline]
    unsafe fn set_rx_wakeup(&mut self, needs: bool) -> bool {
        if !self.uses_need_wakeup || self.needs_rx_wakeup.replace(needs) == Some(needs) {
            return false;
        }
        // SAFETY: By the safety requirements, the pool is there.
        unsafe {
            if needs {
                bindings::xsk_set_rx_need_wakeup(self.pool.as_raw());
            } else {
                bindings::xsk_clear_rx_need_wakeup(self.pool.as_raw());
            }
        }
        barrier::smp_mb(barrier::Full);
        needs
    }

    /// As [`Self::set_rx_wakeup`], of frames to send.
    ///
    /// # Safety
    ///
    /// As there.
    #[inline]
    unsafe fn set_tx_wakeup(&mut self, needs: bool) -> bool {
        if !self.uses_need_wakeup || self.needs_tx_wakeup.replace(needs) == Some(needs) {
            return false;
        }
        // SAFETY: As there.
        unsafe {
            if needs {
                bindings::xsk_set_tx_need_wakeup(self.pool.as_raw());
            } else {
                bindings::xsk_clear_tx_need_wakeup(self.pool.as_raw());
            }
        }
        barrier::smp_mb(barrier::Full);
        needs
    }

    /// Gives up to `count` frames of users to the NIC. Returns their number.
    ///
    /// # Safety
    ///
    /// [`Self::check`] must have been true. There must be room for so many.
    unsafe fn fill(&mut self, count: usize) -> usize {
        let pool = self.pool.as_raw();
        let mut left = count;

        while left != 0 {
            // Those that follow in memory: C writes them to where they are kept.
            let start = self.slots.place(self.next_free);
            let wanted = left.min(self.slots.until_end(start));
            let held = self.held.as_ptr().wrapping_byte_add(start.offset::<Held>());
            // SAFETY: By the safety requirements, the pool is there and ours. There are so many
            // places, whose descriptors have no frames. A pointer is a value of `Held`.
            //
            // CAST: At most the length of a ring.
            let got = unsafe { bindings::xsk_buff_alloc_batch(pool, held.cast(), wanted as u32) }
                as usize;
            let got = got.min(wanted);

            for number in 0..got {
                let place = self.slots.place(self.next_free);
                // SAFETY: C has given us the frame, which is mapped. The instance has the memory.
                unsafe {
                    let buff = held.add(number).cast::<*mut bindings::xdp_buff>().read();
                    let address = bindings::xsk_buff_xdp_get_dma(buff);

                    // This also clears the done bit of the descriptor's last use.
                    self.slots.write(place, [bus_address(address), 0]);
                }
                // INVARIANT: No more were added than were missing.
                self.next_free = self.next_free.wrapping_add(RingSlots::WORDS);
            }
            left -= got;
            if got < wanted {
                break;
            }
        }
        count - left
    }

    /// Gives the NIC all frames that it could have, as far as users have given them.
    ///
    /// If these are too few, the user is told to make a system call when it has more: that polls.
    ///
    /// # Errors
    ///
    /// [`EINVAL`] if `cx` is not the poll function that this ring was made for, and [`EBUSY`] if
    /// this is netpoll.
    pub fn refill(&mut self, cx: &Poll<'_>) -> Result<XskRefilled> {
        self.check(cx)?;
        let missing = self.missing();
        // SAFETY: Just checked.
        let mut added = unsafe { self.fill(missing) };

        // SAFETY: As above.
        if unsafe { self.set_rx_wakeup(added < missing) } {
            // SAFETY: As above.
            added += unsafe { self.fill(missing - added) };
            // SAFETY: As above.
            unsafe { self.set_rx_wakeup(added < missing) };
        }
        Ok(XskRefilled {
            added,
            has_to_poll: !self.uses_need_wakeup && self.in_use() == self.waiting,
        })
    }

    /// Gives up to `most` frames of users to the NIC, which has to be told
    /// ([`Self::take_tx_tail`]). If there are no more, the user is told to make a system call when
    /// it has: that polls.
    ///
    /// # Errors
    ///
    /// As for [`Self::refill`].
    pub fn transmit(&mut self, cx: &Poll<'_>, most: usize) -> Result<XskSent> {
        self.check(cx)?;
        // SAFETY: Just checked.
        let mut sent = unsafe { self.tx.transmit(&self.pool, most) };

        // SAFETY: As above.
        if unsafe { self.set_tx_wakeup(!sent.has_more) } {
            // SAFETY: As above.
            let more = unsafe { self.tx.transmit(&self.pool, most) };

            sent = XskSent {
                frames: sent.frames + more.frames,
                bytes: sent.bytes + more.bytes,
                refused: sent.refused + more.refused,
                has_more: more.has_more,
            };
            // SAFETY: As above.
            unsafe { self.set_tx_wakeup(!sent.has_more) };
        }
        Ok(sent)
    }

    /// Tells users, while nothing can be sent, to make a system call later.
    ///
    /// # Errors
    ///
    /// As for [`Self::refill`].
    pub fn transmit_later(&mut self, cx: &Poll<'_>) -> Result {
        self.check(cx)?;
        // SAFETY: Just checked.
        unsafe { self.set_tx_wakeup(true) };
        Ok(())
    }
}

#[cfg(CONFIG_KUNIT)]
impl<F: XdpFormat> XskRing<F> {
    /// Completes a descriptor, as the NIC does, for tests.
    pub(in crate::net) fn write_back(&mut self, cx: &Poll<'_>, index: usize, words: [u64; 2]) {
        assert!(self.check(cx).is_ok());
        let place = self.slots.place(RingSlots::position(index));
        // SAFETY: Just checked.
        unsafe { self.slots.write(place, words) };
    }

    /// The words of a descriptor, for tests.
    pub(in crate::net) fn words(&mut self, cx: &Poll<'_>, index: usize) -> [u64; 2] {
        assert!(self.check(cx).is_ok());
        let place = self.slots.place(RingSlots::position(index));
        // SAFETY: Just checked.
        unsafe { [self.slots.first(place), self.slots.second(place)] }
    }

    /// As [`Self::write_back`], of the transmit ring.
    pub(in crate::net) fn write_back_tx(&mut self, cx: &Poll<'_>, index: usize, status: u64) {
        assert!(self.check(cx).is_ok());
        // SAFETY: Just checked.
        unsafe { self.tx.write_back(index, status) };
    }

    /// As [`Self::words`], of the transmit ring.
    pub(in crate::net) fn tx_words(&mut self, cx: &Poll<'_>, index: usize) -> [u64; 2] {
        assert!(self.check(cx).is_ok());
        // SAFETY: Just checked.
        unsafe { self.tx.words(index) }
    }
}
