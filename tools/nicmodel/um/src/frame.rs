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
const FROM: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// The longest frame that a lie makes.
const LONGEST: u16 = 9728;
const LENGTH: usize = 128;
/// A frame of a TCP stream, which the driver or the card has cut into pieces, with its headers.
const PIECE: usize = 54 + DATA;
const DATA: usize = 1000;
/// Frames that arrive before the pieces.
const ALONE: u32 = 64;
const PIECES: u32 = 3;
/// In place of a sequence of bytes from the start of the payload.
const STEP: u8 = 7;

/// Frame `number` from the wire, to `to`.
pub(crate) fn arriving(to: [u8; 6], number: u32) -> Vec<u8> {
    let place = number % (ALONE + PIECES);
    match place.checked_sub(ALONE) {
        None => made(to, place),
        Some(place) => piece(to, place),
    }
}

/// A piece of the stream, which a card can join with those before it.
fn piece(to: [u8; 6], place: u32) -> Vec<u8> {
    let first = place as usize * DATA;
    let mut frame = vec![0; PIECE];
    let (ethernet, rest) = frame.split_at_mut(14);
    let (ip, tcp) = rest.split_at_mut(20);
    ethernet[..6].copy_from_slice(&to);
    ethernet[6..12].copy_from_slice(&FROM);
    ethernet[12..].copy_from_slice(&TYPES[0]);
    // Version, length of the header, total length; time to live, TCP.
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&(PIECE as u16 - 14).to_be_bytes());
    ip[8..10].copy_from_slice(&[64, 6]);
    let checksum = !sum(ip) as u16;
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    tcp[4..8].copy_from_slice(&(first as u32).to_be_bytes());
    // Length of the header, ACK.
    tcp[12..14].copy_from_slice(&[0x50, 0x10]);
    for (i, byte) in (first..).zip(&mut tcp[20..]) {
        *byte = (i as u8).wrapping_mul(STEP);
    }
    let checksum = !sum(&[&pseudo(ip, tcp.len()), &*tcp].concat()) as u16;
    tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// The header that TCP's checksum covers, too.
fn pseudo(ip: &[u8], length: usize) -> Vec<u8> {
    [&ip[12..], &[0, 6], &(length as u16).to_be_bytes()].concat()
}

/// Frame `number` of those that are alone, to `to`.
fn made(to: [u8; 6], number: u32) -> Vec<u8> {
    let mut frame = vec![0; LENGTH];
    frame[..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&FROM);
    frame[12..14].copy_from_slice(&TYPE);
    for (i, byte) in frame[14..].iter_mut().enumerate() {
        *byte = (number as u8).wrapping_add((i as u8).wrapping_mul(STEP));
    }
    frame
}

/// Bytes in front of IPv4's addresses.
const HEADERS: usize = 26;

/// Makes another frame of one: another length, or another type with a payload that follows from the
/// lie.
pub(crate) fn spoil(frame: &mut Vec<u8>, lie: &Lie) {
    let change = lie.of(0);
    if change & 1 == 0 {
        frame.resize(usize::from(lie.value % LONGEST).max(14), 0);
        return;
    }
    let kind = change as usize / 2 % TYPES.len();
    // Another lie may have made it shorter.
    frame.resize(frame.len().max(HEADERS), 0);
    frame[12..14].copy_from_slice(&TYPES[kind]);
    // Addresses, ports and flags of IPv4 with TCP, else anything.
    frame[14] = 0x45;
    frame[23] = if change & 64 == 0 { 6 } else { 17 };
    let end = frame.len().min(usize::from(lie.value).max(HEADERS));
    for (i, byte) in frame.iter_mut().enumerate().take(end).skip(HEADERS) {
        *byte = (change >> (i % 4 * 8)) as u8;
    }
}

/// Whether a frame is whole, and one of the kernel's.
pub(crate) fn is_whole(frame: &[u8]) -> bool {
    if frame.len() == PIECE {
        return is_piece(frame);
    }
    frame.len() == LENGTH && frame[12..14] == TYPE && {
        let expected = made([0; 6], frame[14].into());
        frame[14..] == expected[14..]
    }
}

/// Whether a frame is a piece of the TCP stream: the number of its first byte says the payload.
fn is_piece(frame: &[u8]) -> bool {
    let (ip, tcp) = frame[14..].split_at(20);
    let first = tcp[7].wrapping_mul(STEP);
    let is_right =
        |(i, byte): (usize, &u8)| *byte == first.wrapping_add((i as u8).wrapping_mul(STEP));
    frame[12..14] == TYPES[0]
        && ip[..2] == [0x45, 0]
        && ip[2..4] == (PIECE as u16 - 14).to_be_bytes()
        && sum(ip) == 0xffff
        && sum(&[&pseudo(ip, tcp.len()), tcp].concat()) == 0xffff
        && tcp[20..].iter().enumerate().all(is_right)
}

/// The sum of the Internet's checksums (RFC 1071).
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    words.fold(0, |sum, word| {
        let sum = sum + word;
        (sum & 0xffff) + (sum >> 16)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lie::{About, Lies};

    #[test]
    fn a_changed_byte_is_noticed() {
        let mut frame = made([0xff; 6], 300);
        assert!(is_whole(&frame));
        frame[100] ^= 1;
        assert!(!is_whole(&frame) && !is_whole(&frame[..127]));
    }

    #[test]
    fn a_piece_has_two_checksums() {
        let mut frame = piece([0xff; 6], 1);
        assert!(is_whole(&frame));
        for at in [12, 17, 24, 41, 51, 100] {
            let mut other = frame.clone();
            other[at] ^= 1;
            assert!(!is_whole(&other), "{at}");
        }
        // Sums do not notice the order.
        frame.swap(100, 102);
        frame.swap(101, 103);
        assert!(!is_whole(&frame));
    }

    #[test]
    fn a_frame_without_headers_gets_some() {
        // A length of 14 bytes, and another type.
        let mut lies = Lies::new(&[11, 3, 0, 0, 0, 1, 0, 0, 11, 2, 34, 0, 0, 1, 0, 8]);
        let mut frame = made([0xff; 6], 0);
        let mut lengths = Vec::new();
        for lie in lies.told(About::Frame, 0) {
            spoil(&mut frame, &lie);
            lengths.push(frame.len());
        }
        assert_eq!(lengths, [14, HEADERS]);
    }

    #[test]
    fn pieces_arrive_behind_frames() {
        let types: Vec<bool> = (0..70)
            .map(|number| arriving(FROM, number)[12..14] == TYPE)
            .collect();
        assert!(types[..64].iter().all(|alone| *alone));
        assert_eq!(types[64..], [false, false, false, true, true, true]);
        assert!((60..70).all(|number| is_whole(&arriving(FROM, number))));
    }
}
