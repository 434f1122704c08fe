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
    let first = Use {
        reads: 1,
        writes: 2,
        read: Some(3),
        written: Some(3),
        first: 0,
    };
    assert_eq!(phases[0].registers[&offset::RETA], first);
    assert_eq!(phases[0].registers[&(offset::RETA + 4)].first, 1);
    let polled = phases[1].registers[&offset::RETA];
    assert_eq!((polled.reads, polled.writes, polled.first), (100_000, 0, 3));
}

#[test]
fn a_write_is_the_drivers_value_and_a_read_the_cards() {
    let device = device();
    device.trace.begin("probe").expect("the first phase");
    // A register that is read only.
    let was = device.register_read(offset::FWSM);
    device.register_write(offset::FWSM, 0x1234_5678);
    let used = device.trace.phases()[0].registers[&offset::FWSM];
    assert_eq!((used.read, used.written), (Some(was), Some(0x1234_5678)));
    device.fault(Kind::Remove, 1, 0);
    device.register_read(offset::FWSM);
    let used = device.trace.phases()[0].registers[&offset::FWSM];
    assert_eq!((used.reads, used.read), (2, Some(u32::MAX)));
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
