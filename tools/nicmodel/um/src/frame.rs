// SPDX-License-Identifier: GPL-2.0
//! The frames of the trial: what `pci_card_life.c` sends, and what it wants to receive.

use crate::lie::Lie;

/// The type of both: the first one for local experiments (IEEE Std 802).
const TYPE: [u8; 2] = [0x88, 0xb5];
/// Types of frames that a card looks into: IPv4, IPv6, VLAN, LLDP, flow control.
const TYPES: [[u8; 2]; 5] = [
    [0x08, 0],
    [0x86, 0xdd],
    [0x81, 0],
    [0x88, 0xcc],
    [0x88, 0x08],
];
/// The longest frame that a lie makes.
const LONGEST: u16 = 9728;
const LENGTH: usize = 128;
/// In place of a sequence of bytes from the start of the payload.
const STEP: u8 = 7;

/// Frame `number`, to `to`.
pub(crate) fn made(to: [u8; 6], number: u32) -> Vec<u8> {
    let mut frame = vec![0; LENGTH];
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&TYPE);
    for (i, byte) in frame[14..].iter_mut().enumerate() {
        *byte = (number as u8).wrapping_add((i as u8).wrapping_mul(STEP));
    }
    frame
}

/// Makes another frame of one: another length, or another type with a payload that follows from the
/// lie.
pub(crate) fn spoil(frame: &mut Vec<u8>, lie: &Lie) {
    let change = lie.of(0);
    if change & 1 == 0 {
        frame.resize(usize::from(lie.value % LONGEST).max(14), 0);
        return;
    }
    let kind = change as usize / 2 % TYPES.len();
    frame[12..14].copy_from_slice(&TYPES[kind]);
    // Addresses, ports and flags of IPv4 with TCP, else anything.
    frame[14] = 0x45;
    frame[23] = if change & 64 == 0 { 6 } else { 17 };
    let end = frame.len().min(usize::from(lie.value).max(26));
    for (i, byte) in frame.iter_mut().enumerate().take(end).skip(26) {
        *byte = (change >> (i % 4 * 8)) as u8;
    }
}

/// Whether a frame is whole, and one of the kernel's.
pub(crate) fn is_whole(frame: &[u8]) -> bool {
    frame.len() == LENGTH && frame[12..14] == TYPE && {
        let expected = made([0; 6], frame[14].into());
        frame[14..] == expected[14..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_byte_is_noticed() {
        let mut frame = made([0xff; 6], 300);
        assert!(is_whole(&frame));
        frame[100] ^= 1;
        assert!(!is_whole(&frame) && !is_whole(&frame[..127]));
    }
}
