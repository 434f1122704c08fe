// SPDX-License-Identifier: GPL-2.0
use super::*;
use crate::judge::{Judge, Settings};
use crate::module::Kind;
use crate::regs::bits::Register;
use crate::regs::offset;
use crate::testing::{device, set};

fn judged() -> Device {
    device().judged(Judge::new(Settings {
        port: 0,
        seed: 1,
        excused: None,
        conventions: true,
    }))
}

fn put(device: &Device, kind: Kind) {
    device.set_module(Some(Module::new(kind)));
}

fn mode(device: &Device, mode: LinkMode) {
    let autoc = device.regs.get::<Autoc>();
    set(device, autoc.with_lms(mode).with_restart_an(true));
}

fn cage_is_full(device: &Device) -> bool {
    Esdp::from_raw(device.register_read(offset::ESDP)).sdp2_data()
}

#[test]
fn without_a_module_there_is_no_link() {
    let device = device();
    assert!(device.link() && cage_is_full(&device));
    device.set_module(None);
    assert!(!device.link() && !cage_is_full(&device));
    put(&device, Kind::Sx);
    assert_eq!(device.speed(), Some(Speed::One));
    assert!(cage_is_full(&device));
    for kind in [Kind::Garbage, Kind::Qsfp] {
        put(&device, kind);
        assert!(!device.link(), "{kind:?}");
    }
}

#[test]
fn the_mode_has_to_be_that_of_the_module() {
    let device = judged();
    put(&device, Kind::Lx);
    assert_eq!(device.speed(), None);
    mode(&device, LinkMode::GigabitNegotiated);
    assert_eq!(device.speed(), Some(Speed::One));
    put(&device, Kind::Lr);
    assert_eq!(device.speed(), None);
    mode(&device, LinkMode::Serial10G);
    assert_eq!(device.speed(), Some(Speed::Ten));
}

#[test]
fn a_module_for_two_rates_needs_its_pin() {
    let device = judged();
    put(&device, Kind::Dual);
    assert_eq!(device.speed(), None);
    let ten = Esdp::ZERO.with_sdp5_dir(true).with_sdp5_data(true);
    set(&device, ten);
    assert_eq!(device.speed(), Some(Speed::Ten));
    device.set_far_end(true, Some(Speed::One));
    assert_eq!(device.speed(), None);
    mode(&device, LinkMode::Gigabit);
    assert_eq!(device.speed(), None);
    set(&device, ten.with_sdp5_data(false));
    assert_eq!(device.speed(), Some(Speed::One));
}

fn read_links(device: &Device) {
    device.register_read(offset::LINKS);
}

fn set_up(device: &Device) {
    device.register_write(offset::CORECTL, 1);
}

#[test]
fn a_link_is_settled_when_it_was_started_over_the_module_and_is_known() {
    let device = judged();
    set_up(&device);
    mode(&device, LinkMode::Serial10G);
    assert!(!device.is_link_settled(), "nobody has read LINKS");
    read_links(&device);
    assert!(device.is_link_settled());
    put(&device, Kind::Lr);
    read_links(&device);
    assert!(
        device.link() && !device.is_link_settled(),
        "it has no settings"
    );
    mode(&device, LinkMode::Serial10G);
    set_up(&device);
    read_links(&device);
    assert!(!device.is_link_settled(), "it was not started with them");
    mode(&device, LinkMode::Parallel10G);
    assert!(!device.is_link_settled(), "it is down");
    mode(&device, LinkMode::Serial10G);
    assert!(!device.is_link_settled(), "it is not known");
    read_links(&device);
    assert!(device.is_link_settled());
    device.set_link(false);
    device.set_link(true);
    assert!(!device.is_link_settled(), "that it was away is not known");
    device.set_module(None);
    read_links(&device);
    assert!(!device.is_link_settled());
}

#[test]
fn pins_raise_causes_if_they_may() {
    let device = judged();
    put(&device, Kind::Lr);
    assert_eq!(device.irq.causes() & CAUSE_MODULE, 0);
    set(
        &device,
        Gpie::ZERO.with_sdp1_gpien(true).with_sdp2_gpien(true),
    );
    put(&device, Kind::Lr);
    assert_eq!(device.irq.causes() & CAUSE_MODULE, 0, "it is the same");
    device.set_module(None);
    assert_eq!(device.irq.causes() & CAUSE_MODULE, 0, "it went");
    device.set_link(false);
    assert_eq!(device.irq.causes() & CAUSE_LIGHT, 0, "nothing sees it");
    put(&device, Kind::Sr);
    device.set_link(true);
    let both = CAUSE_MODULE | CAUSE_LIGHT;
    assert_eq!(device.irq.causes() & both, both);
}
