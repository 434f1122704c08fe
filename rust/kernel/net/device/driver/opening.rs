// SPDX-License-Identifier: GPL-2.0

//! The context in which a driver adds the vectors of a device that goes up.

use super::{
    super::{
        attributes::Attributes,
        interrupt::{
            Interrupt,
            Interrupts, //
        },
        ops_lock::{
            Locks,
            OpsLocked, //
        },
        rings::{
            Config,
            RingSizes, //
        },
        targets::Target,
        vector::{
            PollFn,
            Vector, //
        },
        vectors::Vectors,
        Device,
        Features,
        Rtnl, //
    },
    Driver, //
};

use crate::{
    fmt,
    irq::IrqRequest,
    net::napi::{
        Napi, //
        Orphans,
    },
    prelude::*,
    str::{
        CStr,
        CString, //
    },
    sync::Arc, //
};

use core::{
    marker::PhantomData,
    mem::{
        self,
        ManuallyDrop, //
    },
    ptr, //
};

/// A device that is going up, or about to, and its callbacks.
pub(in super::super) struct OpeningFor<'up, T: Driver> {
    pub(in super::super) dev: &'up Device,
    pub(in super::super) data: Pin<&'up T::Data<'static>>,
    pub(in super::super) orphans: &'up Arc<Orphans>,
    /// The number of queues of each kind that it can have.
    pub(in super::super) queues: usize,
    /// The settings that it will have.
    pub(in super::super) config: Config,
    /// The attributes that it will have.
    pub(in super::super) attributes: Attributes,
    /// It is up with other vectors.
    pub(in super::super) is_up: bool,
    /// The poll function of its vectors.
    pub(in super::super) poll: PollFn,
}

/// The context of [`Driver::open`].
pub struct Opening<'up, 'bound: 'up, T: Driver> {
    made: &'up mut Vectors<T::Poller<'static>, T::Tx<'static>>,
    of: OpeningFor<'up, T>,
    locks: &'up mut Locks<'static>,
    _bound: PhantomData<fn(&'bound ()) -> &'bound ()>,
}

impl<'up, 'bound, T: Driver> Opening<'up, 'bound, T> {
    /// Creates the context.
    ///
    /// # Safety
    ///
    /// The device must outlive `made`, and have the queues of no other vectors in which NAPI is
    /// enabled at the same time as in these. The poll function must be for such vectors.
    pub(in super::super) unsafe fn new(
        made: &'up mut Vectors<T::Poller<'static>, T::Tx<'static>>,
        of: OpeningFor<'up, T>,
        locks: &'up mut Locks<'static>,
    ) -> Self {
        Self {
            made,
            of,
            locks,
            _bound: PhantomData,
        }
    }

    /// The device that is going up.
    #[inline]
    pub fn device(&self) -> &'up Device {
        self.of.dev
    }

    /// The private data of the device.
    ///
    /// `'up` does not end before the device is down: interrupts that are owned by the private data
    /// can be used for [`Self::add_queue_vector`].
    #[inline]
    pub fn data(&self) -> Pin<&'up T::Data<'bound>> {
        let data: Pin<&'up T::Data<'static>> = self.of.data;

        // SAFETY: `'bound` is any lifetime to `Driver::open`, so what it stores in the data lives
        // as long as the device is bound, and so does what it takes out. See `register()`.
        unsafe { mem::transmute::<Pin<&'up T::Data<'static>>, Pin<&'up T::Data<'bound>>>(data) }
    }

    /// The number of queue vectors to add: [`Info::queues`], or fewer, as
    /// [`Info::default_queues`] or the user (`ethtool -L`) says.
    ///
    /// [`Info::queues`]: super::super::Info::queues
    /// [`Info::default_queues`]: super::super::Info::default_queues
    #[inline]
    pub fn queues(&self) -> u16 {
        self.of.config.channels
    }

    /// The lengths of the rings to make, see [`RingparamOps`].
    ///
    /// [`RingparamOps`]: super::super::ethtool::ringparam::RingparamOps
    #[inline]
    pub fn ring_sizes(&self) -> RingSizes {
        const {
            assert!(
                T::OPS.rings.is_some(),
                "rings of any length need `RingparamOps`"
            )
        };

        self.of.config.rings
    }

    /// The MTU that the device has with the rings to be made. If it [is up](Self::is_up) with
    /// others, [`Device::mtu`] is that of these.
    #[inline]
    pub fn mtu(&self) -> u32 {
        self.of.attributes.mtu
    }

    /// The features that the device has with the rings to be made. If it [is up](Self::is_up) with
    /// others, [`Device::features`] are those of these.
    #[inline]
    pub fn features(&self) -> Features {
        self.of.attributes.features
    }

    /// Whether the device is up with other rings, which it keeps if this fails. So rather than to
    /// go on with less memory than it takes, it should fail. See [`Driver::OPEN_WHILE_UP`].
    #[inline]
    pub fn is_up(&self) -> bool {
        self.of.is_up
    }

    /// RTNL, which is held.
    #[inline]
    pub fn rtnl(&mut self) -> &mut Rtnl {
        self.locks
    }

    /// The lock of the device's operations, which is held.
    #[inline]
    pub fn ops_lock(&mut self) -> &mut OpsLocked<'bound> {
        // SAFETY: This is a callback for the device that is going up.
        unsafe { self.locks.ops_mut().lend() }
    }

    /// Adds a queue vector: a receive queue and a transmit queue with one poll function, which
    /// runs when `irq` is raised, and nothing else raises that (MSI-X, MSI). The interrupt is named
    /// after the device, `name` and the number of the vector.
    ///
    /// `make` creates the state of both queues. Returns the number of the vector and of its queues,
    /// which is its place in the order in which vectors are added. Fails with [`ENOSPC`] if there
    /// are as many vectors as [`Info`](super::super::Info) says.
    pub fn add_queue_vector(
        &mut self,
        irq: impl Into<IrqRequest<'up>>,
        name: &CStr,
        make: impl FnOnce(&Napi) -> Result<(T::Poller<'bound>, T::Tx<'bound>)>,
    ) -> Result<u16> {
        // The vector gets this number, or is not added.
        let index = self.made.vectors.len();
        let interrupts = [Some(self.interrupt(irq, fmt!("{name}-{index}"))?), None];

        self.add_vector(interrupts, make)
    }

    /// As [`Self::add_queue_vector`], with one interrupt that reports received packets, and one for
    /// transmitted packets. Both have the same poll function run, and [`Driver::rearm`] turns both
    /// on again.
    pub fn add_split_queue_vector(
        &mut self,
        rx: impl Into<IrqRequest<'up>>,
        tx: impl Into<IrqRequest<'up>>,
        make: impl FnOnce(&Napi) -> Result<(T::Poller<'bound>, T::Tx<'bound>)>,
    ) -> Result<u16> {
        let index = self.made.vectors.len();
        let interrupts = [
            Some(self.interrupt(rx, fmt!("rx-{index}"))?),
            Some(self.interrupt(tx, fmt!("tx-{index}"))?),
        ];

        self.add_vector(interrupts, make)
    }

    /// As [`Self::add_queue_vector`], without an interrupt. The poll function runs when a
    /// [`Scheduler`] schedules it that `make` has bound to the vector. There need not be one: a
    /// device that receives nothing is not polled.
    ///
    /// [`Scheduler`]: crate::net::napi::Scheduler
    pub fn add_virtual_queue_vector(
        &mut self,
        make: impl FnOnce(&Napi) -> Result<(T::Poller<'bound>, T::Tx<'bound>)>,
    ) -> Result<u16> {
        self.add_vector([None, None], make)
    }

    /// See [`Self::add_queue_vector`].
    fn add_vector(
        &mut self,
        interrupts: Interrupts,
        make: impl FnOnce(&Napi) -> Result<(T::Poller<'bound>, T::Tx<'bound>)>,
    ) -> Result<u16> {
        if self.made.vectors.len() >= self.of.queues {
            return Err(ENOSPC);
        }
        let index = u16::try_from(self.made.vectors.len())?;

        self.made.vectors.reserve(1, GFP_KERNEL)?;
        self.made.tx.reserve(1, GFP_KERNEL)?;
        self.made.failed.reserve(1, GFP_KERNEL)?;

        // SAFETY: By the requirements of `new()`. The device has these queues, which no vector of
        // `made` has got yet.
        let vector = unsafe {
            Vector::new(
                self.of.dev,
                self.of.orphans.clone(),
                self.of.poll,
                index,
                interrupts,
                self.locks,
            )
        }?;
        let (poller, tx) = match make(vector.napi()) {
            Ok(parts) => parts,
            Err(error) => {
                // The NIC may know of the rings that the driver has made. As below.
                self.made.failed.push(vector, GFP_KERNEL)?;
                return Err(error);
            }
        };

        // SAFETY: Only lifetimes change. The poller is dropped before the device goes away, which
        // is within `'bound`, and it is lent to callbacks that are generic in the lifetime. NAPI
        // has not been enabled.
        unsafe { vector.set_poller(transmute_lifetime(poller)) };

        // Cannot fail: the space has been reserved.
        self.made.vectors.push(vector, GFP_KERNEL)?;
        // SAFETY: As above.
        let tx = unsafe { transmute_lifetime(tx) };
        self.made.tx.push(Some(tx), GFP_KERNEL)?;
        Ok(index)
    }

    /// The NAPI instance of the vector that was added last, and the rings for frames that XDP
    /// redirects to the device: those of all vectors before it, or there is none to add.
    #[cfg_attr(not(CONFIG_PAGE_POOL), expect(dead_code, reason = "for XDP"))]
    pub(in super::super) fn last_vector(&mut self) -> Option<(&Napi, &mut KVVec<Target>)> {
        let made = &mut *self.made;
        let vector = made.vectors.last()?;

        (made.targets.len() + 1 == made.vectors.len()).then_some((vector.napi(), &mut made.targets))
    }

    /// An interrupt, whose name begins with that of the device.
    fn interrupt(
        &self,
        irq: impl Into<IrqRequest<'up>>,
        name: fmt::Arguments<'_>,
    ) -> Result<Interrupt> {
        // SAFETY: The name is an array inside of the device, which is valid. RTNL is held, which
        // keeps it from being changed.
        let dev =
            unsafe { CStr::from_char_ptr((&raw const (*self.device().as_raw()).name).cast()) };

        Ok(Interrupt::new(
            irq.into().irq(),
            CString::try_from_fmt(fmt!("{dev}-{name}"))?,
        ))
    }

    /// Adds the event vector, whose interrupt calls [`Driver::event`] in a thread.
    pub fn add_event_vector(&mut self, irq: impl Into<IrqRequest<'up>>, name: &CStr) -> Result {
        const { assert!(T::HAS_EVENT, "a driver with an event vector has `event()`") };

        if self.made.event.is_some() {
            return Err(EBUSY);
        }

        self.made.event = Some(self.interrupt(irq, fmt!("{name}"))?);
        Ok(())
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
