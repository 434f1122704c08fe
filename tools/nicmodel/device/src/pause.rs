// SPDX-License-Identifier: GPL-2.0
//! Pause frames (IEEE 802.3 annex 31B): the link partner asks the port to stop sending.

use crate::device::Device;
use crate::packet::be16;
use crate::regs::bits::Mflcn;
use crate::regs::offset;

const ADDRESS: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];
const ETHERTYPE_CONTROL: u16 = 0x8808;
const OPCODE_PAUSE: u16 = 1;
/// Picoseconds of a unit of pauses, 512 bit times, at 10 Gb/s.
const UNIT: u64 = 51_200;

/// Transmission as the link partner wants it.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    until: u64,
}

/// The units for which a frame asks, if it is a pause frame; none with the wish to go on.
fn units(frame: &[u8]) -> Option<u16> {
    let is_pause = frame.starts_with(&ADDRESS)
        && frame.len() >= 18
        && be16(frame, 12) == ETHERTYPE_CONTROL
        && be16(frame, 14) == OPCODE_PAUSE;
    is_pause.then(|| be16(frame, 16))
}

impl Pause {
    /// Looks at a frame that has arrived. True if it ends here: it does not reach the host.
    pub(crate) fn takes(&mut self, device: &Device, now: u64, frame: &[u8]) -> bool {
        let Some(units) = units(frame) else {
            return false;
        };
        let regs = &device.regs;
        let control = regs.get::<Mflcn>();
        regs.add(
            if units == 0 {
                offset::LXONRXCNT
            } else {
                offset::LXOFFRXCNT
            },
            1,
        );
        if control.rfce() {
            self.until = now + u64::from(units) * UNIT / 1000;
        }
        control.dpf()
    }

    /// When transmission goes on, if it pauses.
    pub(crate) fn until(&self, now: u64) -> Option<u64> {
        (self.until > now).then_some(self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::{Card, TX_DATA, whole};
    use crate::port::Arrival;
    use crate::testing::{set, udp_frame};

    fn pause(units: u16) -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[..6].copy_from_slice(&ADDRESS);
        frame[12..18].copy_from_slice(&[0x88, 0x08, 0, 1, (units >> 8) as u8, units as u8]);
        frame
    }

    /// Whether the card sends its frame at this time.
    fn sends(card: &mut Card, at: u64) -> bool {
        !card.transmit_at(at).is_empty()
    }

    fn card(mflcn: Mflcn) -> Card {
        let card = Card::new();
        card.receive_ring();
        card.transmit_ring();
        set(&card.device, mflcn);
        card.data(TX_DATA, &udp_frame(100));
        card.quadwords(0, TX_DATA, whole(100).raw_value());
        card.device.register_write(offset::TDT, 1);
        card
    }

    #[test]
    fn transmission_pauses_for_the_time_asked_for() {
        let mut card = card(Mflcn::ZERO.with_rfce(true).with_dpf(true));
        assert_eq!(card.receive(&pause(1000)), Arrival::Taken);
        assert_eq!(card.device.register_read(offset::LXOFFRXCNT), 1);
        // 1000 units are 51.2 us.
        assert!(!sends(&mut card, 51_000));
        assert!(sends(&mut card, 51_201));
    }

    #[test]
    fn the_link_partner_may_let_it_go_on() {
        let mut card = card(Mflcn::ZERO.with_rfce(true).with_dpf(true));
        card.receive(&pause(u16::MAX));
        card.receive(&pause(0));
        assert_eq!(card.device.register_read(offset::LXONRXCNT), 1);
        assert!(sends(&mut card, 10));
    }

    #[test]
    fn without_flow_control_it_goes_on() {
        let mut card = card(Mflcn::ZERO.with_dpf(true));
        card.receive(&pause(u16::MAX));
        assert_eq!(card.device.register_read(offset::LXOFFRXCNT), 1);
        assert!(sends(&mut card, 10));
    }

    #[test]
    fn pause_frames_do_not_reach_the_host() {
        let mut card = card(Mflcn::ZERO.with_dpf(true));
        card.receive(&pause(7));
        assert_eq!(card.device.register_read(offset::RDH), 0);
        let mut other = pause(7);
        other[15] = 2;
        assert!(units(&other).is_none() && units(&other[..16]).is_none());
    }
}
