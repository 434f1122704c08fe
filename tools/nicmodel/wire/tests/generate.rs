// SPDX-License-Identifier: GPL-2.0
//! The generator and its checker around a model with a driver: every frame is accounted for.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod guest;

use guest::{Bench, Port, route, routed, value};
use nicmodel_device::regs::bits::Ctrl;
use serde_json::{Value, json};

const THOUSAND: &str = r#"{"from":0,"to":1,"count":1000,"size":60,"window":128}"#;

/// Nothing is counted twice, and nothing is forgotten.
fn adds_up(report: &Value) {
    let lost = report["lost"].as_object().unwrap();
    let lost: u64 = lost.values().map(|count| count.as_u64().unwrap()).sum();
    let number = |name: &str| report[name].as_u64().unwrap();
    assert_eq!(
        number("sent"),
        number("forwarded") + number("damaged") + lost,
        "{report}"
    );
}

fn lost(report: &Value, reason: &str) -> u64 {
    report["lost"][reason].as_u64().unwrap()
}

#[test]
fn a_router_forwards_everything() {
    let mut bench = Bench::up();
    for text in [
        THOUSAND,
        r#"{"from":1,"to":0,"count":700,"size":1514,"window":32}"#,
        r#"{"from":0,"to":1,"count":999,"size":61,"flows":16,"window":0}"#,
    ] {
        let answer = bench.generate(text);
        let report = bench.run(&answer, route);
        assert_eq!(report["ok"], json!(true));
        assert_eq!(report["forwarded"], report["sent"], "{report}");
        for name in ["duplicated", "damaged", "reordered", "other"] {
            assert_eq!(report[name], json!(0), "{name} in {report}");
        }
        assert!(report["pps"].as_f64().unwrap() > 0.0);
        adds_up(&report);
    }
}

#[test]
fn runs_in_both_directions_at_once() {
    let mut bench = Bench::up();
    let there = bench.generate(THOUSAND);
    let back =
        bench.generate(r#"{"from":1,"to":0,"count":500,"src_ip":"10.0.1.2","dst_ip":"10.0.0.2"}"#);
    let report = bench.run(&there, route);
    assert_eq!(
        (&report["forwarded"], &report["other"]),
        (&json!(1000), &json!(0))
    );
    let report = match back.try_recv() {
        Ok(report) => value(report),
        Err(_) => bench.run(&back, route),
    };
    assert_eq!(
        (&report["forwarded"], &report["other"]),
        (&json!(500), &json!(0))
    );
}

#[test]
fn what_the_router_swallows_is_lost_in_the_guest() {
    let mut bench = Bench::up();
    let answer = bench.generate(THOUSAND);
    let mut number = 0;
    let report = bench.run(&answer, |ports: &mut [Port]| {
        while let Some(frame) = ports[0].receive() {
            number += 1;
            if number % 10 != 0 {
                ports[1].send(&routed(frame));
            }
        }
    });
    assert_eq!(report["sent"], json!(1000));
    assert_eq!(lost(&report, "in_guest"), 100);
    adds_up(&report);
}

#[test]
fn what_the_router_damages_doubles_and_exchanges_is_told_apart() {
    let mut bench = Bench::up();
    let answer = bench.generate(r#"{"from":0,"to":1,"count":100,"window":8}"#);
    let mut number = 0;
    let mut kept = None;
    let report = bench.run(&answer, |ports: &mut [Port]| {
        while let Some(frame) = ports[0].receive() {
            let mut frame = routed(frame);
            number += 1;
            match number {
                10 => frame[57] ^= 1,
                // The marks: which frame it was can no longer be read.
                11 => frame[42] ^= 1,
                12 => frame[46] ^= 1,
                13 => frame[50] ^= 1,
                20 => ports[1].send(&frame),
                30 => {
                    kept = Some(frame);
                    continue;
                }
                31 => {
                    ports[1].send(&frame);
                    frame = kept.take().unwrap();
                }
                40 => ports[1].send(&[0xff; 60]),
                _ => {}
            }
            ports[1].send(&frame);
        }
    });
    let counts = ["damaged", "duplicated", "reordered", "other"].map(|name| report[name].clone());
    assert_eq!(counts, [json!(4), json!(1), json!(1), json!(1)], "{report}");
    assert_eq!(report["forwarded"], json!(96));
    assert_eq!(lost(&report, "in_guest"), 0);
    adds_up(&report);
}

#[test]
fn stragglers_of_an_earlier_run_are_not_damage() {
    let mut bench = Bench::up();
    let answer = bench.generate(r#"{"from":0,"to":1,"count":20,"timeout_ms":50}"#);
    let mut held = Vec::new();
    let report = bench.run(&answer, |ports: &mut [Port]| {
        while let Some(frame) = ports[0].receive() {
            held.push(routed(frame));
        }
    });
    assert_eq!(lost(&report, "in_guest"), 20);
    let answer = bench.generate(r#"{"from":0,"to":1,"count":20}"#);
    let report = bench.run(&answer, |ports: &mut [Port]| {
        for frame in held.drain(..) {
            ports[1].send(&frame);
        }
        route(ports);
    });
    assert_eq!(
        (&report["damaged"], &report["other"]),
        (&json!(0), &json!(20)),
        "{report}"
    );
    assert_eq!(report["forwarded"], json!(20));
    adds_up(&report);
}

#[test]
fn the_window_is_never_exceeded_even_after_a_stall() {
    let mut bench = Bench::up();
    let answer = bench.generate(r#"{"from":0,"to":1,"count":400,"window":8,"timeout_ms":600000}"#);
    let mut held: Vec<Vec<u8>> = Vec::new();
    let mut stall = 0;
    let mut most = 0;
    let report = bench.run(&answer, |ports: &mut [Port]| {
        while let Some(frame) = ports[0].receive() {
            held.push(routed(frame));
        }
        // The guest has repeated long pauses, and sends its frames after them.
        stall += 1;
        if stall % 40 == 0 {
            most = most.max(held.len());
            for frame in held.drain(..) {
                ports[1].send(&frame);
            }
        }
    });
    assert_eq!(report["forwarded"], json!(400));
    // A stall opens the window once more for frames given up, but not wider each time.
    assert!(most <= 3 * 8, "{most} frames were under way");
    adds_up(&report);
}

#[test]
fn losses_before_the_guest_have_their_reason() {
    // The port is not up.
    let mut bench = Bench::new();
    let answer = bench.generate(r#"{"from":0,"to":1,"count":100}"#);
    let report = bench.run(&answer, route);
    assert_eq!(lost(&report, "rx_disabled"), 100, "{report}");
    adds_up(&report);

    let mut bench = Bench::up();
    bench.ports[0].device.set_link(false);
    let answer = bench.generate(r#"{"from":0,"to":1,"count":100}"#);
    let report = bench.run(&answer, route);
    assert_eq!(lost(&report, "link_down"), 100, "{report}");
    adds_up(&report);

    let mut bench = Bench::up();
    let answer = bench.generate(r#"{"from":0,"to":1,"count":100,"dst_mac":"02:00:00:00:99:99"}"#);
    let report = bench.run(&answer, route);
    assert_eq!(lost(&report, "filtered"), 100, "{report}");
    adds_up(&report);
}

#[test]
fn a_guest_that_supplies_no_descriptors_loses_only_without_a_window() {
    let idle = |_: &mut [Port]| {};
    let mut bench = Bench::up();
    let answer = bench.generate(r#"{"from":0,"to":1,"count":2000,"window":0,"size":1514}"#);
    let report = bench.run(&answer, idle);
    assert!(lost(&report, "no_rx_descriptor") > 0, "{report}");
    // A ring less one descriptor, and the rest waits in the packet buffer.
    assert!(lost(&report, "in_guest") >= 255, "{report}");
    adds_up(&report);

    let mut bench = Bench::up();
    let answer = bench.generate(r#"{"from":0,"to":1,"count":2000,"size":1514,"timeout_ms":500}"#);
    let report = bench.run(&answer, idle);
    assert_eq!(lost(&report, "no_rx_descriptor"), 0, "{report}");
    assert_eq!(report["timed_out"], json!(true));
    adds_up(&report);
}

#[test]
fn frames_that_find_no_link_on_the_way_out_are_lost_there() {
    let mut bench = Bench::up();
    bench.ports[1].device.set_link(false);
    let answer = bench.generate(r#"{"from":0,"to":1,"count":50}"#);
    let report = bench.run(&answer, route);
    assert_eq!(lost(&report, "link_down"), 50, "{report}");
    adds_up(&report);
}

#[test]
fn a_reset_in_the_middle_loses_frames_but_not_the_count() {
    let mut bench = Bench::up();
    let answer = bench.generate(r#"{"from":0,"to":1,"count":3000,"window":128,"timeout_ms":5000}"#);
    let mut rounds = 0;
    let report = bench.run(&answer, |ports: &mut [Port]| {
        rounds += 1;
        if rounds % 20 == 0 {
            ports[0].set(Ctrl::ZERO.with_rst(true));
        }
        if rounds % 20 == 5 {
            ports[0].up();
        }
        route(ports);
    });
    assert!(report["forwarded"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(report["damaged"], json!(0), "{report}");
    assert!(lost(&report, "rx_disabled") > 0, "{report}");
    adds_up(&report);
}

#[test]
fn a_run_that_makes_no_sense_is_refused() {
    let mut bench = Bench::up();
    for (text, word) in [
        (r#"{"from":0,"to":2,"count":1}"#, "to"),
        (r#"{"from":0,"to":1,"count":1,"size":20}"#, "size"),
        (r#"{"from":0,"to":1,"count":1,"flows":0}"#, "flows"),
        (r#"{"from":0,"to":1,"count":4294967295}"#, "count"),
    ] {
        let answer = bench.generate(text);
        bench.turn();
        let answer = value(answer.try_recv().expect("refused at once"));
        assert_eq!(answer["ok"], json!(false));
        assert!(answer["error"].as_str().unwrap().contains(word), "{answer}");
    }
}
