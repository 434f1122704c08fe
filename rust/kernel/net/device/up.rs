// SPDX-License-Identifier: GPL-2.0

//! Taking devices up and down.

use super::{
    attributes::Attributes,
    bus::Parent,
    driver::{
        Opening,
        OpeningFor, //
    },
    ops_lock::Locks,
    poll,
    shared::Shared,
    vectors::Vectors,
    Driver,
    RtnlCell, //
};

use crate::{
    bindings,
    error::to_result,
    irq::IrqReturn,
    net::napi::Orphans,
    prelude::*,
    sync::Arc, //
};

use core::{
    mem::{
        self,
        ManuallyDrop, //
    },
    ptr, //
};

/// The state of a device that is gone, but whose NIC may still do DMA.
struct Leaked<T: Driver> {
    _up: ManuallyDrop<Up<T>>,
    _orphans: ManuallyDrop<Arc<Orphans>>,
    /// That of the one before.
    _older: usize,
}

/// The address of the last [`Leaked`], if there is any. It is for kmemleak, which would report its
/// memory otherwise.
static LEAKED: RtnlCell<usize> = RtnlCell::new(0);

/// The state of the bus when a device goes down.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BusIo {
    /// The NIC can be accessed.
    Normal,
    /// Only its configuration space, if at all, as with `pci_channel_io_frozen`.
    Frozen,
}

/// The state of a device that is up.
///
/// [`Up::end`] takes the device down, from any step on the way up:
///
/// 1. The watchdog ends and the event interrupt is freed, which waits for its thread: the carrier
///    is not turned on again.
/// 2. The carrier is turned off, the queues are stopped, and the producers are taken out of them
///    under their locks: no packet reaches the driver, even if a queue is woken. Rings for frames
///    that XDP redirects to the device are not found any more.
/// 3. NAPI is disabled, and the last poll functions are waited for: no interrupt is turned on
///    again. Their completions may have woken queues, which are stopped again: the core keeps
///    packets until the device is up, rather than losing them here.
/// 4. [`Driver::quiesce`]: the NIC neither raises interrupts nor touches memory. None of the above
///    is left to change that. This is also done if [`Driver::open`] has failed: it may have told
///    the NIC of rings, or turned them on. If it fails and the NIC is not gone, or if that cannot
///    be reached, producers and pollers are not dropped before the NIC was reset, or the device
///    goes away; then what the NIC may access is lost if there was no reset. The bus disables DMA,
///    but that does not count: it is enabled by whoever uses the NIC next, and maybe before a
///    reset.
/// 5. Producers are dropped; then, vector by vector, interrupts are freed, pollers dropped, NAPI
///    instances deleted. Rings, buffers and mappings go with the producers and pollers. Memory that
///    the driver has kept a handle to beyond that, see [`Orphans`], is freed if it has no more.
///
/// [`Orphans`]: crate::net::napi::Orphans
///
/// # Invariants
///
/// - If `enabled`, NAPI is enabled in all vectors, else in none.
/// - If `installed`, the producers have been moved to the slots.
pub(super) struct Up<T: Driver> {
    pub(super) made: Vectors<T::Poller<'static>, T::Tx<'static>>,
    enabled: bool,
    installed: bool,
}

/// The outcome of taking a device up.
pub(super) enum Outcome<T: Driver> {
    /// It is up.
    Up(Up<T>),
    /// It is not.
    Down(Error),
    /// Nor is it, and the NIC may still access this, see [`Up::end`].
    Stuck(Error, Up<T>),
}

impl<T: Driver> Up<T> {
    /// Takes the device up, which is down.
    pub(super) fn from_down(shared: &Shared<T>, locks: &mut Locks<'static>) -> Outcome<T> {
        let mut up = Self::empty();
        let opened = up.open(Attributes::of(shared.dev()), false, shared, locks);

        up.start_if(opened, shared, locks)
    }

    fn empty() -> Self {
        // INVARIANT: There are no vectors.
        Self {
            made: Vectors::new(),
            enabled: false,
            installed: false,
        }
    }

    /// Calls [`Driver::open`] for a device with these attributes.
    fn open(
        &mut self,
        attributes: Attributes,
        is_up: bool,
        shared: &Shared<T>,
        locks: &mut Locks<'static>,
    ) -> Result {
        let config = *shared.config.get(locks.ops());
        let device = OpeningFor {
            dev: shared.dev(),
            data: shared.data(),
            orphans: &shared.orphans,
            queues: shared.queues(),
            config,
            attributes,
            is_up,
            poll: poll::poll_callback::<T>,
        };

        // SAFETY: The device outlives the vectors, which are of its driver, and have queues that no
        // other has when they are enabled.
        T::open(&mut unsafe { Opening::new(&mut self.made, device, locks) })
    }

    /// Goes on with a device that is down, or ends that.
    fn start_if(
        mut self,
        opened: Result,
        shared: &Shared<T>,
        locks: &mut Locks<'static>,
    ) -> Outcome<T> {
        match opened.and_then(|()| self.start(shared, locks)) {
            Ok(()) => Outcome::Up(self),
            Err(error) => match self.end(shared, BusIo::Normal, locks) {
                None => Outcome::Down(error),
                Some(kept) => Outcome::Stuck(error, kept),
            },
        }
    }

    fn start(&mut self, shared: &Shared<T>, locks: &mut Locks<'static>) -> Result {
        let dev = shared.dev().as_raw();

        // CAST: The number of queues is a `u16`.
        let queues = self.made.tx.len() as c_uint;

        // SAFETY: The device is valid and RTNL is held.
        let before = unsafe { (*dev).real_num_tx_queues };
        // SAFETY: The device is valid and RTNL is held. These fail if there are no queues.
        to_result(unsafe { bindings::netif_set_real_num_tx_queues(dev, queues) })?;
        // SAFETY: As above.
        to_result(unsafe { bindings::netif_set_real_num_rx_queues(dev, queues) })?;

        // Removing a queue has removed its mapping to CPUs. The other queues keep theirs, which the
        // user may have set.
        shared.dev().spread_tx_queues(before..queues);

        for index in 0..queues {
            // SAFETY: There are that many queues; no packets are transmitted or completed.
            unsafe {
                bindings::netdev_tx_reset_queue(bindings::netdev_get_tx_queue(dev, index));
            }
        }

        // INVARIANT: NAPI is enabled in all vectors.
        self.enabled = true;
        for vector in &self.made.vectors {
            // SAFETY: `end()` disables it.
            unsafe { vector.enable(locks) };
        }

        shared.early_events.begin();
        for vector in &self.made.vectors {
            vector.as_ref().request_irqs(locks)?;
        }
        if let Some(event) = &self.made.event {
            // SAFETY: The cookie is the one that the thread expects. `end()` frees the interrupt.
            unsafe { event.request_thread(event_thread::<T>, cookie(shared))? };
        }

        // INVARIANT: The producers are moved to the slots.
        self.installed = true;
        self.exchange_tx(shared);

        T::start(shared.data(), shared.dev(), locks)?;
        if T::HAS_WATCHDOG {
            // SAFETY: `end()` does that first of all.
            unsafe { shared.queue_check_up() };
        }

        // SAFETY: `end()` withdraws them, and a grace period passes before they are freed, as NAPI
        // is enabled.
        unsafe { shared.targets.publish(&self.made.targets) };
        for vector in &self.made.vectors {
            // SAFETY: NAPI was enabled above.
            unsafe { vector.started() };
        }
        if shared.early_events.end() && T::HAS_EVENT {
            // As in its thread: the driver does not take RTNL, which the end of that is waited for
            // with.
            T::event(shared.data(), shared.dev());
        }

        // If the device was restarted, packets may wait for this.
        //
        // SAFETY: The device is valid.
        unsafe { bindings::netif_tx_wake_all_queues(dev) };
        Ok(())
    }

    /// Moves the producers to their slots, or back.
    fn exchange_tx(&mut self, shared: &Shared<T>) {
        for (index, tx) in self.made.tx.iter_mut().enumerate() {
            // CAST: The number of queues is a `u16`.
            shared.exchange_tx(index as u16, tx);
        }
    }

    /// Takes the device down, to which this belongs.
    ///
    /// Returns itself, without vectors that the core knows of, if it is not certain that the NIC
    /// does not access the memory any more. Then it must not be freed before the NIC was reset.
    pub(super) fn end(
        mut self,
        shared: &Shared<T>,
        io: BusIo,
        locks: &mut Locks<'static>,
    ) -> Option<Self> {
        let dev = shared.dev();

        shared.end_check_ups();
        if let Some(event) = self.made.event.take() {
            // SAFETY: That is the cookie for which `start()` requests it.
            unsafe { event.free(cookie(shared)) };
        }

        dev.carrier_off();
        // SAFETY: The device is valid.
        unsafe { bindings::netif_tx_disable(dev.as_raw()) };
        if self.installed {
            // INVARIANT: The producers are moved back.
            self.installed = false;
            self.exchange_tx(shared);
        }
        shared.targets.withdraw();

        if self.enabled {
            // INVARIANT: NAPI is disabled in all vectors.
            self.enabled = false;
            for vector in &self.made.vectors {
                // SAFETY: By the type invariants, NAPI is enabled.
                unsafe { vector.disable(locks) };
            }

            // A poll function that has completed the instance may still be about to turn the
            // interrupt on again, and others may be about to redirect frames to this device. They
            // run with bottom halves disabled.
            //
            // SAFETY: We are in process context.
            unsafe { bindings::synchronize_net() };
            // SAFETY: The device is valid. There is nothing left that wakes its queues.
            unsafe { bindings::netif_tx_disable(dev.as_raw()) };
        }

        let is_quiet = match io {
            BusIo::Normal => match T::quiesce(shared.data(), dev, locks) {
                Ok(()) => true,
                // Registers are all ones, too, of a NIC that is there, but does not decode their
                // addresses, or sleeps: the bus has to know.
                Err(_) if shared.bus.is_removed() => true,
                Err(error) => {
                    crate::netdev_err!(
                        dev,
                        "DMA did not stop ({error:?}), rings stay allocated until a reset\n"
                    );
                    false
                }
            },
            BusIo::Frozen => false,
        };
        if !is_quiet {
            shared.bus.forbid_dma();
            // The NIC may access the memory, so the state of the driver stays.
            for vector in [&self.made.vectors, &self.made.failed]
                .into_iter()
                .flatten()
            {
                // SAFETY: NAPI is disabled.
                unsafe { vector.detach(locks) };
            }
            return Some(self);
        }
        self.free(shared);
        None
    }

    /// Frees everything. NAPI is disabled, and the NIC knows of no memory: it was stopped, or
    /// reset.
    pub(super) fn free(mut self, shared: &Shared<T>) {
        self.made.tx.clear();
        if let Some(finish) = T::OPS.finish_xdp {
            for (index, target) in self.made.targets.iter().enumerate() {
                // SAFETY: The NIC was stopped or reset. If the target was published, it has been
                // withdrawn, and a grace period has passed. The vector exists.
                //
                // CAST: The number of vectors is a `u16`.
                unsafe { finish(shared.dev(), index as u16, *target) };
            }
        }
        for vector in mem::take(&mut self.made.vectors) {
            // SAFETY: NAPI is disabled, and the NIC is as it has to be.
            unsafe { poll::close(vector, shared) };
        }
        self.made.failed.clear();
        shared.orphans.drop_unused();
    }

    /// Tells what is about to be leaked that the device goes, see [`Self::leak`]. With RTNL held.
    pub(super) fn lose(&self) {
        for vector in [&self.made.vectors, &self.made.failed]
            .into_iter()
            .flatten()
        {
            vector.napi().lose();
        }
    }

    /// Leaks what the NIC may access: the device goes away, and it may still do DMA. That is what
    /// belongs to the NAPI instances, and these, as the objects refer to them: rings with their
    /// buffers, packets in flight, and memory of [`Napi::keep_dma`]. NAPI is disabled.
    ///
    /// Not so the state of the driver, which borrows what goes away with the device. It has no more
    /// than handles to that memory.
    ///
    /// [`Napi::keep_dma`]: crate::net::napi::Napi::keep_dma
    pub(super) fn leak(mut self, shared: &Shared<T>, locks: &mut Locks<'static>) {
        drop(mem::take(&mut self.made.tx));
        for vector in &self.made.vectors {
            // SAFETY: NAPI is disabled.
            drop(unsafe { vector.take_poller() });
        }
        self.lose();

        let leaked = Leaked {
            _up: ManuallyDrop::new(self),
            _orphans: ManuallyDrop::new(shared.orphans.clone()),
            _older: *LEAKED.get(locks),
        };

        // Without room, kmemleak reports it.
        if let Ok(room) = KBox::new_uninit(GFP_KERNEL) {
            *LEAKED.get_mut(locks) = KBox::into_raw(room.write(leaked)).addr();
        }
    }
}

/// The cookie of the event interrupt.
fn cookie<T: Driver>(shared: &Shared<T>) -> *mut c_void {
    ptr::from_ref(shared).cast_mut().cast()
}

/// The thread of the event interrupt.
///
/// # Safety
///
/// To be called by the core with a pointer to a valid `Shared<T>`.
unsafe extern "C" fn event_thread<T: Driver>(
    _irq: c_int,
    cookie: *mut c_void,
) -> bindings::irqreturn_t {
    // SAFETY: By the safety requirements.
    let shared = unsafe { &*cookie.cast_const().cast::<Shared<T>>() };

    // `Opening::add_event_vector` is for drivers that have it.
    if T::HAS_EVENT && shared.early_events.is_over() {
        T::event(shared.data(), shared.dev());
    }
    bindings::irqreturn_t(IrqReturn::Handled as c_uint)
}

/// New vectors for a device that is still up with its old ones.
///
/// Its NAPI instances are disabled, its interrupts are not requested, and the NIC does not know of
/// its rings, see [`Driver::OPEN_WHILE_UP`]: to drop it frees all of them.
pub(super) struct SpareVectors<T: Driver>(Up<T>);

impl<T: Driver> SpareVectors<T> {
    /// Has the driver make the vectors, for a device that will have these attributes.
    pub(super) fn new(
        shared: &Shared<T>,
        attributes: Attributes,
        locks: &mut Locks<'static>,
    ) -> Result<Self> {
        let mut up = Up::empty();

        // If this fails, they are dropped.
        up.open(attributes, true, shared, locks).map(|()| Self(up))
    }

    /// Takes the device up with them. It is down.
    pub(super) fn take_up(self, shared: &Shared<T>, locks: &mut Locks<'static>) -> Outcome<T> {
        self.0.start_if(Ok(()), shared, locks)
    }
}
