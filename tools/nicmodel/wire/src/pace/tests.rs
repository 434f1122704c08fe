// SPDX-License-Identifier: GPL-2.0
use super::*;

const MS: u64 = 1_000_000;

#[test]
fn without_a_rate_any_number_may_go() {
    let mut pace = Pace::new(0);
    assert_eq!(pace.due(5), u32::MAX);
    assert_eq!(pace.next(5), u64::MAX);
}

#[test]
fn a_rate_is_kept() {
    let mut pace = Pace::new(1000);
    for ms in 10..20 {
        assert_eq!(pace.due(ms * MS), 1, "{ms}");
        pace.sent(ms * MS);
        assert_eq!(pace.due(ms * MS), 0, "{ms}");
        assert_eq!(pace.next(ms * MS), (ms + 1) * MS + 1);
    }
    assert!((pace.offered() - 1000.0).abs() < 0.1);
}

#[test]
fn a_pause_is_not_made_up_for() {
    let mut pace = Pace::new(1_000_000);
    assert_eq!(pace.due(MS), 1);
    pace.sent(MS);
    assert_eq!(pace.due(50 * MS), 64);
    for _ in 0..64 {
        pace.sent(50 * MS);
    }
    assert_eq!(pace.due(50 * MS), 0);
}

#[test]
fn a_full_port_tells_how_fast_the_guest_is() {
    let mut pace = Pace::new(0);
    for _ in 0..100 {
        pace.sent(MS);
    }
    assert_eq!(pace.taken(), None);
    pace.held(2 * MS);
    for frame in 1..=10 {
        pace.held((2 + frame) * MS);
        pace.sent((2 + frame) * MS);
    }
    assert_eq!(pace.taken(), Some(1000.0));
}

#[test]
fn times_have_a_middle_and_an_upper_end() {
    let mut times = Times::default();
    let none = Latency {
        median: None,
        p99: None,
    };
    assert_eq!(times.report(), none);
    for sequence in 0..100 {
        times.sent(1000);
        times.back(sequence, 1001 + u64::from(sequence));
    }
    times.back(100, 5);
    let found = Latency {
        median: Some(51),
        p99: Some(100),
    };
    assert_eq!(times.report(), found);
}
