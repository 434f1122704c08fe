// SPDX-License-Identifier: GPL-2.0

//! Preemption, which must not stop a user of a shared end.

use crate::{
    bindings,
    types::NotThreadSafe, //
};

/// Keeps the current context from being preempted until it is dropped.
///
/// The other users of an end wait for the one that has claimed a run, so that must go on until it
/// has published the run.
pub(super) struct PreemptionOff(NotThreadSafe);

impl PreemptionOff {
    #[inline(always)]
    pub(super) fn new() -> Self {
        // SAFETY: This has no requirements. It is enabled when this is dropped.
        unsafe { bindings::preempt_disable() };
        Self(NotThreadSafe)
    }

    /// As [`Self::new`], with bottom halves disabled: with `CONFIG_PREEMPT_RT`, such a context can
    /// be preempted. Otherwise there is nothing to do.
    #[inline(always)]
    pub(super) fn in_softirq() -> Option<Self> {
        cfg!(CONFIG_PREEMPT_RT).then(Self::new)
    }
}

impl Drop for PreemptionOff {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: It was disabled for this.
        unsafe { bindings::preempt_enable() };
    }
}
