// SPDX-License-Identifier: GPL-2.0

//! The owner of packets in flight, beside the two ends.

use super::record::Record;
use crate::{
    bindings,
    net::napi::{
        Attached,
        Napi, //
    },
    prelude::*,
    sync::{
        alf_queue::{
            Kept,
            Producer, //
        },
        aref::{
            ARef,
            AlwaysRefCounted, //
        },
        atomic::Acquire,
        Arc,
        Refcount, //
    }, //
};
use core::{
    mem,
    ptr::NonNull, //
};

/// The records of packets in flight, which belong to the NAPI instance of their ring, and then to
/// the leftovers of the device. The card reads the packets: to drop both ends, in a poll function
/// for instance, frees none.
pub(super) struct Keeper {
    _records: Kept<Record<'static>>,
    netdev: *mut bindings::net_device,
    /// The number of ends, plus one.
    ends: Refcount,
}

// SAFETY: The records are `Send`, and the device is only compared.
unsafe impl Send for Keeper {}

// SAFETY: With a shared reference, the records are not accessed.
unsafe impl Sync for Keeper {}

// SAFETY: As long as there is a reference, the keeper is in use, see below: it stays attached. All
// instances are part of a reference counted object, and count references.
unsafe impl AlwaysRefCounted for Keeper {
    fn inc_ref(&self) {
        self.ends.inc();
    }

    // To drop the last reference frees nothing: that may be in any context.
    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: By the safety requirements, there is a reference, so the keeper is valid.
        unsafe { obj.as_ref() }.ends.dec();
    }
}

impl Attached for Keeper {
    fn is_in_use(&self) -> bool {
        // As for the memory of descriptors.
        self.ends.as_atomic().load(Acquire) != 1
    }
}

impl Keeper {
    /// Has an instance keep the records of a new queue.
    ///
    /// # Safety
    ///
    /// The device that records refer to must be bound until the instance has dropped its objects.
    pub(super) unsafe fn attach<'a>(
        napi: &Napi,
        producer: &Producer<Record<'a>>,
    ) -> Result<ARef<Self>> {
        // SAFETY: By the safety requirements, the reference in a record is valid as long as the
        // keeper. The type is the same but for the lifetime.
        let records =
            unsafe { mem::transmute::<Kept<Record<'a>>, Kept<Record<'static>>>(producer.kept()) };
        let keeper = Arc::new(
            Self {
                _records: records,
                // SAFETY: The instance has been added to a device.
                netdev: unsafe { (*napi.as_raw()).dev },
                ends: Refcount::new(1),
            },
            GFP_KERNEL,
        )?;

        // First, since a reference does not own it.
        napi.attach(keeper.clone())?;
        Ok((&*keeper).into())
    }

    /// Whether the packets are those of a device.
    pub(super) fn is_of(&self, netdev: *mut bindings::net_device) -> bool {
        self.netdev == netdev
    }
}
