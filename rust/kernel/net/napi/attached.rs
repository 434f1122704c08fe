// SPDX-License-Identifier: GPL-2.0

//! The objects that belong to NAPI instances, and those that outlive their instance.

#[cfg(CONFIG_PAGE_POOL)]
use super::xsk_pool::XskPool;
use super::{
    Id,
    Napi, //
};

use crate::{
    bindings,
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

use core::{
    marker::PhantomData,
    mem, //
};

/// An object that a [`Napi`] owns on behalf of a driver.
///
/// It is dropped when the vector goes away, in process context, while NAPI is disabled, the
/// `struct napi_struct` still exists and the device is still bound. A driver only has a handle to
/// such an object. Most handles are useless without the [`Napi`] that the object belongs to, see
/// [`Id`], so the driver cannot delay that.
///
/// [`Napi`]: super::Napi
/// [`Id`]: super::Id
pub(crate) trait Attached: Send + Sync {
    /// Whether there are handles that access the object without the [`Napi`](super::Napi). If there
    /// are none, there will be none.
    ///
    /// Then it is freed later when the vector goes away, see [`Orphans`].
    fn is_in_use(&self) -> bool {
        false
    }

    /// Whether the NIC may do DMA to the object, or to memory that goes with it. Then it stays with
    /// a vector whose DMA has not stopped.
    fn is_dma_memory(&self) -> bool {
        true
    }

    /// Whether the object belongs to the receive queue of the vector: it goes when that queue gets
    /// other memory.
    fn is_of_rx_queue(&self) -> bool {
        false
    }

    /// Whether it makes the receive queue one whose frames XDP programs can see.
    fn is_for_programs(&self) -> bool {
        false
    }

    /// The object is lost: the device is about to go, and its NIC has not stopped. Process context,
    /// with RTNL held.
    fn lose(&self) {}

    /// The object was made while the instance was running, for a receive queue that has it now.
    ///
    /// # Safety
    ///
    /// `napi` must be the instance, which is disabled, and which owns the object until it is
    /// deleted.
    unsafe fn connect(&self, napi: *mut bindings::napi_struct) {
        let _ = napi;
    }
}

/// Memory of a driver that its NIC may access, see [`Napi::keep_dma`].
struct DriverMemory<M>(#[expect(dead_code)] Arc<M>);

impl<M: Send + Sync> Attached for DriverMemory<M> {}

/// The objects of an instance, with the identity that it had for each of them, see
/// [`Id`](super::Id).
pub(super) type AttachedList = KVec<(Id, Arc<dyn Attached>)>;

/// The identity for new objects, if that is not the current one of the instance.
///
/// Only the holder of the device's lock uses it; it is atomic so that looking at it does not sleep.
pub(super) struct NewId(Atomic<u64>);

impl NewId {
    /// No identity has these numbers.
    const NO_ID: u64 = u64::MAX;
    const NOTHING: u64 = u64::MAX - 1;

    pub(super) const fn none() -> Self {
        Self(Atomic::new(Self::NO_ID))
    }

    fn get(&self) -> Option<Id> {
        match self.0.load(Relaxed) {
            Self::NO_ID | Self::NOTHING => None,
            id => Some(Id(id)),
        }
    }

    fn set(&self, id: Option<Id>) {
        self.0.store(id.map_or(Self::NO_ID, |id| id.0), Relaxed);
    }

    fn is_refused(&self) -> bool {
        self.0.load(Relaxed) == Self::NOTHING
    }

    fn refuse(&self) {
        self.0.store(Self::NOTHING, Relaxed);
    }
}

/// The proof that the receive queue of an instance is stopped, and starts next: the NIC does not
/// access its memory.
///
/// A ring takes it for its address, with which the NIC may start. So there is one address for each
/// start, and no ring changes after that.
pub struct RxStopped<'a> {
    napi: &'a Napi,
    // It proves nothing elsewhere.
    _not_send: PhantomData<*mut ()>,
}

impl<'a> RxStopped<'a> {
    /// The instance. Not for drivers, which would get addresses of rings with it.
    #[cfg_attr(not(CONFIG_PAGE_POOL), expect(dead_code, reason = "for rings"))]
    #[inline]
    pub(in crate::net) fn napi(&self) -> &'a Napi {
        self.napi
    }
}

/// The proof that neither the NIC nor a poll function accesses the memory that a receive queue had,
/// which is there still: it is about to be freed.
pub struct RxClosed<'a> {
    id: Id,
    // It proves nothing elsewhere, nor when the instance is gone.
    _napi: PhantomData<(&'a Napi, *mut ())>,
}

impl RxClosed<'_> {
    /// # Safety
    ///
    /// Memory with this identity must exist during the lifetime, and not be in use.
    pub(in crate::net) unsafe fn new(id: Id) -> Self {
        Self {
            id,
            _napi: PhantomData,
        }
    }

    /// Whether the memory is that with this identity.
    #[cfg_attr(not(CONFIG_PAGE_POOL), expect(dead_code, reason = "for rings"))]
    pub(in crate::net) fn is_of(&self, id: Id) -> bool {
        self.id == id
    }
}

impl Napi {
    /// Takes over `object`, until the vector goes away, or until its receive queue gets other
    /// memory. If this fails, it is dropped at once: with [`EINVAL`] if it would stay although it
    /// is made for a receive queue, and pile up with each restart of that, or if it is made while
    /// that is [started](Self::without_new).
    pub(crate) fn attach(&self, object: Arc<dyn Attached>) -> Result {
        let would_stay = self.new_id.get().is_some() && !object.is_of_rx_queue();
        if would_stay || self.new_id.is_refused() {
            return Err(EINVAL);
        }
        let mut attached = self.attached.lock();

        attached.reserve(1, GFP_KERNEL)?;
        self.orphans.reserve()?;
        let id = self.new_id.get().unwrap_or(self.id());
        // There is room.
        let _ = attached.push_within_capacity((id, object));
        Ok(())
    }

    /// Keeps memory of the driver's own that the NIC may access, beside the driver's handle to it:
    /// as that of rings, until the vector goes away and the NIC was stopped or reset. If it was
    /// neither, the memory is lost, but not the rest of the driver's state.
    ///
    /// Memory that is older than the vector, of [`Driver::Data`] for instance, is kept by a vector
    /// each time that the device is opened.
    ///
    /// Context: process context, while the instance is being set up.
    ///
    /// [`Driver::Data`]: crate::net::device::Driver::Data
    pub fn keep_dma<M: Send + Sync + 'static>(&self, memory: Arc<M>) -> Result {
        self.attach(Arc::new(DriverMemory(memory), GFP_KERNEL)?)
    }

    /// The identity for a new object.
    #[cfg_attr(not(CONFIG_PAGE_POOL), expect(dead_code, reason = "for page pools"))]
    pub(crate) fn id_of_new(&self) -> Id {
        self.new_id.get().unwrap_or(self.id())
    }

    /// Whether objects with this identity belong to the instance now, in use or being made.
    #[cfg_attr(not(CONFIG_PAGE_POOL), expect(dead_code, reason = "for page pools"))]
    pub(crate) fn has(&self, id: Id) -> bool {
        id == self.id() || self.is_new(id)
    }

    /// Whether objects with this identity are being made, while others are in use.
    pub(crate) fn is_new(&self, id: Id) -> bool {
        self.new_id.get() == Some(id)
    }

    /// Whether XDP programs can see the frames of the receive queue, with the memory that it has.
    ///
    /// Context: process context, with the lock of the device's operations held.
    pub(in crate::net) fn is_for_programs(&self) -> bool {
        let id = self.id();

        self.attached
            .lock()
            .iter()
            .any(|(of, object)| *of == id && object.is_for_programs())
    }

    /// Runs `make`, whose objects get an identity of their own, for memory that the receive queue
    /// of the vector may have later. Meanwhile the instance is running. If `make` fails, they are
    /// dropped.
    ///
    /// Context: process context, with the lock of the device's operations held.
    pub(in crate::net) fn alloc_rx<R>(&self, make: impl FnOnce() -> Result<R>) -> Result<(Id, R)> {
        let id = Id::new();

        self.new_id.set(Some(id));
        let result = make();
        self.new_id.set(None);
        match result {
            Ok(result) => Ok((id, result)),
            Err(error) => {
                self.drop_unused(id);
                Err(error)
            }
        }
    }

    /// Runs `f`, with which the receive queue starts, and which makes no objects.
    ///
    /// Context: as for [`Self::alloc_rx`].
    ///
    /// # Safety
    ///
    /// The NIC must not access the memory of the queue, unless `f` has started it.
    pub(in crate::net) unsafe fn without_new<R>(&self, f: impl FnOnce(RxStopped<'_>) -> R) -> R {
        self.new_id.refuse();
        let result = f(RxStopped {
            napi: self,
            _not_send: PhantomData,
        });
        self.new_id.set(None);
        result
    }

    /// Lets the objects with this identity be used, rather than those before. Returns the identity
    /// of the latter.
    ///
    /// # Safety
    ///
    /// The instance must be disabled, and the lock of the device's operations be held.
    pub(in crate::net) unsafe fn exchange_id(&self, id: Id) -> Id {
        // SAFETY: By the safety requirements, nothing else accesses it.
        core::mem::replace(unsafe { &mut *self.id.get() }, id)
    }

    /// Connects the objects that are in use, which were made while others were.
    ///
    /// # Safety
    ///
    /// As for [`Self::exchange_id`].
    pub(in crate::net) unsafe fn connect(&self) {
        let id = self.id();

        for (of, object) in self.attached.lock().iter() {
            if *of == id {
                // SAFETY: We are the instance, which is disabled.
                unsafe { object.connect(self.as_raw()) };
            }
        }
    }

    /// See [`Attached::lose`].
    pub(in crate::net) fn lose(&self) {
        for (_, object) in self.attached.lock().iter() {
            object.lose();
        }
    }

    /// Drops the objects that were made with an identity, and that have never been in use.
    pub(in crate::net) fn drop_unused(&self, id: Id) {
        self.drop_if(|of, _object| of == id);
    }

    /// Drops the objects with an identity that the receive queue does not use any more. The NIC
    /// must not know of them, and the instance must be disabled.
    pub(in crate::net) fn drop_used(&self, id: Id) {
        self.drop_if(|of, object| of == id && object.is_of_rx_queue());
    }

    /// Drops the objects for which `goes` says so, in their order, or leaves them behind if they
    /// are in use.
    ///
    /// To be called when NAPI is disabled and not yet deleted, unless they have never been in use.
    pub(in crate::net) fn drop_if(&self, mut goes: impl FnMut(Id, &dyn Attached) -> bool) {
        // Not with the lock held: one after the other.
        loop {
            let object = {
                let mut attached = self.attached.lock();
                let found = attached
                    .iter()
                    .position(|(of, object)| goes(*of, &**object));

                found.and_then(|place| attached.remove(place).ok())
            };
            match object {
                Some((_of, object)) => self.orphans.take_over(object),
                None => return,
            }
        }
    }
}

/// Objects whose vector has gone away while drivers had handles to them. Dropping the last handle
/// frees nothing, as that may be in any context.
///
/// There is one of these per device, which also knows the pools of users' memory that are bound to
/// its queues. A driver can use its handles with later vectors, and tell the
/// NIC of the objects. So an object is dropped when the device is down, the NIC is quiet, and
/// there are no handles.
#[pin_data]
pub(crate) struct Orphans {
    #[pin]
    pub(super) objects: Mutex<Objects>,
}

pub(super) struct Objects {
    /// With room for all objects that belong to a vector.
    left: KVec<Arc<dyn Attached>>,
    /// The number of those.
    attached: usize,
    /// The pools of users' memory, by queue.
    #[cfg(CONFIG_PAGE_POOL)]
    pub(super) pools: KVec<(u16, Arc<XskPool>)>,
    /// Whether they are in use: the device has a program, or is about to have one.
    #[cfg(CONFIG_PAGE_POOL)]
    pub(super) are_pools_in_use: bool,
}

/// The name of a lock class, see [`ATTACHED`](super::ATTACHED).
static ORPHANS: &CStr = c"napi::Orphans";

impl Orphans {
    /// For a device without vectors.
    pub(in crate::net) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                objects <- Mutex::new(
                    Objects {
                        left: KVec::new(),
                        attached: 0,
                        #[cfg(CONFIG_PAGE_POOL)]
                        pools: KVec::new(),
                        #[cfg(CONFIG_PAGE_POOL)]
                        are_pools_in_use: false,
                    },
                    ORPHANS,
                    static_lock_class!()
                ),
            }),
            GFP_KERNEL,
        )
    }

    /// Makes room for an object that is about to belong to a vector.
    pub(super) fn reserve(&self) -> Result {
        let mut objects = self.objects.lock();
        let room = objects.attached + 1;

        objects.left.reserve(room, GFP_KERNEL)?;
        objects.attached = room;
        Ok(())
    }

    /// Takes over an object of a vector that goes away, or drops it. [`Self::reserve`] was called
    /// for it.
    pub(super) fn take_over(&self, object: Arc<dyn Attached>) {
        let unused = {
            let mut objects = self.objects.lock();

            objects.attached -= 1;
            if object.is_in_use() {
                // There is room.
                let _ = objects.left.push_within_capacity(object);
                None
            } else {
                Some(object)
            }
        };
        // Not with the lock held.
        drop(unused);
    }

    /// Drops the objects without handles. No NIC may know of them. Process context.
    pub(in crate::net) fn drop_unused(&self) {
        self.objects.lock().left.retain(|object| object.is_in_use());
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        for object in mem::take(&mut self.left) {
            // The driver has forgotten a handle, or what has one.
            if object.is_in_use() {
                mem::forget(object);
            }
        }
    }
}
