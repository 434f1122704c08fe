// SPDX-License-Identifier: GPL-2.0
//! Cables, files and single frames on a port with a driver behind it.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod guest;

use std::path::PathBuf;

use guest::{Bench, RING, mac, route};
use nicmodel_device::regs::bits::Hlreg0;
use nicmodel_device::regs::offset::{TDH, TDT};
use nicmodel_wire::Request;
use nicmodel_wire::files::Files;
use serde_json::{Value, json};

fn frame(to: u8, from: u8, byte: u8) -> Vec<u8> {
    let mut frame = vec![byte; 60];
    frame[..6].copy_from_slice(&mac(to));
    frame[6..12].copy_from_slice(&mac(from));
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

fn kind(bench: &mut Bench, port: usize) -> Value {
    bench.ask(|reply| Request::Describe(port, reply))["kind"].clone()
}

/// A bench whose ports are up and may record below a folder of their own.
fn recording(name: &str) -> (Bench, PathBuf) {
    let folder = std::env::temp_dir().join(format!("nicmodel-wires-{}-{name}", std::process::id()));
    let mut bench = Bench::up();
    let files = Files::below(&folder, Vec::new()).unwrap();
    bench.fabric.set_files(files);
    (bench, folder)
}

#[test]
fn a_cable_carries_both_ways_and_in_order() {
    let mut bench = Bench::up();
    assert_eq!(
        bench.plug(0, r#"{"kind":"cable","peer":1}"#)["ok"],
        json!(true)
    );
    for i in 0..100 {
        bench.ports[0].send(&frame(1, 0, i));
        bench.ports[1].send(&frame(0, 1, i));
    }
    // A turn moves but a few of them.
    for _ in 0..20 {
        bench.turn();
    }
    for i in 0..100 {
        assert_eq!(bench.ports[1].receive(), Some(frame(1, 0, i)));
        assert_eq!(bench.ports[0].receive(), Some(frame(0, 1, i)));
    }
    assert_eq!(bench.ports[0].receive(), None);
}

#[test]
fn in_loopback_nothing_leaves_and_nothing_comes() {
    let mut bench = Bench::up();
    bench.plug(0, r#"{"kind":"cable","peer":1}"#);
    let hlreg0 = bench.ports[0].device.regs.get::<Hlreg0>();
    bench.ports[0].set(hlreg0.with_lpbk(true));
    for i in 0..10 {
        bench.ports[0].send(&frame(0, 0, i));
        // The filters are those of frames from the wire.
        bench.ports[0].send(&frame(1, 0, i));
        bench.ports[1].send(&frame(0, 1, i));
    }
    for _ in 0..5 {
        bench.turn();
    }
    for i in 0..10 {
        assert_eq!(bench.ports[0].receive(), Some(frame(0, 0, i)));
    }
    assert_eq!(bench.ports[0].receive(), None);
    assert_eq!(bench.ports[1].receive(), None);
    bench.ports[0].set(hlreg0);
    bench.ports[0].send(&frame(1, 0, 99));
    bench.turn();
    assert_eq!(bench.ports[1].receive(), Some(frame(1, 0, 99)));
}

#[test]
fn a_turn_is_short_for_those_who_wait_for_its_end() {
    let mut bench = Bench::up();
    bench.plug(0, r#"{"kind":"cable","peer":1}"#);
    for i in 0..100 {
        bench.ports[0].send(&frame(1, 0, i));
    }
    bench.turn();
    let moved = (0..100)
        .take_while(|_| bench.ports[1].receive().is_some())
        .count();
    assert!((1..=32).contains(&moved), "{moved} frames in one turn");
}

#[test]
fn frames_that_wait_arrive_as_fast_as_others_leave() {
    let mut bench = Bench::up();
    let answer = bench.generate(r#"{"from":0,"to":1,"count":1000,"window":1000}"#);
    // The ring is full at last, and frames wait in the packet buffer.
    for _ in 0..100 {
        bench.turn();
    }
    let arrived = |bench: &mut Bench| {
        (0..RING)
            .take_while(|_| bench.ports[0].receive().is_some())
            .count()
    };
    assert_eq!(arrived(&mut bench), RING as usize - 1);
    for i in 0..100 {
        bench.ports[1].send(&frame(9, 1, i));
    }
    let left = |bench: &Bench| 100 - (bench.ports[1].read(TDT) - bench.ports[1].read(TDH));
    for turn in 1..=5 {
        bench.turn();
        let (came, went) = (arrived(&mut bench), left(&bench) as usize);
        // One frame more, which overdraws the budget.
        assert!(
            (1..=went / turn + 1).contains(&came),
            "{came}, {went} in {turn} turns"
        );
    }
    drop(answer);
}

#[test]
fn a_cable_has_two_ends_and_both_are_pulled() {
    let mut bench = Bench::up();
    bench.plug(0, r#"{"kind":"cable","peer":1}"#);
    assert_eq!(
        (kind(&mut bench, 0), kind(&mut bench, 1)),
        (json!("cable"), json!("cable"))
    );
    bench.plug(1, r#"{"kind":"sink"}"#);
    assert_eq!(
        (kind(&mut bench, 0), kind(&mut bench, 1)),
        (json!("sink"), json!("sink"))
    );
    bench.ports[0].send(&frame(1, 0, 1));
    bench.turn();
    assert_eq!(bench.ports[1].receive(), None);
}

#[test]
fn a_cable_does_not_carry_while_the_link_is_down() {
    let mut bench = Bench::up();
    bench.plug(0, r#"{"kind":"cable","peer":1}"#);
    bench.ports[0].device.set_link(false);
    bench.ports[0].send(&frame(1, 0, 1));
    bench.ports[1].send(&frame(0, 1, 1));
    bench.turn();
    bench.turn();
    assert_eq!(
        (bench.ports[0].receive(), bench.ports[1].receive()),
        (None, None)
    );
    bench.ports[0].device.set_link(true);
    bench.ports[0].send(&frame(1, 0, 2));
    bench.turn();
    bench.turn();
    assert_eq!(bench.ports[1].receive(), Some(frame(1, 0, 2)));
}

#[test]
fn a_slow_receiver_holds_the_sender_back() {
    let mut bench = Bench::up();
    bench.plug(0, r#"{"kind":"cable","peer":1}"#);
    let mut large = frame(1, 0, 7);
    large.resize(1500, 7);
    let mut received = 0;
    // Far more than the ring and the packet buffer hold, and a receiver that takes a few.
    for round in 0..3000 {
        if round < 1500 && bench.ports[0].read(TDH) == bench.ports[0].read(TDT) {
            for _ in 0..64 {
                bench.ports[0].send(&large);
            }
        }
        bench.turn();
        for _ in 0..2 {
            received += u64::from(bench.ports[1].receive().is_some());
        }
    }
    let sent = bench.ports[0].device.totals.snapshot();
    let sent = sent
        .iter()
        .find(|(name, _)| *name == "tx_frames")
        .unwrap()
        .1;
    assert!(sent > 2000, "{sent} frames were sent");
    assert_eq!(received, sent);
}

#[test]
fn nonsense_is_refused_and_leaves_a_sink() {
    let mut bench = Bench::up();
    for (text, word) in [
        (r#"{"kind":"cable","peer":0}"#, "peer"),
        (r#"{"kind":"cable","peer":7}"#, "peer"),
        (r#"{"kind":"pcap"}"#, "path"),
        (
            r#"{"kind":"pcap","path":"/nowhere/x.pcap"}"#,
            "/nowhere/x.pcap",
        ),
        (
            r#"{"kind":"pcap","replay":"/nowhere/x.pcap"}"#,
            "/nowhere/x.pcap",
        ),
        (r#"{"kind":"tap","path":"a/b"}"#, "a/b"),
    ] {
        let answer = bench.plug(0, text);
        assert_eq!(answer["ok"], json!(false), "{text}");
        assert!(answer["error"].as_str().unwrap().contains(word), "{answer}");
        assert_eq!(kind(&mut bench, 0), json!("sink"));
    }
    assert_eq!(bench.plug(9, r#"{"kind":"sink"}"#)["ok"], json!(false));
    assert_eq!(bench.inject(9, &[0; 60])["ok"], json!(false));
}

#[test]
fn what_one_port_records_another_can_play() {
    let (mut bench, folder) = recording("record");
    assert_eq!(
        bench.plug(0, r#"{"kind":"pcap","path":"a.pcap"}"#)["ok"],
        json!(true)
    );
    for i in 0..50 {
        bench.ports[0].send(&frame(1, 0, i));
    }
    while bench.turn().busy {}
    // The model is idle: the file is whole, although the wire is still there.
    assert_eq!(
        bench.plug(1, r#"{"kind":"pcap","replay":"a.pcap"}"#)["ok"],
        json!(true)
    );
    while bench.turn().busy {}
    for i in 0..50 {
        assert_eq!(bench.ports[1].receive(), Some(frame(1, 0, i)));
    }
    assert_eq!(bench.ports[1].receive(), None);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Seconds and nanoseconds of the first record of a pcap file.
fn stamp(path: &std::path::Path) -> (u32, u32) {
    let data = std::fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap());
    (word(24), word(28))
}

#[test]
fn time_stamps_count_from_the_zero_of_the_clock() {
    let (mut bench, folder) = recording("stamp");
    bench.plug(0, r#"{"kind":"pcap","path":"a.pcap"}"#);
    bench.clock.advance(3_000_000_000);
    bench.ports[0].send(&frame(1, 0, 0));
    while bench.turn().busy {}
    // Each turn of the bench takes a microsecond.
    assert_eq!(stamp(&folder.join("a.pcap")), (1_700_000_003, 2000));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_generator_works_through_a_recorded_port() {
    let (mut bench, folder) = recording("run");
    bench.plug(1, r#"{"kind":"pcap","path":"a.pcap"}"#);
    let answer = bench.generate(r#"{"from":0,"to":1,"count":10}"#);
    let report = bench.run(&answer, route);
    assert_eq!(report["forwarded"], json!(10));
    bench.plug(1, r#"{"kind":"sink"}"#);
    let length = std::fs::metadata(folder.join("a.pcap")).unwrap().len();
    assert_eq!(length, 24 + 10 * (16 + 60));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn single_frames_are_taken_or_lost_for_a_reason() {
    let mut bench = Bench::up();
    assert_eq!(bench.inject(0, &frame(0, 9, 1))["taken"], json!(true));
    assert_eq!(bench.ports[0].receive(), Some(frame(0, 9, 1)));
    let answer = bench.inject(0, &frame(5, 9, 1));
    assert_eq!(
        (&answer["taken"], &answer["lost"]),
        (&json!(false), &json!("Filtered"))
    );
    assert_eq!(bench.ports[0].receive(), None);
    for length in [0, 1, 13, 20_000] {
        let answer = bench.inject(0, &vec![0xff; length]);
        assert_eq!(answer["taken"], json!(false), "{length} bytes");
    }
}
