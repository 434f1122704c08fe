// SPDX-License-Identifier: GPL-2.0

//! The watchdog of a port, once a second.

use kernel::{
    net::device::{
        ethtool::msglevel::MsgClass,
        Device, //
        WatchdogAction,
    },
    prelude::*,
    sync::atomic::Relaxed, //
};

use crate::{
    atr,
    flush,
    irq,
    port::Port, //
};

impl Port<'_> {
    /// Checks for conditions that raise no interrupt, and for lost interrupts.
    pub(super) fn watchdog(&self, netdev: &Device) -> WatchdogAction {
        let bar = &self.bar;

        if bar.is_gone() {
            return WatchdogAction::Continue;
        }
        // The NIC's counters stick at their maximum, the one of frames after about 290 s.
        self.stats.save_hw(bar);
        self.ptp.check_up(bar);
        if self.memory_error.load(Relaxed) {
            return WatchdogAction::Restart;
        }
        if atr::empty_if_spent(self.pdev.as_ref(), bar, &self.filters).is_err() {
            dev_err!(
                self.pdev,
                "failed to flush the flow director, leaving it off\n"
            );
        }
        self.check_cage(netdev, false);
        self.update_link(netdev);

        if netdev.is_carrier_ok() || self.is_tested() {
            irq::raise_queues(bar, &self.masked);
        } else if flush::is_pending(bar) {
            // The core does not notice: its TX watchdog needs a carrier. Meanwhile the packets
            // would keep their memory, and leave when the link is back.
            if self.msglevel.has(MsgClass::TxError) {
                dev_info!(self.pdev, "restarting to clear TX work after link loss\n");
            }
            return WatchdogAction::Restart;
        }
        WatchdogAction::Continue
    }
}
