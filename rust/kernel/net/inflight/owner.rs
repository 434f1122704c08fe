// SPDX-License-Identifier: GPL-2.0

//! The owner of packets in flight, beside the two ends.

use super::record::Record;
use crate::{
    bindings,
    net::napi::{
        Napi, //
        NapiOwned,
    },
    prelude::*,
    sync::{
        alf_queue::{
            Owner,
            Producer, //
        },
        aref::ARef, //
    }, //
};
use core::mem;

/// The records of packets in flight, which belong to the NAPI instance of their ring, and then to
/// the orphans of the device. The NIC reads the packets: to drop both ends, in a poll function for
/// instance, frees none.
pub(super) struct RecordsOwner {
    _records: Owner<Record<'static>>,
    /// The device of the instance, to be compared.
    pub(super) netdev: *mut bindings::net_device,
}

// SAFETY: The records are `Send`, and the device is only compared.
unsafe impl Send for RecordsOwner {}

// SAFETY: With a shared reference, the records are not accessed.
unsafe impl Sync for RecordsOwner {}

impl RecordsOwner {
    /// Has an instance keep the records of a new queue.
    ///
    /// # Safety
    ///
    /// The device that records refer to must be bound until the instance has dropped its objects.
    pub(super) unsafe fn attach<'a>(
        napi: &Napi,
        producer: &Producer<Record<'a>>,
    ) -> Result<ARef<NapiOwned<Self>>> {
        // SAFETY: By the safety requirements, the reference in a record is valid as long as the
        // owner. The type is the same but for the lifetime.
        let records = unsafe {
            mem::transmute::<Owner<Record<'a>>, Owner<Record<'static>>>(producer.owner())
        };
        let owner = Self {
            _records: records,
            // SAFETY: The instance has been added to a device.
            netdev: unsafe { (*napi.as_raw()).dev },
        };

        NapiOwned::attach(napi, owner)
    }
}
