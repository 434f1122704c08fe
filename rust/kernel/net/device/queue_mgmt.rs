// SPDX-License-Identifier: GPL-2.0

//! Queue management: one receive queue gets other memory, while the device stays up.
//!
//! C header: [`include/net/netdev_queues.h`](srctree/include/net/netdev_queues.h)
//!
//! The core has a queue restarted in these steps, all of them with the lock of the device's
//! operations held, and maybe without RTNL:
//!
//! 1. New memory is made: [`QueueMgmtOps::alloc_rx`]. The queue is running; if there is no
//!    memory, nothing has changed.
//! 2. NAPI of the vector is disabled, and [`QueueMgmtOps::stop_rx`] stops the queue.
//! 3. The new memory takes the place of the old one in the poller, and
//!    [`QueueMgmtOps::start_rx`] starts the queue. The old memory is freed, after
//!    [`QueueMgmtOps::closed_rx`], NAPI is enabled, and the vector is polled: for interrupts that
//!    came meanwhile, and for the transmit queue.
//!
//! If the queue does not start with the new memory, it is stopped, the old memory takes its place
//! again, and it is started with that. If the queue does not stop, or starts with neither, the
//! device is restarted as a whole, or closed if that fails: by work, as it takes RTNL. Memory that
//! the NIC may know of is not freed before the device has gone down with that. The request fails
//! with the error of the first callback that has failed.
//!
//! The memory that a queue has stays in its poller, and the objects that the NIC accesses belong
//! to the NAPI instance, whichever handles the driver drops or forgets. Memory for later has an
//! identity of its own, so handles to memory that was freed are of no use, see `napi::Id`.
//!
//! A device that is down has no memory: it makes new memory when it goes up.

use super::{
    inner::Inner,
    poll::VectorOf,
    prelude::*,
    rings::RingSizes, //
};

use crate::net::napi::{
    Id,
    Napi,
    RxClosed,
    RxStopped, //
};

use core::{
    mem,
    ptr::NonNull, //
};

/// A driver whose receive queues can be restarted one by one, see
/// [`OptionalOps::queue_mgmt`].
///
/// In these callbacks, the poll function of the queue's vector does not run, except for
/// [`QueueMgmtOps::alloc_rx`]; those of others do. [`Driver::rearm`] may still be called for it,
/// once. All of them run in process context, with the lock of the device's operations held, while
/// the device is up and not suspended.
pub trait QueueMgmtOps: Driver {
    /// The memory of a receive queue: its ring, with what belongs to it.
    type Rx<'bound>: Send + 'bound;

    /// The memory that is in use, as a part of the poller. Others may be moved there.
    fn rx<'a, 'bound: 'a>(poller: &'a mut Self::Poller<'bound>) -> &'a mut Self::Rx<'bound>;

    /// Allocates memory for a queue that is in use, and stays so with its old memory.
    ///
    /// The NIC must not be told of it. If memory is short, this should fail rather than make a
    /// smaller ring. Memory of a transmit queue cannot be made here ([`EINVAL`]). If the NIC has to
    /// be reset before the queue can have other memory, this fails with [`EAGAIN`]: for a program,
    /// or memory of users, the device is restarted then.
    fn alloc_rx<'bound>(cx: &mut RxQueueAlloc<'_, 'bound, Self>) -> Result<Self::Rx<'bound>>;

    /// Stops a queue, and waits until the NIC does not access its memory any more.
    ///
    /// This is also called for a queue that did not start. If it fails, the device is restarted.
    fn stop_rx<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        queue: u16,
        rx: &mut Self::Rx<'bound>,
        lock: &mut OpsLocked<'bound>,
    ) -> Result;

    /// Starts a queue, which is stopped, with this memory: new one, or that with which it was
    /// stopped before. Either gives its address to the NIC by [`RxRing::rewind`]. The instance of
    /// its vector takes no other ([`EINVAL`]).
    ///
    /// [`RxRing::rewind`]: crate::net::page_pool::RxRing::rewind
    fn start_rx<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        stopped: RxStopped<'_>,
        queue: u16,
        rx: &mut Self::Rx<'bound>,
        lock: &mut OpsLocked<'bound>,
    ) -> Result;

    /// Takes back the memory that a queue had before it was started with other memory.
    ///
    /// As [`Driver::closed`], the place to account for frames that were in flight.
    fn closed_rx<'bound>(
        _data: Pin<&Self::Data<'bound>>,
        _queue: u16,
        _rx: Self::Rx<'bound>,
        _closed: &RxClosed<'_>,
    ) {
    }
}

/// The context of [`QueueMgmtOps::alloc_rx`].
pub struct RxQueueAlloc<'a, 'bound, T: Driver> {
    inner: &'a Inner<T>,
    data: Pin<&'a T::Data<'bound>>,
    napi: &'a Napi,
    queue: u16,
    lock: &'a mut OpsLocked<'bound>,
    sizes: RingSizes,
}

impl<'a, 'bound, T: Driver> RxQueueAlloc<'a, 'bound, T> {
    /// The device.
    #[inline]
    pub fn device(&self) -> &'a Device {
        self.inner.dev()
    }

    /// The private data of the device.
    #[inline]
    pub fn data(&self) -> Pin<&'a T::Data<'bound>> {
        self.data
    }

    /// The NAPI instance that the memory is to belong to. It is running.
    #[inline]
    pub fn napi(&self) -> &'a Napi {
        self.napi
    }

    /// The number of the queue.
    #[inline]
    pub fn queue(&self) -> u16 {
        self.queue
    }

    /// The lengths of the rings that the device has, see [`RingparamOps`].
    ///
    /// [`RingparamOps`]: super::ethtool::ringparam::RingparamOps
    #[inline]
    pub fn ring_sizes(&self) -> RingSizes {
        const {
            assert!(
                T::OPS.rings.is_some(),
                "rings of any length need `RingparamOps`"
            )
        };

        self.sizes
    }

    /// The lock of the device's operations, which is held.
    #[inline]
    pub fn ops_lock(&mut self) -> &mut OpsLocked<'bound> {
        self.lock
    }
}

impl<T: QueueMgmtOps> OptionalOps<T> {
    /// Adds the callbacks of [`QueueMgmtOps`].
    pub const fn queue_mgmt(self) -> Self {
        const {
            // The core takes such a lock for every device that has these callbacks.
            assert!(T::OPS_LOCK, "queue management needs `OPS_LOCK`");
        }
        Self {
            queue_mgmt: Some(bindings::netdev_queue_mgmt_ops {
                ndo_queue_mem_size: size_of::<QueueMemPtr<T>>(),
                ndo_queue_mem_alloc: Some(Self::mem_alloc),
                ndo_queue_mem_free: Some(Self::mem_free),
                ndo_queue_start: Some(Self::start),
                ndo_queue_stop: Some(Self::stop),
                ndo_queue_get_dma_dev: Some(Self::get_dma_dev),
                ..pin_init::zeroed()
            }),
            restart_rx: Some(QueueRestart::<T>::all),
            ..self
        }
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T` whose lock is held, with a
    /// `place` that is zeroed.
    unsafe extern "C" fn mem_alloc(
        dev: *mut bindings::net_device,
        _config: *mut bindings::netdev_queue_config,
        place: *mut c_void,
        queue: c_int,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The core calls us for a registered device, with its lock held, and a place
            // for us, in which zeroes are null.
            let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
            // SAFETY: As above.
            let place = unsafe { &mut *place.cast::<QueueMemPtr<T>>() };

            // The core takes this error for no fault.
            inner.check_reachable().map_err(|_| ENETDOWN)?;
            if inner.dev().is_running() {
                place.0 = KBox::into_raw(RxQueueMem::new(inner, queue, &mut lock)?);
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T` whose lock is held, with a
    /// `place` that is zeroed, or that other callbacks have written to.
    unsafe extern "C" fn mem_free(dev: *mut bindings::net_device, place: *mut c_void) {
        // SAFETY: As in `mem_alloc()`.
        let (inner, lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let place = unsafe { &mut *place.cast::<QueueMemPtr<T>>() };

        if let Some(spare) = place.take() {
            KBox::into_inner(spare).free(inner, &lock);
        }
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T` that is up and whose lock is
    /// held.
    unsafe extern "C" fn stop(
        dev: *mut bindings::net_device,
        _place: *mut c_void,
        queue: c_int,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The core calls us for a registered device, with its lock held.
            let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
            let mut restart = QueueRestart::new(inner, queue, &mut lock)?;

            // The memory stays in the poller: `start()` finds it there, or puts other in its place.
            if let Err(error) = restart.stop() {
                restart.give_up("stop", error);
                return Err(error);
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T` that is up and whose lock is
    /// held, with a `place` that is zeroed, or that other callbacks have written to. The queue must
    /// have been stopped.
    unsafe extern "C" fn start(
        dev: *mut bindings::net_device,
        _config: *mut bindings::netdev_queue_config,
        place: *mut c_void,
        queue: c_int,
    ) -> c_int {
        from_result(|| {
            // SAFETY: As in `mem_alloc()`.
            let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
            // SAFETY: As above.
            let place = unsafe { &mut *place.cast::<QueueMemPtr<T>>() };
            let mut restart = QueueRestart::new(inner, queue, &mut lock)?;

            match place.take() {
                Some(mut spare) => match restart.start_with(&mut spare) {
                    Ok(()) => restart.finish(KBox::into_inner(spare)),
                    Err(error) => {
                        // The core has the queue started with its old memory next.
                        place.0 = KBox::into_raw(spare);
                        return Err(error);
                    }
                },
                // It has been stopped, and has kept its memory.
                None => match restart.start_again() {
                    Ok(()) => restart.resume(),
                    // The core could do nothing but warn.
                    Err(error) => restart.give_up("start", error),
                },
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`.
    unsafe extern "C" fn get_dma_dev(
        dev: *mut bindings::net_device,
        _queue: c_int,
    ) -> *mut bindings::device {
        // SAFETY: The device is valid, and its parent does not change.
        unsafe { (*dev).dev.parent }
    }
}

/// The queue memory that the core passes on from callback to callback: a pointer, or null.
///
/// # Invariants
///
/// The pointer is null, or from [`KBox::into_raw`], and ours.
#[repr(transparent)]
struct QueueMemPtr<T: QueueMgmtOps>(*mut RxQueueMem<T>);

impl<T: QueueMgmtOps> QueueMemPtr<T> {
    /// Takes the memory out.
    fn take(&mut self) -> Option<KBox<RxQueueMem<T>>> {
        let spare = mem::replace(&mut self.0, core::ptr::null_mut());

        // SAFETY: By the type invariants.
        (!spare.is_null()).then(|| unsafe { KBox::from_raw(spare) })
    }
}

/// Memory of a receive queue that is not in use.
struct RxQueueMem<T: QueueMgmtOps> {
    queue: u16,
    /// The identity of its objects, which belong to the NAPI instance.
    id: Id,
    rx: T::Rx<'static>,
    /// The NIC may know of it.
    is_known: bool,
}

impl<T: QueueMgmtOps> RxQueueMem<T> {
    /// Has the driver make memory for a queue.
    fn new(inner: &Inner<T>, queue: c_int, lock: &mut OpsLocked<'static>) -> Result<KBox<Self>> {
        let queue = u16::try_from(queue)?;
        let room = KBox::new_uninit(GFP_KERNEL)?;
        let vector = inner.rx_vector(queue, lock).ok_or(ENETDOWN)?;
        // SAFETY: It exists as long as the device is up, which does not change while the lock is
        // held.
        let napi = unsafe { vector.as_ref() }.napi();

        let (id, rx) = napi.alloc_rx(|| {
            T::alloc_rx(&mut RxQueueAlloc {
                inner,
                data: inner.data(),
                napi,
                queue,
                sizes: inner.config.get(lock).rings,
                lock,
            })
        })?;
        Ok(room.write(Self {
            queue,
            id,
            rx,
            is_known: false,
        }))
    }

    /// Frees memory that no queue uses.
    fn free(self, inner: &Inner<T>, lock: &OpsLocked<'static>) {
        // A handle; its objects follow.
        drop(self.rx);
        if self.is_known {
            // The NIC did not stop, so they go with the vector.
            return;
        }
        if let Some(vector) = inner.rx_vector(self.queue, lock) {
            // SAFETY: As in `new()`.
            unsafe { vector.as_ref() }.napi().drop_unused(self.id);
        }
    }
}

/// A queue that is being restarted: NAPI of its vector is disabled.
struct QueueRestart<'a, T: QueueMgmtOps> {
    inner: &'a Inner<T>,
    vector: &'a VectorOf<T>,
    /// That of the vector. A pointer, as the poll function uses it again before this is gone.
    poller: NonNull<T::Poller<'static>>,
    queue: u16,
    lock: &'a mut OpsLocked<'static>,
}

impl<'a, T: QueueMgmtOps> QueueRestart<'a, T> {
    /// Disables NAPI, if it is not.
    fn new(inner: &'a Inner<T>, queue: c_int, lock: &'a mut OpsLocked<'static>) -> Result<Self> {
        let queue = u16::try_from(queue)?;
        let vector = inner.rx_vector(queue, lock).ok_or(ENETDOWN)?;
        // SAFETY: It exists as long as the device is up, which does not change while the lock is
        // held.
        let vector = unsafe { vector.as_ref() };

        // SAFETY: The device is up, so NAPI is enabled, or was paused by us. The lock is held, and
        // only we use the poller with that.
        let Some(poller) = (unsafe { vector.pause() }) else {
            // SAFETY: There is no poller.
            unsafe { vector.resume() };
            return Err(EINVAL);
        };
        Ok(Self {
            inner,
            vector,
            poller,
            queue,
            lock,
        })
    }

    /// Restarts all receive queues of a device that is up, one after another, with the memory that
    /// they have. What they have received and is not polled is lost. If one of them neither stops
    /// nor starts, the device is restarted.
    ///
    /// # Safety
    ///
    /// `dev` must be a device of driver `T`.
    unsafe fn all(dev: &Device, lock: &mut OpsLocked<'static>) {
        // SAFETY: By the safety requirements.
        let inner = unsafe { ops::inner::<T>(dev.as_raw()) };
        let mut queue = 0;

        while let Ok(mut restart) = QueueRestart::new(inner, queue, lock) {
            match restart.stop().map(|()| restart.start_again()) {
                Ok(Ok(())) => restart.resume(),
                Ok(Err(error)) => return restart.give_up("start", error),
                Err(error) => return restart.give_up("stop", error),
            }
            queue += 1;
        }
    }

    /// Enables NAPI.
    fn resume(self) {
        // SAFETY: The lock is held, and we do not use the poller any more.
        unsafe { self.vector.resume() };
    }

    /// The receive queue in the poller, and the lock.
    fn rx_and_lock(&mut self) -> (&mut T::Rx<'static>, &mut OpsLocked<'static>) {
        // SAFETY: NAPI is disabled until `self` is consumed, the lock is held, and only we use the
        // poller with that.
        let poller = unsafe { self.poller.as_mut() };
        let lock = &mut *self.lock;

        (T::rx(poller), lock)
    }

    /// Stops the queue.
    fn stop(&mut self) -> Result {
        let (inner, queue) = (self.inner, self.queue);
        let (rx, lock) = self.rx_and_lock();

        T::stop_rx(inner.data(), inner.dev(), queue, rx, lock)
    }

    /// Starts the queue with the memory in the poller.
    fn start(&mut self) -> Result {
        let (inner, napi, queue) = (self.inner, self.vector.napi(), self.queue);
        let (rx, lock) = self.rx_and_lock();

        // SAFETY: It was stopped, and the NIC does not know of new memory.
        unsafe {
            napi.without_new(|stopped| {
                T::start_rx(inner.data(), inner.dev(), stopped, queue, rx, lock)
            })
        }
    }

    /// Starts the queue with the memory with which it was stopped.
    fn start_again(&mut self) -> Result {
        if self.vector.rx_lost.get() {
            return Err(EIO);
        }
        self.start()
    }

    /// Moves memory into the poller, and what was there out of it.
    fn exchange(&mut self, spare: &mut RxQueueMem<T>) {
        mem::swap(self.rx_and_lock().0, &mut spare.rx);
        // SAFETY: NAPI is disabled, and the lock is held.
        spare.id = unsafe { self.vector.napi().exchange_id(spare.id) };
    }

    /// Starts the queue with other memory, for which it gives up what it had. If this fails, the
    /// queue has that again, stopped.
    fn start_with(&mut self, spare: &mut KBox<RxQueueMem<T>>) -> Result {
        self.exchange(spare);
        if let Err(error) = self.start() {
            // The NIC may have been told of the new memory.
            if let Err(error) = self.stop() {
                crate::netdev_err!(
                    self.inner.dev(),
                    "failed to stop receive queue {}: {error:?}\n",
                    self.queue
                );
                spare.is_known = true;
                self.vector.rx_lost.set(true);
            }
            self.exchange(spare);
            return Err(error);
        }
        Ok(())
    }

    /// Frees the memory that the queue had, and enables NAPI.
    fn finish(self, old: RxQueueMem<T>) {
        let napi = self.vector.napi();

        // SAFETY: NAPI is disabled, and the NIC has other memory.
        let closed = unsafe { RxClosed::new(old.id) };

        // A handle; its objects follow.
        T::closed_rx(self.inner.data(), self.queue, old.rx, &closed);
        // SAFETY: NAPI is disabled, and the lock is held.
        unsafe { napi.connect() };
        napi.drop_used(old.id);
        self.resume();
    }

    /// Restarts the device, as the queue can neither be stopped nor started. NAPI is enabled until
    /// then, as it is for any device that goes down. If the NIC may have memory that the poller
    /// has not, the driver is not called: it would tell the NIC of buffers by their places in
    /// other memory.
    fn give_up(self, what: &str, error: Error) {
        crate::netdev_err!(
            self.inner.dev(),
            "failed to {what} receive queue {} ({error:?}), restarting the device\n",
            self.queue
        );
        self.inner.schedule_restart();
        if self.vector.rx_lost.get() {
            // NAPI need not be disabled for that: the core waits for an instance that is, with the
            // lock held.
            self.vector.early.begin();
        }
        self.resume();
    }
}
