// SPDX-License-Identifier: GPL-2.0
use serde_json::{Value, json};

use super::*;

fn run(text: &str) -> Run {
    let spec: Generate = serde_json::from_str(text).expect("well formed");
    Run::new(spec, 7, [2, 0, 0, 0, 0, 9], 0)
}

/// Changes a frame as a router does.
fn routed(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[22] -= 1;
    nicmodel_device::checksum::insert_ipv4(&mut frame, 14, 20);
    frame
}

fn sent(run: &mut Run, count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|_| {
            let mut frame = Vec::new();
            run.next(1, &mut frame);
            routed(&frame)
        })
        .collect()
}

/// The report as a client sees it.
fn report(run: &Run, now: u64) -> Value {
    serde_json::to_value(run.report(now)).expect("plain data")
}

#[test]
fn good_frames_are_forwarded_and_missing_ones_are_lost_in_the_guest() {
    let mut run = run(r#"{"from":0,"to":1,"count":5,"flows":2}"#);
    for frame in &sent(&mut run, 5)[..4] {
        run.check(frame, true, 2);
    }
    assert!(!run.finished(3));
    assert!(run.finished(600 * MS));
    let report = report(&run, 600 * MS);
    assert_eq!(
        (&report["forwarded"], &report["damaged"]),
        (&json!(4), &json!(0))
    );
    assert_eq!(report["lost"]["in_guest"], json!(1));
}

#[test]
fn each_kind_of_damage_is_told_apart() {
    let mut run = run(r#"{"from":0,"to":1,"count":9,"expect_src_mac":"02:00:00:00:00:01"}"#);
    let mut frames = sent(&mut run, 6);
    frames[0][22] -= 1;
    frames[1][24] ^= 1;
    frames[2][6] ^= 2;
    frames[3][57] ^= 1;
    frames[4].push(0);
    frames[5][43] ^= 1; // the mark itself
    for frame in &frames {
        run.check(frame, true, 2);
    }
    let report = report(&run, 3);
    for kind in ["ttl", "ip_checksum", "mac", "length"] {
        assert_eq!(report["damage"][kind], json!(1), "{kind}");
    }
    assert_eq!(report["damage"]["payload"], json!(2));
    assert_eq!(
        (&report["forwarded"], &report["damaged"]),
        (&json!(0), &json!(6))
    );
}

#[test]
fn duplicates_and_reordering_within_a_flow() {
    let mut run = run(r#"{"from":0,"to":1,"count":4,"flows":2}"#);
    let frames = sent(&mut run, 4);
    // Flow 0: 2 then 0, out of order. Flow 1: 1 then 3, in order.
    for i in [1, 2, 0, 3, 3] {
        run.check(&frames[i], true, 2);
    }
    let report = report(&run, 3);
    assert_eq!(
        (&report["reordered"], &report["duplicated"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(report["forwarded"], json!(4));
}

#[test]
fn the_window_holds_until_frames_come_back_or_are_written_off() {
    let mut run = run(r#"{"from":0,"to":1,"count":100,"window":4,"stall_ms":7}"#);
    let stall = 7 * MS;
    assert_eq!(run.allowance(1), 4);
    let frames = sent(&mut run, 4);
    assert_eq!(run.allowance(2), 0);
    run.check(&frames[0], true, 3);
    assert_eq!(run.allowance(4), 1);
    assert_eq!(run.allowance(4 + stall), 1);
    sent(&mut run, 1);
    assert_eq!(run.allowance(2 + stall), 4);
    sent(&mut run, 4);
    // Frames that were written off come back after all: that does not open the window further.
    let before = run.allowance(stall);
    for frame in &frames[1..] {
        run.check(frame, true, 4 + stall);
    }
    assert_eq!((before, run.allowance(5 + stall)), (0, 0));
}

#[test]
fn a_refusing_port_slows_the_generator_down() {
    let mut run = run(r#"{"from":0,"to":1,"count":1000}"#);
    sent(&mut run, REFUSED_BURST as usize);
    let more: Vec<bool> = (0..REFUSED_BURST)
        .map(|_| run.lose(Loss::LinkDown, 5))
        .collect();
    assert_eq!(more.last(), Some(&false));
    assert_eq!(run.allowance(6), 0);
    assert!(run.allowance(6 + REFUSED_PAUSE) > 0);
}

#[test]
fn a_time_that_is_too_long_for_the_clock_does_not_pass() {
    for field in ["timeout_ms", "drain_ms", "stall_ms"] {
        let text = r#"{"from":0,"to":1,"count":1,"window":1"#;
        let mut run = run(&format!(r#"{text},"{field}":18446744073710}}"#));
        sent(&mut run, usize::from(field != "timeout_ms"));
        assert!(!run.finished(400 * MS), "{field}");
        let open = u32::from(field == "timeout_ms");
        assert_eq!(run.allowance(15 * MS), open, "{field}");
    }
}

#[test]
fn foreign_frames_are_counted_apart() {
    let mut run = run(r#"{"from":0,"to":1,"count":1}"#);
    run.check(&[0xff; 60], true, 1);
    run.check(&[], true, 1);
    assert_eq!(report(&run, 2)["other"], json!(2));
}
