// SPDX-License-Identifier: GPL-2.0
use super::*;
use crate::regs::bits::Register;
use crate::testing::{MAC, device, set, udp_frame};

fn accepts(device: &Device, to: [u8; 6]) -> bool {
    let mut frame = udp_frame(60);
    frame[..6].copy_from_slice(&to);
    RxConfig::load(device).accept(&frame).is_ok()
}

#[test]
fn own_address_only_until_told_otherwise() {
    let device = device();
    assert!(accepts(&device, MAC));
    assert!(!accepts(&device, [2, 9, 9, 9, 9, 9]));
    set(&device, Fctrl::ZERO.with_upe(true));
    assert!(accepts(&device, [2, 9, 9, 9, 9, 9]));
}

#[test]
fn a_receive_address_without_its_valid_bit_does_not_count() {
    let device = device();
    device.register_write(offset::RAL_HIGH + 8 * 100, 0x0403_0202);
    device.register_write(offset::RAL_HIGH + 8 * 100 + 4, 0x0605);
    assert!(!accepts(&device, [2, 2, 3, 4, 5, 6]));
    device.register_write(
        offset::RAL_HIGH + 8 * 100 + 4,
        Rah::ZERO.with_av(true).with_rah(0x0605).raw(),
    );
    assert!(accepts(&device, [2, 2, 3, 4, 5, 6]));
}

#[test]
fn broadcast_needs_bam_or_mpe() {
    let device = device();
    assert!(!accepts(&device, [0xff; 6]));
    set(&device, Fctrl::ZERO.with_bam(true));
    assert!(accepts(&device, [0xff; 6]));
    set(&device, Fctrl::ZERO.with_mpe(true));
    assert!(accepts(&device, [0xff; 6]));
}

#[test]
fn multicast_goes_by_the_table() {
    let device = device();
    let group = [0x01, 0, 0x5e, 0, 0, 0x01];
    assert!(!accepts(&device, group));
    // Offset 0: bits 4 to 15 of the last two bytes, here 0x010.
    device.register_write(offset::MTA, 1 << 16);
    assert!(!accepts(&device, group), "not without MFE");
    set(&device, Mcstctrl::ZERO.with_mfe(true));
    assert!(accepts(&device, group));
    assert!(!accepts(&device, [0x01, 0, 0x5e, 0, 0, 0x02]));
}

#[test]
fn vlan_table() {
    let device = device();
    let mut frame = udp_frame(64);
    frame[..6].copy_from_slice(&MAC);
    frame[12..16].copy_from_slice(&[0x81, 0x00, 0x00, 0x2a]);
    assert!(RxConfig::load(&device).accept(&frame).is_ok());
    set(&device, Vlnctrl::ZERO.with_vfe(true).with_vet(0x8100));
    assert_eq!(
        RxConfig::load(&device).accept(&frame),
        Err(Refusal::Filtered)
    );
    device.register_write(offset::VFTA + 4, 1 << 10);
    assert!(RxConfig::load(&device).accept(&frame).is_ok());
}

#[test]
fn length_limit_follows_jumbo_enable() {
    let device = device();
    let mut frame = udp_frame(2000);
    frame[..6].copy_from_slice(&MAC);
    assert_eq!(RxConfig::load(&device).accept(&frame), Err(Refusal::Length));
    set(&device, device.regs.get::<Hlreg0>().with_jumboen(true));
    set(&device, Maxfrs::ZERO.with_mfs(9018));
    assert!(RxConfig::load(&device).accept(&frame).is_ok());
    assert_eq!(
        RxConfig::load(&device).accept(&[0; 5]),
        Err(Refusal::Length)
    );
}
