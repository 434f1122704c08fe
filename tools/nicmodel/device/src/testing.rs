// SPDX-License-Identifier: GPL-2.0
//! Helpers of the unit tests.

use std::sync::Arc;

use vm_memory::{GuestAddress, GuestMemoryMmap, GuestRegionMmap};

use crate::checksum::{finish, insert_ipv4, pseudo, sum};
use crate::clock::ManualClock;
use crate::device::{Device, Identity};
use crate::memory::DmaMemory;
use crate::packet::{TCP, UDP, parse, put_be16};
use crate::regs::bits::Register;
use crate::regs::file::RegisterFile;

pub(crate) const MAC: [u8; 6] = [0x02, 0x5b, 0x82, 0x59, 0x90, 0x00];
pub(crate) const MEMORY: usize = 4 << 20;

pub(crate) fn device_with(clock: Arc<ManualClock>) -> Device {
    let identity = Identity {
        device_id: 0x10fb,
        mac: MAC,
        mapped: false,
    };
    let regs = RegisterFile::private().expect("memory");
    let mut device = Device::new(identity, regs, clock);
    let map = GuestMemoryMmap::from_ranges(&[(GuestAddress(0), MEMORY)]).expect("memory");
    device.memory = DmaMemory::new(map);
    device
}

/// Maps a page behind the others, as an IOMMU does for a packet, and returns its address.
pub(crate) fn map_page(device: &Device) -> u64 {
    let at = GuestAddress(MEMORY as u64);
    let region = GuestRegionMmap::from_range(at, 0x1000, None).expect("memory");
    assert!(device.memory.insert(region));
    at.0
}

/// Writes a register as a driver does; of an array, the first one.
pub(crate) fn set<R: Register>(device: &Device, value: R) {
    device.register_write(R::offset(0), value.raw());
}

pub(crate) fn device() -> Device {
    device_with(Arc::new(ManualClock::default()))
}

/// An Ethernet frame with UDP in IPv4 and right checksums; at least 42 bytes.
pub(crate) fn udp_frame(length: usize) -> Vec<u8> {
    let mut frame = vec![0_u8; length];
    frame[..6].copy_from_slice(&MAC);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[12] = 0x08;
    frame[14] = 0x45;
    put_be16(&mut frame, 16, (length - 14) as u16);
    frame[22] = 64;
    frame[23] = UDP;
    frame[26..34].copy_from_slice(&[10, 0, 0, 2, 10, 0, 1, 2]);
    put_be16(&mut frame, 36, 9);
    put_be16(&mut frame, 38, (length - 34) as u16);
    for (i, byte) in frame[42..].iter_mut().enumerate() {
        *byte = i as u8;
    }
    insert_ipv4(&mut frame, 14, 20);
    let parsed = parse(&frame);
    let start = pseudo(&frame, &parsed, UDP) + (length - 34) as u32;
    let value = finish(sum(&frame[34..], start));
    put_be16(&mut frame, 40, value);
    frame
}

/// An Ethernet frame with TCP in IPv4 and right checksums, with a timestamp or without.
pub(crate) fn tcp_frame(seq: u32, payload: &[u8], stamped: bool) -> Vec<u8> {
    let mut frame = vec![0_u8; if stamped { 66 } else { 54 }];
    let header = frame.len() - 34;
    frame[..6].copy_from_slice(&MAC);
    frame[12] = 0x08;
    frame[14] = 0x45;
    frame[22] = 64;
    frame[23] = TCP;
    frame[26..34].copy_from_slice(&[10, 0, 0, 2, 10, 0, 1, 2]);
    frame[35] = 9;
    frame[37] = 80;
    frame[38..42].copy_from_slice(&seq.to_be_bytes());
    frame[46] = (header as u8 / 4) << 4;
    frame[47] = 0x10; // ACK
    if stamped {
        frame[54..58].copy_from_slice(&[1, 1, 8, 10]);
    }
    frame.extend_from_slice(payload);
    let total = frame.len() - 14;
    put_be16(&mut frame, 16, total as u16);
    seal(&mut frame);
    frame
}

/// Makes the checksums of TCP in IPv4 right again, after a change.
pub(crate) fn seal(frame: &mut [u8]) {
    insert_ipv4(frame, 14, 20);
    put_be16(frame, 50, 0);
    let start = pseudo(frame, &parse(frame), TCP) + (frame.len() - 34) as u32;
    let value = finish(sum(&frame[34..], start));
    put_be16(frame, 50, value);
}

/// A large TCP send as a driver hands it to the card: lengths zero, pseudo header in the field.
pub(crate) fn tcp_send(payload: &[u8]) -> Vec<u8> {
    let mut send = vec![0_u8; 54];
    send[..6].copy_from_slice(&MAC);
    send[12] = 0x08;
    send[14] = 0x45;
    put_be16(&mut send, 16, 40);
    send[22] = 64;
    send[23] = TCP;
    send[26..34].copy_from_slice(&[10, 0, 0, 2, 10, 0, 1, 2]);
    send[46] = 0x50;
    send[47] = 0x99; // CWR, ACK, PSH, FIN
    let seed = !finish(pseudo(&send, &parse(&send), TCP));
    put_be16(&mut send, 50, seed);
    put_be16(&mut send, 16, 0);
    send.extend_from_slice(payload);
    send
}
