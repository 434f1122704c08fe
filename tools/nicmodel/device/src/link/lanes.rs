// SPDX-License-Identifier: GPL-2.0
//! The lanes of a backplane: what both ends have of them, and over which signals pass.

use std::sync::atomic::{AtomicU8, Ordering};

use serde::Deserialize;

use super::Speed;
use crate::device::Device;
use crate::regs::bits::{Autoc, LinkMode};

/// Lanes of a backplane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Lane {
    /// One, at 10 Gb/s.
    Kr = 1,
    /// Four, for 10 Gb/s together.
    Kx4 = 2,
    /// One, at 1 Gb/s.
    Kx = 4,
}

/// The lanes over which signals pass, as bits. Without any, the EEPROM has chosen one way.
#[derive(Debug, Default)]
pub(super) struct Lanes(AtomicU8);

impl Device {
    /// Lets signals pass over these lanes only. From the next reset on, the port negotiates with a
    /// far end that has all of them.
    pub fn set_lanes(&self, lanes: &[Lane]) {
        let bits = lanes.iter().fold(0, |bits, lane| bits | *lane as u8);
        self.watch_link(|| self.link.lanes.0.store(bits, Ordering::Release));
    }

    fn lanes(&self) -> Option<u8> {
        match self.link.lanes.0.load(Ordering::Acquire) {
            0 => None,
            bits => Some(bits),
        }
    }

    /// AUTOC of a port without a cage, as the EEPROM has it.
    pub(crate) fn backplane(&self, autoc: Autoc) -> Autoc {
        if self.lanes().is_none() {
            return autoc.with_lms(LinkMode::Parallel10G);
        }
        autoc
            .with_lms(LinkMode::Backplane)
            .with_kr_supp(true)
            .with_kx4_supp(true)
            .with_kx_supp(true)
    }

    /// The speed of a link over a backplane.
    pub(super) fn backplane_speed(&self) -> Option<Speed> {
        match self.lanes() {
            Some(trains) if self.judge().is_some() => negotiate(self.regs.get(), trains),
            _ => Some(Speed::Ten),
        }
    }
}

/// Both ends take the best that they have, whether signals pass or not.
fn negotiate(autoc: Autoc, trains: u8) -> Option<Speed> {
    let all = [
        (autoc.kr_supp(), Lane::Kr, Speed::Ten),
        (autoc.kx4_supp(), Lane::Kx4, Speed::Ten),
        (autoc.kx_supp(), Lane::Kx, Speed::One),
    ];
    let (_, lane, speed) = all.into_iter().find(|(is_there, ..)| *is_there)?;
    let passes = autoc.lms() == Ok(LinkMode::Backplane) && trains & lane as u8 != 0;
    passes.then_some(speed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_lane_is_it_also_if_no_signal_passes() {
        let all = Autoc::ZERO
            .with_lms(LinkMode::Backplane)
            .with_kr_supp(true)
            .with_kx4_supp(true)
            .with_kx_supp(true);
        let without_kr = all.with_kr_supp(false);
        assert_eq!(negotiate(all, Lane::Kr as u8), Some(Speed::Ten));
        assert_eq!(negotiate(all, Lane::Kx4 as u8), None);
        assert_eq!(negotiate(without_kr, Lane::Kx4 as u8), Some(Speed::Ten));
        assert_eq!(negotiate(without_kr, Lane::Kx as u8), None);
        let slow = without_kr.with_kx4_supp(false);
        assert_eq!(negotiate(slow, Lane::Kx as u8), Some(Speed::One));
        let serial = all.with_lms(LinkMode::Serial10G);
        assert_eq!(negotiate(serial, Lane::Kr as u8), None);
    }
}
