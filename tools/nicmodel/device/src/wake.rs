// SPDX-License-Identifier: GPL-2.0
//! Wake-up (datasheet 5.3): a frame, or a change of the link, lets a function that is asleep ask
//! for power.
//!
//! The status belongs to the wake-up context: neither sleep nor a reset by CTRL clears it, as the
//! driver reads there why it was woken.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::counters::bump;
use crate::device::Device;
use crate::filter::{RxConfig, receive_address};
use crate::function::PciFunction;
use crate::judge::rules;
use crate::packet::ETH_HEADER;
use crate::regs::bits::{Autoc2, Esdp, Register, Wuc, Wufc, Wus};
use crate::regs::file::RegisterFile;

/// Bytes of the pattern in a magic packet: six of ones, and sixteen times the address.
const PATTERN: usize = 6 + 16 * 6;
const BROADCAST: [u8; 6] = [0xff; 6];
/// The bit of WUS that no packet sets.
const BY_LINK: u32 = Wus::ZERO.with_lnkc(true).raw_value();

/// The wake-up status (WUS).
#[derive(Debug, Default)]
pub(crate) struct Wake(AtomicU32);

impl Wake {
    pub(crate) fn status(&self) -> Wus {
        Wus::from_raw(self.0.load(Ordering::Acquire))
    }

    /// Clears the bits that are set in `bits`.
    pub(crate) fn clear(&self, bits: Wus) {
        self.0.fetch_and(!bits.raw(), Ordering::AcqRel);
    }

    /// As after power on.
    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Release);
    }
}

impl Device {
    /// Whether the function sleeps: it is in another power state than D0.
    pub fn is_asleep(&self) -> bool {
        self.config.is_asleep()
    }

    pub(crate) fn wuc(&self) -> Wuc {
        self.regs
            .get::<Wuc>()
            .with_pme_en(self.config.pme_enabled())
            .with_pme_status(self.config.pme_status())
    }

    pub(crate) fn write_wuc(&self, value: Wuc) {
        self.regs
            .set(value.with_pme_en(false).with_pme_status(false));
        self.config.enable_pme(value.pme_en());
        if value.pme_status() {
            self.config.clear_pme_status();
        }
    }

    /// The function was put to sleep.
    pub(crate) fn fall_asleep(&self) {
        // From now on there is no DMA, and the engine listens for frames that wake.
        self.quiesce();
        if self.config.pme_enabled()
            && let Some(judge) = self.judge()
            && let Some(reason) = self.deaf()
        {
            judge.note(rules::WAKE_UP, None, reason.to_owned());
        }
    }

    /// Why nothing can wake the function, as the driver has left it.
    fn deaf(&self) -> Option<&'static str> {
        let regs = &self.regs;
        let filters = regs.get::<Wufc>().raw() & Wufc::FILTERS;
        let status = self.wake.status().raw();
        let mut left = filters;
        if status & !BY_LINK != 0 {
            left &= BY_LINK;
        }
        if status & BY_LINK != 0 {
            left &= !BY_LINK;
        }
        if filters == 0 {
            Some("WUFC has no filter")
        } else if regs.get::<Autoc2>().link_is_off_in_d3() {
            Some("AUTOC2 turns the link off")
        } else if self.has_cage() && regs.get::<Esdp>().sdp3_data() {
            Some("the laser is off")
        } else if left == 0 {
            Some("WUS was not cleared")
        } else {
            None
        }
    }

    /// A frame arrives at a function that is asleep.
    pub(crate) fn hear(&self, config: &RxConfig, frame: &[u8]) {
        // The card ignores packets until the driver knows of the last one that woke it.
        if self.wake.status().raw() & !BY_LINK != 0 || self.link_sleeps() {
            return;
        }
        let passed = passed(config, &self.regs, frame);
        self.wake_up(passed);
    }

    /// The link has changed.
    pub(crate) fn feel_link(&self) {
        let known = self.wake.status().lnkc();
        if self.is_asleep() && !known && !self.link_sleeps() && !self.faults.removed() {
            self.wake_up(Wus::ZERO.with_lnkc(true));
        }
    }

    fn link_sleeps(&self) -> bool {
        self.regs.get::<Autoc2>().link_is_off_in_d3()
    }

    /// Wakes the machine for those of `reasons` for which the driver has turned a filter on.
    fn wake_up(&self, reasons: Wus) {
        let reasons = reasons.raw() & self.regs.get::<Wufc>().raw();
        if reasons == 0 {
            return;
        }
        self.wake.0.fetch_or(reasons, Ordering::AcqRel);
        if self.config.raise_pme() {
            bump(&self.totals.wake_ups, 1);
        }
    }
}

/// The filters that a frame passes, whether they are on or not.
fn passed(config: &RxConfig, regs: &RegisterFile, frame: &[u8]) -> Wus {
    let Some(to) = frame.first_chunk::<6>() else {
        return Wus::ZERO;
    };
    if !config.length(frame) || !config.vlan(frame) {
        return Wus::ZERO;
    }
    let group = to[0] & 1 != 0;
    let broadcast = *to == BROADCAST;
    let accepted = config.address(frame);
    let magic = receive_address(regs, 0).is_some_and(|own| is_magic(frame, own));
    Wus::ZERO
        .with_mag(accepted && magic)
        .with_ex(!group && config.exact(to))
        .with_mc(accepted && group && !broadcast)
        .with_bc(broadcast)
}

/// Whether the pattern for the address is anywhere in the payload.
fn is_magic(frame: &[u8], own: [u8; 6]) -> bool {
    frame
        .get(ETH_HEADER..)
        .unwrap_or_default()
        .windows(PATTERN)
        .any(|window| {
            let (ones, rest) = window.split_at(6);
            *ones == BROADCAST && rest.chunks_exact(6).all(|chunk| *chunk == own)
        })
}

#[cfg(test)]
mod tests;
