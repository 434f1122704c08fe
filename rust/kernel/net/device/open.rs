// SPDX-License-Identifier: GPL-2.0

//! Taking devices up and down.

use super::{
    checkup::CheckUps,
    registration::Inner,
    vector::{
        Interrupt,
        Vector, //
    },
    Device,
    Driver,
    Rtnl,
    RtnlCell, //
};

use crate::{
    bindings,
    error::to_result,
    irq::{
        IrqRequest,
        IrqReturn,
        ThreadedIrqReturn, //
    },
    net::napi::Napi,
    prelude::*,
    str::{
        CStr,
        CString, //
    }, //
};

use core::{
    marker::PhantomData,
    mem::{
        self,
        ManuallyDrop, //
    },
    ptr, //
};

/// The context of [`Driver::open`].
pub struct Opening<'up, 'bound: 'up, T: Driver> {
    up: &'up mut Up<T>,
    inner: &'up Inner<T>,
    rtnl: &'up mut Rtnl,
    _bound: PhantomData<fn(&'bound ()) -> &'bound ()>,
}

impl<'up, 'bound, T: Driver> Opening<'up, 'bound, T> {
    /// The device that is going up.
    #[inline]
    pub fn device(&self) -> &'up Device {
        self.inner.dev()
    }

    /// The parent device.
    #[inline]
    pub fn bus(&self) -> &'bound T::Bus {
        self.inner.bus()
    }

    /// The private data of the device.
    ///
    /// `'up` does not end before the device is down: interrupts that are owned by the private data
    /// can be used for [`Self::add_queue_vector`].
    #[inline]
    pub fn data(&self) -> Pin<&'up T::Data<'bound>> {
        let data: Pin<&'up T::Data<'static>> = self.inner.data();

        // SAFETY: `'bound` is any lifetime to `Driver::open`, so what it stores in the data lives
        // as long as the device is bound, and so does what it takes out. See `register()`.
        unsafe { mem::transmute::<Pin<&'up T::Data<'static>>, Pin<&'up T::Data<'bound>>>(data) }
    }

    /// The number of queue vectors to add: [`Info::queues`], or fewer, as
    /// [`Info::queues_at_first`] or the user (`ethtool -L`) says.
    ///
    /// [`Info::queues`]: super::Info::queues
    /// [`Info::queues_at_first`]: super::Info::queues_at_first
    #[inline]
    pub fn queues(&self) -> u16 {
        self.inner.channels(self.rtnl)
    }

    /// RTNL, which is held.
    #[inline]
    pub fn rtnl(&mut self) -> &mut Rtnl {
        self.rtnl
    }

    /// Adds a queue vector: a receive queue and a transmit queue with one interrupt, which is not
    /// shared.
    ///
    /// `make` creates the state of both. Returns the number of the vector, which is that of both
    /// queues; there can be [`Info::queues`](super::Info::queues). The interrupt is named after the
    /// device, `name` and the number.
    pub fn add_queue_vector(
        &mut self,
        irq: impl Into<IrqRequest<'up>>,
        name: &CStr,
        make: impl FnOnce(&Napi) -> Result<(T::Poller<'bound>, T::Tx<'bound>)>,
    ) -> Result<u16> {
        // The vector gets this number, or none is added.
        let name = self.irq_name(name, Some(self.up.vectors.len()))?;

        self.add_vector(Some(Interrupt::new(irq.into().irq(), name)), make)
    }

    /// Adds a queue vector without an interrupt.
    ///
    /// As [`Self::add_queue_vector`]. Its poll function runs when a [`Scheduler`] schedules it that
    /// `make` has bound to the vector. There need not be one: a device that receives nothing is not
    /// polled.
    ///
    /// [`Scheduler`]: crate::net::napi::Scheduler
    pub fn add_virtual_queue_vector(
        &mut self,
        make: impl FnOnce(&Napi) -> Result<(T::Poller<'bound>, T::Tx<'bound>)>,
    ) -> Result<u16> {
        self.add_vector(None, make)
    }

    fn add_vector(
        &mut self,
        interrupt: Option<Interrupt>,
        make: impl FnOnce(&Napi) -> Result<(T::Poller<'bound>, T::Tx<'bound>)>,
    ) -> Result<u16> {
        let index = self.up.vectors.len();
        if index >= self.inner.queues() {
            return Err(ENOSPC);
        }
        // CAST: The number of queues is a `u16`.
        let index = index as u16;

        self.up.vectors.reserve(1, GFP_KERNEL)?;
        self.up.tx.reserve(1, GFP_KERNEL)?;

        // SAFETY: `inner` outlives the time that the device is up.
        let vector = unsafe { Vector::new(self.inner, index, interrupt, self.rtnl) }?;
        let (poller, tx) = make(vector.napi())?;

        // SAFETY: Only lifetimes change. The poller is dropped before the device goes away, which
        // is within `'bound`, and it is lent to callbacks that are generic in the lifetime. NAPI
        // has not been enabled.
        unsafe { vector.set_poller(transmute_lifetime(poller)) };

        // SAFETY: As above.
        let tx = unsafe { transmute_lifetime(tx) };

        // Cannot fail: the space has been reserved.
        self.up.vectors.push(vector, GFP_KERNEL)?;
        self.up.tx.push(Some(tx), GFP_KERNEL)?;
        Ok(index)
    }

    /// Adds the event vector, whose interrupt calls [`Driver::event`] in a thread.
    pub fn add_event_vector(&mut self, irq: impl Into<IrqRequest<'up>>, name: &CStr) -> Result {
        const { assert!(T::HAS_EVENT, "a driver with an event vector has `event()`") };

        if self.up.event.is_some() {
            return Err(EBUSY);
        }

        let name = self.irq_name(name, None)?;
        self.up.event = Some(EventIrq {
            irq: irq.into().irq(),
            name,
            inner: self.inner,
            requested: false,
        });
        Ok(())
    }

    fn irq_name(&self, name: &CStr, index: Option<usize>) -> Result<CString> {
        // SAFETY: The name is an array inside of the device, which is valid. RTNL is held, which
        // keeps it from being changed.
        let dev =
            unsafe { CStr::from_char_ptr((&raw const (*self.device().as_raw()).name).cast()) };

        Ok(match index {
            Some(index) => CString::try_from_fmt(fmt!("{dev}-{name}-{index}"))?,
            None => CString::try_from_fmt(fmt!("{dev}-{name}"))?,
        })
    }
}

/// Changes the lifetime in a type.
///
/// # Safety
///
/// `Src` and `Dst` must be the same type except for lifetimes, and the contents must live as long
/// as `Dst` says.
#[inline]
unsafe fn transmute_lifetime<Src, Dst>(src: Src) -> Dst {
    const { assert!(size_of::<Src>() == size_of::<Dst>()) };
    let src = ManuallyDrop::new(src);

    // SAFETY: By the safety requirements, this is the same type. We do not drop the source.
    unsafe { ptr::from_ref(&*src).cast::<Dst>().read() }
}

/// The interrupt for events other than packets.
///
/// # Invariants
///
/// If `requested`, we own a registration of `irq` with `inner`, which is valid, as its cookie.
struct EventIrq<T: Driver> {
    irq: u32,
    name: CString,
    inner: *const Inner<T>,
    requested: bool,
}

impl<T: Driver> EventIrq<T> {
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
    if T::HAS_EVENT {
        T::event(inner.data(), inner.dev());
    }
    bindings::irqreturn_t(IrqReturn::Handled as c_uint)
}

/// The state of a device whose card may still access memory.
struct Kept<T: Driver> {
    _up: ManuallyDrop<Up<T>>,
    /// That of the one before.
    _older: usize,
}

/// The address of the last [`Kept`], if there is any. It is for kmemleak, which takes memory for
/// lost otherwise.
static KEPT: RtnlCell<usize> = RtnlCell::new(0);

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
///    is left to change that. If it fails, or if the card cannot be reached, the bus keeps the card
///    from it; if that is not certain either, producers and pollers are not dropped.
/// 5. Producers are dropped; then, vector by vector, interrupts are freed, pollers dropped, NAPI
///    instances deleted. Rings, buffers and mappings go with the producers and pollers.
///
/// # Invariants
///
/// - If `enabled`, NAPI is enabled in all `vectors`, else in none.
/// - `tx` has as many entries as `vectors`. If `installed`, they have been moved to the slots.
pub(super) struct Up<T: Driver> {
    check_ups: Option<Pin<KBox<CheckUps<T>>>>,
    event: Option<EventIrq<T>>,
    tx: KVec<Option<T::Tx<'static>>>,
    vectors: KVec<Pin<KBox<Vector<T>>>>,
    enabled: bool,
    installed: bool,
}

impl<T: Driver> Up<T> {
    /// Takes the device up, which is down.
    pub(super) fn new(inner: &Inner<T>, rtnl: &mut Rtnl) -> Result<Self> {
        // INVARIANT: There are no vectors.
        let mut up = Self {
            check_ups: None,
            event: None,
            tx: KVec::new(),
            vectors: KVec::new(),
            enabled: false,
            installed: false,
        };

        let opened = T::open(&mut Opening {
            up: &mut up,
            inner,
            rtnl,
            _bound: PhantomData,
        });
        match opened.and_then(|()| up.start(inner, rtnl)) {
            Ok(()) => Ok(up),
            Err(error) => {
                up.end(inner, Reach::Card, rtnl);
                Err(error)
            }
        }
    }

    fn start(&mut self, inner: &Inner<T>, rtnl: &mut Rtnl) -> Result {
        let dev = inner.dev().as_raw();

        // CAST: The number of queues is a `u16`.
        let queues = self.vectors.len() as c_uint;

        // SAFETY: The device is valid and RTNL is held.
        let before = unsafe { (*dev).real_num_tx_queues };
        // SAFETY: The device is valid and RTNL is held. These fail if there are no queues.
        to_result(unsafe { bindings::netif_set_real_num_tx_queues(dev, queues) })?;
        // SAFETY: As above.
        to_result(unsafe { bindings::netif_set_real_num_rx_queues(dev, queues) })?;

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
            unsafe { vector.enable(rtnl) };
        }

        for vector in &self.vectors {
            vector.as_ref().request_irq()?;
        }
        if let Some(event) = &mut self.event {
            event.request()?;
        }

        // INVARIANT: The producers are moved to the slots.
        self.installed = true;
        self.exchange_tx(inner);

        T::start(inner.data(), inner.dev(), rtnl)?;
        if T::HAS_CHECK_UP {
            // SAFETY: `end()` drops it first of all.
            self.check_ups = Some(unsafe { CheckUps::start(inner)? });
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
    pub(super) fn end(mut self, inner: &Inner<T>, reach: Reach, rtnl: &mut Rtnl) {
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
                unsafe { vector.disable(rtnl) };
            }

            // A poll function that has completed the instance may still be about to turn the
            // interrupt on again. It runs with bottom halves disabled.
            //
            // SAFETY: We are in process context.
            unsafe { bindings::synchronize_net() };
            // SAFETY: The device is valid. There is nothing left that wakes its queues.
            unsafe { bindings::netif_tx_disable(dev.as_raw()) };

            let is_quiet = match reach {
                Reach::Card => match T::quiesce(inner.data(), dev, rtnl) {
                    Ok(()) => true,
                    Err(error) => inner.isolate(error, rtnl),
                },
                Reach::Bus => inner.cut_off(rtnl),
            };
            if !is_quiet {
                return self.keep(rtnl);
            }
        }

        self.tx.clear();
        self.vectors.clear();
    }

    /// Takes the vectors away from the device without dropping the state of the driver: the card
    /// may access the memory. NAPI is disabled.
    fn keep(self, rtnl: &mut Rtnl) {
        for vector in &self.vectors {
            // SAFETY: NAPI is disabled. `Kept` is never dropped.
            unsafe { vector.detach() };
        }

        let kept = Kept {
            _up: ManuallyDrop::new(self),
            _older: *KEPT.get(rtnl),
        };
        if let Ok(room) = KBox::new_uninit(GFP_KERNEL) {
            *KEPT.get_mut(rtnl) = KBox::into_raw(room.write(kept)).addr();
        }
    }
}
