// SPDX-License-Identifier: GPL-2.0

//! Stand-in for the kernel's preemption.

/// Nothing: a thread of the model goes on sooner or later.
pub(super) struct PreemptionOff;

impl PreemptionOff {
    pub(super) fn in_softirq() -> Option<Self> {
        None
    }
}
