// SPDX-License-Identifier: GPL-2.0
use super::*;
use crate::fault::Kind;
use crate::regs::offset;
use crate::testing::device;

#[test]
fn nothing_is_counted_outside_of_phases() {
    let device = device();
    device.register_write(offset::RETA, 1);
    assert_eq!(device.trace.phases(), []);
    device.trace.begin("probe").expect("the first phase");
    device.trace.end();
    device.register_write(offset::RETA, 1);
    assert!(device.trace.phases()[0].registers.is_empty());
}

#[test]
fn accesses_are_counted_by_phase_and_register() {
    let device = device();
    device.trace.begin("probe").expect("the first phase");
    device.register_write(offset::RETA, 1);
    device.register_write(offset::RETA + 4, 2);
    device.register_write(offset::RETA, 3);
    device.trace.begin("open").expect("another");
    for _ in 0..100_000 {
        device.register_read(offset::RETA);
    }
    device.trace.begin("probe").expect("the same again");
    device.register_read(offset::RETA);

    let phases = device.trace.phases();
    let names: Vec<_> = phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["probe", "open"]);
    let used = |phase: usize, at| phases[phase].registers[&at];
    let (reads, writes) = (1, 2);
    assert_eq!(used(0, offset::RETA), Use { reads, writes });
    let (reads, writes) = (100_000, 0);
    assert_eq!(used(1, offset::RETA), Use { reads, writes });
}

#[test]
fn a_card_out_of_its_slot_is_still_asked() {
    let device = device();
    device.trace.begin("probe").expect("the first phase");
    device.fault(Kind::Remove, 1, 0);
    device.register_read(offset::FWSM);
    assert_eq!(device.trace.phases()[0].registers[&offset::FWSM].reads, 1);
}

#[test]
fn a_trace_is_bounded() {
    let device = device();
    for number in 0..PHASES {
        assert_eq!(device.trace.begin(&number.to_string()), Ok(()));
    }
    assert_eq!(device.trace.begin("one more"), Err(TooMany));
    assert_eq!(device.trace.begin("0"), Ok(()));
    device.register_read(BYTES as u32);
    assert!(device.trace.phases()[0].registers.is_empty());
}
