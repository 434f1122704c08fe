// SPDX-License-Identifier: GPL-2.0

//! Benchmarks of alf_queue.

use super::timing::Report;
use kernel::prelude::*;

/// Runs one round.
pub(super) fn run(_report: &Report) -> Result {
    Ok(())
}
