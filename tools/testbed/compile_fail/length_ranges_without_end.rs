//@ error: E0080 evaluation panicked
// SPDX-License-Identifier: GPL-2.0

//! The core looks for the end of the ranges, both ends of which are zero, behind the last one.

#![forbid(unsafe_code)]

use kernel::net::device::controls::LengthRanges;

//~ pub const RANGES: LengthRanges = LengthRanges::new(&[LengthRanges::END]);
pub const RANGES: LengthRanges = LengthRanges::new(&[LengthRanges::range(1, 0)]);
