//@ error: E0080 evaluation panicked
// SPDX-License-Identifier: GPL-2.0

//! The core looks for the end of the ranges, both ends of which are zero, behind the last one.

#![forbid(unsafe_code)]

use kernel::net::device::ethtool::rmon_stats::RmonHistRanges;

//~ pub const RANGES: RmonHistRanges = RmonHistRanges::new(&[RmonHistRanges::END]);
pub const RANGES: RmonHistRanges = RmonHistRanges::new(&[RmonHistRanges::range(1, 0)]);
