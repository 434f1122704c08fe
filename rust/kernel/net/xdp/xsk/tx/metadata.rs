// SPDX-License-Identifier: GPL-2.0

//! Requests of users that come with a frame.
//!
//! The metadata are in front of the frame, where the user may write at any time: C reads each of
//! them once.

use crate::{
    bindings,
    net::xdp::XdpFormat,
    prelude::*, //
};

/// The functions that C calls for what users may ask for.
pub(in crate::net) const TX_METADATA: &bindings::xsk_tx_metadata_ops =
    &bindings::xsk_tx_metadata_ops {
        tmo_request_timestamp: None,
        tmo_fill_timestamp: None,
        tmo_request_checksum: Some(checksum),
        tmo_request_launch_time: None,
    };

/// Where a checksum begins, and how far behind that it is stored.
type Checksum = Option<(u16, u16)>;

/// # Safety
///
/// Must only be called by C for a request of [`Asked::of`].
unsafe extern "C" fn checksum(start: u16, offset: u16, request: *mut c_void) {
    // SAFETY: By the safety requirements.
    unsafe { request.cast::<Checksum>().write(Some((start, offset))) };
}

/// The request of a user.
pub(super) enum Asked {
    Nothing,
    /// The NIC is to insert a checksum, by this descriptor.
    Checksum([u64; 2]),
    /// It cannot do that.
    Refused,
}

impl Asked {
    /// The one that comes with a frame of so many bytes, which begins with a descriptor.
    ///
    /// # Safety
    ///
    /// The pool must be there, and C have taken the descriptor from it.
    pub(super) unsafe fn of<F: XdpFormat>(
        pool: *mut bindings::xsk_buff_pool,
        desc: &bindings::xdp_desc,
        bytes: u64,
    ) -> Self {
        let mut request: Checksum = None;

        // SAFETY: By the safety requirements. If there are metadata, C has checked that they are
        // within the memory of the pool.
        unsafe {
            let mut metadata = bindings::xsk_buff_get_metadata(pool, desc.addr, desc.options);

            bindings::xsk_tx_metadata_request(
                pool,
                &mut metadata,
                TX_METADATA,
                (&raw mut request).cast(),
            );
        }
        let Some((start, offset)) = request else {
            return Self::Nothing;
        };
        // The checksum has two bytes, which are not behind the end.
        if u64::from(start) + u64::from(offset) + 2 > bytes {
            return Self::Refused;
        }
        F::tx_checksum(start, offset).map_or(Self::Refused, Self::Checksum)
    }
}
