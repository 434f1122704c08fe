// SPDX-License-Identifier: GPL-2.0

//! Benchmarks of qmempool.

use super::timing::Report;
use kernel::prelude::*;

/// Runs one round.
pub(super) fn run(_report: &Report) -> Result {
    Ok(())
}
