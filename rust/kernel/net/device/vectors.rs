// SPDX-License-Identifier: GPL-2.0

//! The vectors that a driver makes for a device that goes up.

use super::{
    interrupt::Interrupt,
    targets::Target,
    vector::Vector, //
};

use crate::prelude::*;

/// The vectors of a device, with pollers of type `P`, and the producers of its transmit queues, of
/// type `X`.
///
/// # Invariants
///
/// `tx` has an entry for each of `vectors`, in the order of their numbers.
pub(super) struct Vectors<P, X> {
    /// For events other than packets.
    pub(super) event: Option<Interrupt>,
    pub(super) tx: KVVec<Option<X>>,
    pub(super) vectors: KVVec<Pin<KBox<Vector<P>>>>,
    /// The rings for frames that XDP redirects to the device, in the order of the vectors that they
    /// belong to.
    pub(super) targets: KVVec<Target>,
    /// Vectors without a poller, since the driver has failed to make one. What belongs to their
    /// NAPI instances stays until the NIC is quiet.
    pub(super) failed: KVVec<Pin<KBox<Vector<P>>>>,
}

impl<P, X> Vectors<P, X> {
    /// None.
    pub(super) fn new() -> Self {
        // INVARIANT: There are no vectors.
        Self {
            event: None,
            tx: KVVec::new(),
            vectors: KVVec::new(),
            targets: KVVec::new(),
            failed: KVVec::new(),
        }
    }
}
