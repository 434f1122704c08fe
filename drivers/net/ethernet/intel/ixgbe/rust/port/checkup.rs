// SPDX-License-Identifier: GPL-2.0

//! The check-up of a port, once a second.

use kernel::{
    net::device::{
        ethtool::msglevel::MsgClass,
        CheckUp,
        Device, //
    },
    prelude::*,
    sync::atomic::Relaxed, //
};

use crate::{
    atr,
    flush,
    irq,
    mmio,
    port::Port, //
};

impl Port<'_> {
    /// Collects what no interrupt tells, or one that got lost.
    pub(super) fn check_up(&self, netdev: &Device) -> CheckUp {
        let bar = &self.bar;

        if mmio::is_gone(bar) {
            return CheckUp::Fine;
        }
        // The card's counters stick at their maximum, the one of frames after about 290 s.
        self.stats.save_hw(bar);
        if self.memory_error.load(Relaxed) {
            return CheckUp::Restart;
        }
        if atr::empty_if_spent(self.pdev.as_ref(), bar, &self.filters).is_err() {
            dev_err!(
                self.pdev,
                "the flow director cannot be emptied; it stays off\n"
            );
        }
        self.check_cage(netdev, false);
        self.update_link(netdev);

        if netdev.is_carrier_ok() || self.is_tested() {
            irq::raise_queues(bar);
        } else if flush::is_pending(bar) {
            // The stack does not notice: its watchdog needs a carrier. Meanwhile the packets would
            // keep their memory, and leave when the link is back.
            if self.msglevel.has(MsgClass::TxError) {
                dev_info!(
                    self.pdev,
                    "restarting to drop packets that were queued when the link went down\n"
                );
            }
            return CheckUp::Restart;
        }
        CheckUp::Fine
    }
}
