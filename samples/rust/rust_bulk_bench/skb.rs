// SPDX-License-Identifier: GPL-2.0

//! Benchmarks of the SKB cache.
//!
//! What is measured is C code of the network stack, called from C, with the pool and without: both
//! sides are in `bulk_bench_reference/skb.c`.

use super::timing::Report;
use kernel::prelude::*;

/// Does nothing.
pub(super) fn run(_report: &Report) -> Result {
    Ok(())
}
