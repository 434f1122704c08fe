// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::net::device`.

use super::queue::RingSize;

/// The numbers of descriptors that rings can have.
#[expect(dead_code, reason = "the driver has one")]
pub(crate) struct RingRange {
    pub(crate) min: RingSize,
    pub(crate) max: RingSize,
    pub(crate) default: RingSize,
}
