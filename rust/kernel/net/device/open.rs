// SPDX-License-Identifier: GPL-2.0

//! Taking devices up and down.

use super::{
    attributes::Attributes,
    checkup::CheckUps,
    opening::Opening,
    ops_lock::Configuring,
    registration::Inner,
    vector::Vector,
    Driver,
    RtnlCell, //
};

use crate::{
    bindings,
    error::to_result,
    irq::{
        IrqReturn,
        ThreadedIrqReturn, //
    },
    net::napi::Leftovers,
    prelude::*,
    str::CString,
    sync::Arc, //
};

use core::mem::ManuallyDrop;

/// The interrupt for events other than packets.
///
/// # Invariants
///
/// If `requested`, we own a registration of `irq` with `inner`, which is valid, as its cookie.
pub(super) struct EventIrq<T: Driver> {
    irq: u32,
    name: CString,
    inner: *const Inner<T>,
    requested: bool,
}

impl<T: Driver> EventIrq<T> {
    /// An interrupt that has not been requested. `inner` must outlive it.
    pub(super) fn new(irq: u32, name: CString, inner: *const Inner<T>) -> Self {
        // INVARIANT: It is not requested.
        Self {
            irq,
            name,
            inner,
            requested: false,
        }
    }

    fn request(&mut self) -> Result {
        // SAFETY: The cookie is the one that the handlers expect. It and the name stay valid until
        // the interrupt is freed, when `self` is dropped.
        to_result(unsafe {
            bindings::request_threaded_irq(
                self.irq,
                Some(event_interrupt),
                Some(event_thread::<T>),
                0,
                self.name.as_char_ptr(),
                self.inner.cast_mut().cast::<c_void>(),
            )
        })?;

        // INVARIANT: We own the registration now.
        self.requested = true;
        Ok(())
    }
}

impl<T: Driver> Drop for EventIrq<T> {
    fn drop(&mut self) {
        if self.requested {
            // SAFETY: By the type invariants, we own this registration. `free_irq()` waits for
            // handlers and for the thread.
            unsafe { bindings::free_irq(self.irq, self.inner.cast_mut().cast::<c_void>()) };
        }
    }
}

/// # Safety
///
/// To be called by the core.
unsafe extern "C" fn event_interrupt(_irq: c_int, _cookie: *mut c_void) -> bindings::irqreturn_t {
    bindings::irqreturn_t(ThreadedIrqReturn::WakeThread as c_uint)
}

/// # Safety
///
/// To be called by the core with a pointer to a valid `Inner<T>`.
unsafe extern "C" fn event_thread<T: Driver>(
    _irq: c_int,
    cookie: *mut c_void,
) -> bindings::irqreturn_t {
    // SAFETY: By the safety requirements.
    let inner = unsafe { &*cookie.cast_const().cast::<Inner<T>>() };

    // `Opening::add_event_vector` is for drivers that have it.
    if T::HAS_EVENT && inner.early_events.is_over() {
        T::event(inner.data(), inner.dev());
    }
    bindings::irqreturn_t(IrqReturn::Handled as c_uint)
}

/// The state of a device that is gone, but whose card may still access memory.
struct Lost<T: Driver> {
    _up: ManuallyDrop<Up<T>>,
    _leftovers: ManuallyDrop<Arc<Leftovers>>,
    /// That of the one before.
    _older: usize,
}

/// The address of the last [`Lost`], if there is any. It is for kmemleak, which would report its
/// memory otherwise.
static LOST: RtnlCell<usize> = RtnlCell::new(0);

/// The part of the hardware that can be reached when a device goes down.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The card.
    Card,
    /// Its configuration space at most.
    Bus,
}

/// The state of a device that is up.
///
/// [`Up::end`] takes the device down, from any step on the way up:
///
/// 1. Check-ups end and the event interrupt is freed, which waits for its thread: the carrier is
///    not turned on again.
/// 2. The carrier is turned off, the queues are stopped, and the producers are taken out of them
///    under their locks: no packet reaches the driver, even if a queue is woken.
/// 3. NAPI is disabled, and the last poll functions are waited for: no interrupt is turned on
///    again. Their completions may have woken queues, which are stopped again: the core keeps
///    packets until the device is up, rather than losing them here.
/// 4. [`Driver::quiesce`]: the card neither raises interrupts nor touches memory. None of the above
///    is left to change that. This is also done if [`Driver::open`] has failed: it may have told
///    the card of rings, or turned them on. If it fails, or if the card cannot be reached, the bus
///    keeps the card from it; if that is not certain either, producers and pollers are not dropped
///    before the card was reset, see [`Up::keep`].
/// 5. Producers are dropped; then, vector by vector, interrupts are freed, pollers dropped, NAPI
///    instances deleted. Rings, buffers and mappings go with the producers and pollers. Memory that
///    the driver has kept a handle to beyond that, see [`Leftovers`], is freed if it has no more.
///
/// [`Leftovers`]: crate::net::napi::Leftovers
///
/// # Invariants
///
/// - If `enabled`, NAPI is enabled in all `vectors`, else in none.
/// - `tx` has an entry for each transmit queue of `vectors`, in the order of their numbers, and
///   `rx` is the number of their receive queues. If `installed`, `tx` has been moved to the slots.
pub(super) struct Up<T: Driver> {
    check_ups: Option<Pin<KBox<CheckUps<T>>>>,
    pub(super) event: Option<EventIrq<T>>,
    pub(super) tx: KVec<Option<T::Tx<'static>>>,
    pub(super) rx: u16,
    pub(super) vectors: KVec<Pin<KBox<Vector<T>>>>,
    /// Vectors without a poller, since the driver has failed to make one. What belongs to their
    /// NAPI instances stays until the card is quiet.
    pub(super) failed: KVec<Pin<KBox<Vector<T>>>>,
    enabled: bool,
    installed: bool,
}

impl<T: Driver> Up<T> {
    /// Takes the device up, which is down.
    pub(super) fn new(inner: &Inner<T>, locks: &mut Configuring) -> Result<Self> {
        let mut up = Self::empty();
        let opened = T::open(&mut Opening::new(&mut up, inner, locks));

        up.start_if(opened, inner, locks)
    }

    fn empty() -> Self {
        // INVARIANT: There are no vectors.
        Self {
            check_ups: None,
            event: None,
            tx: KVec::new(),
            rx: 0,
            vectors: KVec::new(),
            failed: KVec::new(),
            enabled: false,
            installed: false,
        }
    }

    /// Goes on with a device that is down, or ends that.
    fn start_if(
        mut self,
        opened: Result,
        inner: &Inner<T>,
        locks: &mut Configuring,
    ) -> Result<Self> {
        match opened.and_then(|()| self.start(inner, locks)) {
            Ok(()) => Ok(self),
            Err(error) => {
                self.end(inner, Reach::Card, locks);
                Err(error)
            }
        }
    }

    fn start(&mut self, inner: &Inner<T>, locks: &mut Configuring) -> Result {
        let dev = inner.dev().as_raw();

        // CAST: The number of queues is a `u16`.
        let queues = self.tx.len() as c_uint;

        // SAFETY: The device is valid and RTNL is held.
        let before = unsafe { (*dev).real_num_tx_queues };
        // SAFETY: The device is valid and RTNL is held. These fail if there are no queues.
        to_result(unsafe { bindings::netif_set_real_num_tx_queues(dev, queues) })?;
        // SAFETY: As above.
        to_result(unsafe { bindings::netif_set_real_num_rx_queues(dev, self.rx.into()) })?;

        // Removing a queue has removed its mapping to CPUs. The other queues keep theirs, which the
        // user may have set.
        inner.dev().spread_tx_queues(before..queues);

        for index in 0..queues {
            // SAFETY: There are that many queues; no packets are transmitted or completed.
            unsafe {
                bindings::netdev_tx_reset_queue(bindings::netdev_get_tx_queue(dev, index));
            }
        }

        // INVARIANT: NAPI is enabled in all vectors.
        self.enabled = true;
        for vector in &self.vectors {
            // SAFETY: `end()` disables it.
            unsafe { vector.enable(locks) };
        }

        inner.early_events.begin();
        for vector in &self.vectors {
            vector.as_ref().request_irqs(locks)?;
        }
        if let Some(event) = &mut self.event {
            event.request()?;
        }

        // INVARIANT: The producers are moved to the slots.
        self.installed = true;
        self.exchange_tx(inner);

        T::start(inner.data(), inner.dev(), locks)?;
        if T::HAS_CHECK_UP {
            // SAFETY: `end()` drops it first of all.
            self.check_ups = Some(unsafe { CheckUps::start(inner)? });
        }

        for vector in &self.vectors {
            // SAFETY: NAPI was enabled above.
            unsafe { vector.started() };
        }
        if inner.early_events.end() && T::HAS_EVENT {
            // As in its thread: the driver does not take RTNL, which the end of that is waited for
            // with.
            T::event(inner.data(), inner.dev());
        }

        // If the device was restarted, packets may wait for this.
        //
        // SAFETY: The device is valid.
        unsafe { bindings::netif_tx_wake_all_queues(dev) };
        Ok(())
    }

    /// Moves the producers to their slots, or back.
    fn exchange_tx(&mut self, inner: &Inner<T>) {
        for (index, tx) in self.tx.iter_mut().enumerate() {
            // CAST: The number of queues is a `u16`.
            inner.exchange_tx(index as u16, tx);
        }
    }

    /// Takes the device down, to which this belongs.
    pub(super) fn end(mut self, inner: &Inner<T>, reach: Reach, locks: &mut Configuring) {
        let dev = inner.dev();

        drop(self.check_ups.take());
        drop(self.event.take());

        dev.carrier_off();
        // SAFETY: The device is valid.
        unsafe { bindings::netif_tx_disable(dev.as_raw()) };
        if self.installed {
            // INVARIANT: The producers are moved back.
            self.installed = false;
            self.exchange_tx(inner);
        }

        if self.enabled {
            // INVARIANT: NAPI is disabled in all vectors.
            self.enabled = false;
            for vector in &self.vectors {
                // SAFETY: By the type invariants, NAPI is enabled.
                unsafe { vector.disable(locks) };
            }

            // A poll function that has completed the instance may still be about to turn the
            // interrupt on again. It runs with bottom halves disabled.
            //
            // SAFETY: We are in process context.
            unsafe { bindings::synchronize_net() };
            // SAFETY: The device is valid. There is nothing left that wakes its queues.
            unsafe { bindings::netif_tx_disable(dev.as_raw()) };
        }

        let is_quiet = match reach {
            Reach::Card => match T::quiesce(inner.data(), dev, locks) {
                Ok(()) => true,
                Err(error) => inner.isolate(error, locks),
            },
            Reach::Bus => inner.cut_off(locks),
        };
        if !is_quiet {
            return self.keep(inner, locks);
        }
        self.free(inner);
    }

    /// Frees everything. NAPI is disabled, and the card knows of no memory.
    fn free(mut self, inner: &Inner<T>) {
        self.tx.clear();
        self.vectors.clear();
        self.failed.clear();
        inner.leftovers().drop_unused();
    }

    /// Takes the vectors away from the device without dropping the state of the driver: the card
    /// may access the memory. NAPI is disabled.
    fn keep(self, inner: &Inner<T>, locks: &mut Configuring) {
        for vectors in [&self.vectors, &self.failed] {
            for vector in vectors {
                // SAFETY: NAPI is disabled.
                unsafe { vector.detach(locks) };
            }
        }

        // The device does not go up with it, see `Inner::go_up()`, so there was none.
        *inner.kept.get_mut(locks.ops_mut()) = Some(self);
    }

    /// Frees what [`Self::keep`] has kept. The card was reset, and knows of no memory.
    pub(super) fn free_kept(inner: &Inner<T>, locks: &mut Configuring) {
        let kept = inner.kept.get_mut(locks.ops_mut()).take();

        if let Some(up) = kept {
            up.free(inner);
        }
    }

    /// Gives up what is kept still when the device goes away.
    pub(super) fn lose_kept(inner: &Inner<T>, locks: &mut Configuring) {
        let Some(up) = inner.kept.get_mut(locks.ops_mut()).take() else {
            return;
        };
        let lost = Lost {
            _up: ManuallyDrop::new(up),
            _leftovers: ManuallyDrop::new(inner.leftovers().clone()),
            _older: *LOST.get(locks),
        };

        // Without room, kmemleak reports it.
        if let Ok(room) = KBox::new_uninit(GFP_KERNEL) {
            *LOST.get_mut(locks) = KBox::into_raw(room.write(lost)).addr();
        }
    }
}

/// The vectors that a device gets which is up with others now.
///
/// Its NAPI instances are disabled, its interrupts are not requested, and the card does not know of
/// its rings, see [`Driver::OPEN_WHILE_UP`]: to drop it frees all of them.
pub(super) struct Spare<T: Driver>(Up<T>);

impl<T: Driver> Spare<T> {
    /// Has the driver make the vectors, for a device that will have these attributes.
    pub(super) fn new(
        inner: &Inner<T>,
        attributes: Attributes,
        locks: &mut Configuring,
    ) -> Result<Self> {
        let mut up = Up::empty();

        // If this fails, they are dropped.
        T::open(&mut Opening::while_up(&mut up, inner, attributes, locks)).map(|()| Self(up))
    }

    /// Takes the device up with them. It is down.
    pub(super) fn take_up(self, inner: &Inner<T>, locks: &mut Configuring) -> Result<Up<T>> {
        self.0.start_if(Ok(()), inner, locks)
    }
}
