// SPDX-License-Identifier: GPL-2.0

//! Tests of interrupt moderation.

use kernel::prelude::kunit_tests;

#[kunit_tests(ixgbe_rust_moderation)]
mod cases {
    use super::super::*;
    use core::cell::Cell;
    use kernel::net::queue::RingLen;

    fn received(received: usize) -> Packets {
        Packets { received, sent: 0 }
    }

    fn rule() -> Rule {
        let len = RingLen::of::<512>();

        Rule::new(enough(RingLens { rx: len, tx: len }))
    }

    #[test]
    fn most_of_a_short_ring_stays_free() {
        let enough = |rx, tx| {
            let enough = enough(RingLens { rx, tx });
            (enough.received, enough.sent)
        };

        let (short, long) = (RingLen::of::<64>(), RingLen::of::<4096>());
        assert_eq!(enough(short, long), (16, 1024));
        assert_eq!(enough(long, short), (64, 16));
    }

    fn sent(sent: usize) -> Packets {
        Packets { received: 0, sent }
    }

    /// A sample of interrupts, each with the packets that come within the interval.
    fn sample(rule: &mut Rule, packets: impl Fn(u16) -> Packets) {
        busy_sample(rule, 0, packets);
    }

    /// The same, if the CPU takes so long for what an interrupt brings.
    fn busy_sample(rule: &mut Rule, busy: u16, packets: impl Fn(u16) -> Packets) {
        some_sample(rule, busy, 0, packets);
    }

    /// The same, where so many interrupts keep a process from running.
    fn some_sample(rule: &mut Rule, busy: u16, working: usize, packets: impl Fn(u16) -> Packets) {
        let mut now = *rule.since.get_or_insert(0);

        for number in 0..SAMPLE {
            let passed = rule.interval.max(busy);

            now += i64::from(passed) * i64::from(UNIT);
            rule.interrupt(packets(passed), number < working, || now);
        }
    }

    #[test]
    fn users_can_fix_it() {
        let setting = Setting::new();
        let set = |usecs, adaptive| {
            setting.set(controls::Moderation { usecs, adaptive });
            (setting.get().usecs, setting.fixed())
        };

        assert!(setting.get().adaptive && setting.fixed().is_none());
        assert_eq!(set(50, false), (50, Some(25)));
        assert_eq!(set(51, false), (52, Some(26)));
        assert_eq!(set(0, false), (0, Some(0)));
        assert_eq!(set(u32::MAX, false), (MAX_USECS, Some(0x1ff)));
        assert_eq!(set(20, true), (20, None));
        assert!(setting.allows_joining());
        for (usecs, allows) in [
            (0, false),
            (6, false),
            (MIN_JOINING_USECS, true),
            (100, true),
        ] {
            set(usecs, false);
            assert_eq!(setting.allows_joining(), allows);
        }
        set(0, true);
        assert!(setting.allows_joining());
    }

    #[test]
    fn a_stream_lengthens_the_interval_until_there_are_enough() {
        let mut rule = rule();
        let stream = |interval| received(4 * usize::from(interval));

        for _ in 0..8 {
            sample(&mut rule, stream);
        }
        let packets = 4 * usize::from(rule.interval);
        assert!((ENOUGH_RECEIVED..2 * ENOUGH_RECEIVED).contains(&packets));
    }

    #[test]
    fn a_slow_stream_gets_the_longest_interval() {
        let mut rule = rule();

        for _ in 0..8 {
            sample(&mut rule, |interval| received(usize::from(interval)));
        }
        assert_eq!(rule.interval, MAX_INTERVAL);
    }

    #[test]
    fn a_busy_cpu_gets_an_interval_that_is_longer_than_it_takes() {
        for busy in [8, 16, 24] {
            let mut rule = rule();

            for _ in 0..8 {
                busy_sample(&mut rule, busy, |passed| received(usize::from(passed) / 2));
            }
            assert_eq!(rule.interval, MAX_INTERVAL);
        }
    }

    #[test]
    fn a_busy_closed_loop_keeps_the_shortest_interval() {
        let mut rule = rule();
        let mut longer = 0;

        for _ in 0..1000 {
            busy_sample(&mut rule, 20, |_| received(16));
            longer += u32::from(rule.interval > MIN_INTERVAL);
        }
        assert!((1..=11).contains(&longer));
    }

    #[test]
    fn a_closed_loop_of_a_cpu_with_other_work_waits() {
        let mut rule = rule();

        for _ in 0..8 {
            some_sample(&mut rule, 20, MOST_OF_SAMPLE, |_| received(16));
        }
        assert_eq!(rule.interval, MAX_WORKING_INTERVAL);
        // Enough is enough.
        rule.interval = MIN_INTERVAL;
        some_sample(&mut rule, 20, SAMPLE, |_| received(ENOUGH_RECEIVED));
        assert_eq!(rule.interval, MIN_INTERVAL);
        some_sample(&mut rule, 20, SAMPLE, |_| received(16));
        assert!(rule.interval > MIN_INTERVAL);
        // The first sample without other work ends it.
        some_sample(&mut rule, 20, MOST_OF_SAMPLE - 1, |_| received(16));
        assert_eq!(rule.interval, MIN_INTERVAL);
    }

    #[test]
    fn a_sample_without_its_time_says_nothing() {
        let mut rule = rule();

        for _ in 0..SAMPLE {
            rule.interrupt(received(16), false, || 1_000_000);
        }
        assert_eq!((rule.interval, rule.since), (MIN_INTERVAL, Some(1_000_000)));
    }

    #[test]
    fn a_closed_loop_keeps_the_shortest_interval() {
        for window in [1, 2, FEW_PACKETS, 8, 16, 24, 32, 48] {
            let mut rule = rule();
            let mut longer = 0;

            for _ in 0..1000 {
                sample(&mut rule, |_| received(window));
                longer += u32::from(rule.interval > MIN_INTERVAL);
            }
            // The trials: each takes a sample, and the pauses between them grow.
            assert!((1..=11).contains(&longer) || window < FEW_PACKETS);
            assert!(longer <= 11);
        }
    }

    #[test]
    fn a_loop_of_many_packets_does_not_wait() {
        let mut rule = rule();

        for _ in 0..100 {
            sample(&mut rule, |_| received(ENOUGH_RECEIVED));
            assert_eq!(rule.interval, MIN_INTERVAL);
        }
    }

    #[test]
    fn a_stream_that_becomes_a_closed_loop_is_found_out() {
        let mut rule = rule();

        for _ in 0..8 {
            sample(&mut rule, |interval| received(usize::from(interval)));
        }
        assert_eq!(rule.interval, MAX_INTERVAL);

        let mut samples = 0;
        while rule.interval > MIN_INTERVAL {
            sample(&mut rule, |_| received(16));
            samples += 1;
            assert!(samples <= MAX_AGE);
        }
        sample(&mut rule, |_| received(16));
        sample(&mut rule, |_| received(16));
        assert_eq!(rule.interval, MIN_INTERVAL);
    }

    #[test]
    fn too_many_packets_shorten_it() {
        let mut rule = rule();
        rule.interval = MAX_INTERVAL;

        sample(&mut rule, |_| received(2 * ENOUGH_RECEIVED));
        assert_eq!(rule.interval, MAX_INTERVAL / 2);
    }

    #[test]
    fn completions_wait_for_longer() {
        let mut rule = rule();
        let stream = |interval| sent(6 * usize::from(interval));

        for _ in 0..8 {
            sample(&mut rule, stream);
        }
        let packets = 6 * usize::from(rule.interval);
        assert!((128..256).contains(&packets));
    }

    #[test]
    fn single_packets_reset_it() {
        let mut rule = rule();
        rule.interval = MAX_INTERVAL;

        // Now and then, they mean nothing.
        for _ in 0..2 {
            for _ in 1..FEW_IN_A_ROW {
                rule.interrupt(received(1), false, || 0);
            }
            rule.interrupt(received(FEW_PACKETS), false, || 0);
            assert_eq!(rule.interval, MAX_INTERVAL);
        }
        for _ in 0..FEW_IN_A_ROW {
            rule.interrupt(received(1), false, || 0);
        }
        assert_eq!(rule.interval, MIN_INTERVAL);
        // The sample begins anew.
        assert_eq!((rule.interrupts, rule.packets.all()), (0, 0));
    }

    #[test]
    fn a_stream_with_single_packets_in_between_lengthens_the_interval() {
        let mut rule = rule();
        let single = Cell::new(false);

        for _ in 0..8 {
            busy_sample(&mut rule, 10, |passed| {
                received(if single.replace(!single.get()) {
                    1
                } else {
                    passed.into()
                })
            });
        }
        assert_eq!(rule.interval, MAX_INTERVAL);
    }

    #[test]
    fn an_interrupt_without_packets_says_nothing() {
        let mut rule = rule();
        rule.interval = MAX_INTERVAL;

        for _ in 0..2 * SAMPLE {
            rule.interrupt(received(0), false, || 0);
        }
        assert_eq!((rule.interval, rule.interrupts), (MAX_INTERVAL, 0));
    }
}
