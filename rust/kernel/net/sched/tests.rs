// SPDX-License-Identifier: GPL-2.0

//! Tests of queueing disciplines.

#[cfg(CONFIG_KUNIT = "y")]
mod fixture;

#[macros::kunit_tests(rust_net_sched)]
mod cases {
    use super::{
        super::{
            older::{
                Older,
                Parts, //
            },
            Dump,
            Qdisc,
            QdiscDropReason,
            QueuedSkBuff,
            Registration, //
        },
        fixture::{
            Discipline,
            Fifo,
            Input,
            Outcome,
            OPS, //
        }, //
    };
    use crate::{
        net::skbuff::{
            SkBuff,
            UniqueSkBuff, //
        },
        prelude::*,
        softirq::BhGuard, //
    };

    #[test]
    fn packets_come_out_as_they_went_in() -> Result {
        let sch = Discipline::new(Some(&8u32.to_ne_bytes()))?;

        assert_eq!(sch.dequeue(), None);
        for number in 0..5 {
            assert!(sch.enqueue(number)? == Outcome::Taken);
        }
        assert_eq!(sch.waiting(), (5, 500 + 10));
        for number in 0..5 {
            assert_eq!(sch.dequeue(), Some(number));
        }
        assert_eq!(sch.dequeue(), None);
        assert_eq!((sch.waiting(), sch.drops()), ((0, 0), 0));
        Ok(())
    }

    #[test]
    fn what_does_not_fit_is_refused_and_counted() -> Result {
        let sch = Discipline::new(Some(&4u32.to_ne_bytes()))?;

        for number in 0..4 {
            assert!(sch.enqueue(number)? == Outcome::Taken);
        }
        assert!(sch.enqueue(4)? == Outcome::Rejected(4, QdiscDropReason::OverLimit as u32));
        assert_eq!((sch.waiting(), sch.drops()), ((4, 400 + 6), 1));
        assert_eq!(sch.dequeue(), Some(0));
        assert!(sch.enqueue(5)? == Outcome::Taken);
        for number in [1, 2, 3, 5] {
            assert_eq!(sch.dequeue(), Some(number));
        }
        Ok(())
    }

    #[test]
    fn a_look_takes_nothing() -> Result {
        let sch = Discipline::new(None)?;

        assert_eq!(sch.peek(), None);
        sch.enqueue(7)?;
        assert_eq!((sch.peek(), sch.peek()), (Some(7), Some(7)));
        assert_eq!(sch.waiting().0, 1);
        assert_eq!((sch.dequeue(), sch.peek()), (Some(7), None));
        Ok(())
    }

    /// The core takes the device from the packet.
    #[test]
    fn packets_of_no_device_do_not_come_out() -> Result {
        let sch = Discipline::new(None)?;

        assert!(sch.enqueue_foreign(1)? == Outcome::Taken);
        assert!(sch.enqueue(2)? == Outcome::Taken);
        assert_eq!(sch.dequeue(), None);
        assert_eq!(sch.dequeue(), Some(2));
        Ok(())
    }

    /// The core takes the queue from the packet, too.
    #[test]
    fn packets_of_other_queues_do_not_come_out() -> Result {
        let sch = Discipline::new(None)?;

        // The loopback device has one queue.
        assert!(sch.enqueue_of_queue(1, 1)? == Outcome::Taken);
        assert!(sch.enqueue_of_queue(2, u16::MAX)? == Outcome::Taken);
        assert!(sch.enqueue(3)? == Outcome::Taken);
        assert_eq!((sch.dequeue(), sch.dequeue()), (None, None));
        assert_eq!(sch.dequeue(), Some(3));
        Ok(())
    }

    #[test]
    fn a_reset_drops_all() -> Result {
        let sch = Discipline::new(None)?;

        sch.enqueue_all(0..9)?;
        sch.reset();
        assert_eq!((sch.waiting(), sch.dequeue()), ((0, 0), None));
        sch.enqueue(1)?;
        assert_eq!(sch.dequeue(), Some(1));
        Ok(())
    }

    #[test]
    fn a_discipline_goes_with_its_packets() -> Result {
        for number in 0..3 {
            let sch = Discipline::new(None)?;
            sch.enqueue_all(0..number)?;
        }
        Ok(())
    }

    #[test]
    fn an_empty_queue_is_looked_at_again() -> Result {
        let sch = Discipline::new(None)?;

        sch.enqueue(1)?;
        sch.set_missed();
        assert_eq!((sch.dequeue(), sch.is_missed()), (Some(1), true));
        assert_eq!((sch.dequeue(), sch.is_missed()), (None, false));
        Ok(())
    }

    #[test]
    fn as_a_child_it_counts_elsewhere() -> Result {
        let sch = Discipline::new(Some(&4u32.to_ne_bytes()))?;

        sch.as_child(|| {
            assert_eq!(sch.enqueue_all(0..5)?, 1);
            assert!(sch.enqueue(5)? == Outcome::Rejected(5, QdiscDropReason::OverLimit as u32));
            assert_eq!((sch.waiting(), sch.drops()), ((4, 400 + 6), 2));
            for number in 0..4 {
                assert_eq!(sch.dequeue(), Some(number));
            }
            assert_eq!((sch.waiting(), sch.dequeue()), ((0, 0), None));
            Ok(())
        })?;
        assert_eq!((sch.waiting(), sch.drops()), ((0, 0), 0));
        Ok(())
    }

    #[test]
    fn without_options_the_device_decides() -> Result {
        let sch = Discipline::new(None)?;

        assert_eq!(sch.limit()?, sch.tx_queue_len());
        assert!(sch.may_be_bypassed());
        Ok(())
    }

    #[test]
    fn wrong_options_are_refused_with_a_message() -> Result {
        for (bytes, message) in [
            (&0u32.to_ne_bytes()[..], &b"limit 0"[..]),
            (&[1, 2], b"options have 2 bytes, and must have 4"),
            (&[0; 8], b"options have 8 bytes, and must have 4"),
            (&[], b"options have 0 bytes, and must have 4"),
        ] {
            let (error, found) = Discipline::refused(bytes)?;
            assert!(error == Some(EINVAL));
            assert_eq!(found.as_slice(), message);
        }
        Ok(())
    }

    #[test]
    fn a_long_message_is_cut_off() -> Result {
        let (error, found) = Discipline::refused(&0xffff_ffff_u32.to_ne_bytes())?;

        assert!(error == Some(E2BIG));
        assert_eq!(found.as_slice(), [b'x'; 79]);
        Ok(())
    }

    /// The length of an attribute is a 16-bit number.
    #[test]
    fn options_that_no_attribute_can_hold_are_refused() -> Result {
        static LONG: [u8; 1 << 16] = [0; 1 << 16];
        static LONGER_BY_ONE: [u8; (1 << 16) - 4] = [0; (1 << 16) - 4];
        static LONGEST: [u8; (1 << 16) - 5] = [0; (1 << 16) - 5];

        let skb = UniqueSkBuff::alloc(1 << 18, GFP_KERNEL)?;
        // SAFETY: The message is ours.
        let mut dump = unsafe { Dump::from_raw(skb.as_raw()) };
        assert!(dump.options(&LONG) == Err(EMSGSIZE));
        assert!(dump.options(&LONGER_BY_ONE) == Err(EMSGSIZE));
        assert_eq!(skb.len(), 0);
        dump.options(&LONGEST)?;
        assert_eq!(skb.len(), 1 << 16);
        Ok(())
    }

    #[test]
    fn a_smaller_queue_lets_older_packets_out_first() -> Result {
        let sch = Discipline::new(Some(&8u32.to_ne_bytes()))?;

        sch.enqueue_all(0..5)?;
        sch.change(&2u32.to_ne_bytes())?;
        assert_eq!((sch.waiting(), sch.drops()), ((5, 500 + 10), 0));
        assert_eq!(sch.limit()?, 2);
        // The limit is that of new packets.
        assert_eq!(sch.enqueue_all(5..8)?, 1);
        assert_eq!((sch.peek(), sch.waiting().0), (Some(0), 7));
        for number in 0..7 {
            assert_eq!(sch.dequeue(), Some(number));
        }
        assert_eq!((sch.dequeue(), sch.peek()), (None, None));
        assert_eq!((sch.waiting(), sch.drops()), ((0, 0), 1));
        Ok(())
    }

    #[test]
    fn packets_of_several_changes_stay_in_order() -> Result {
        let sch = Discipline::new(Some(&8u32.to_ne_bytes()))?;

        for (number, limit) in (0..8).step_by(2).zip([16u32, 2, 4, 32]) {
            sch.enqueue_all(number..number + 2)?;
            sch.change(&limit.to_ne_bytes())?;
            assert_eq!(sch.limit()?, limit);
        }
        sch.enqueue(8)?;
        assert_eq!(sch.waiting().0, 9);
        for number in 0..=8 {
            assert_eq!((sch.peek(), sch.dequeue()), (Some(number), Some(number)));
        }
        assert_eq!((sch.dequeue(), sch.waiting()), (None, (0, 0)));
        Ok(())
    }

    /// Nothing takes packets out of a discipline whose device is idle.
    #[test]
    fn changes_without_packets_leave_nothing_behind() -> Result {
        let sch = Discipline::new(Some(&8u32.to_ne_bytes()))?;

        for _ in 0..500 {
            for limit in [16u32, 8] {
                sch.change(&limit.to_ne_bytes())?;
                assert_eq!(sch.older_sides(), 0);
            }
        }
        Ok(())
    }

    #[test]
    fn changes_are_refused_while_packets_of_many_wait() -> Result {
        let sch = Discipline::new(Some(&8u32.to_ne_bytes()))?;

        for (number, limit) in [16u32, 8, 16, 8].into_iter().enumerate() {
            sch.enqueue(number as u8)?;
            sch.change(&limit.to_ne_bytes())?;
            assert_eq!(sch.older_sides(), number + 1);
        }
        sch.enqueue(4)?;
        assert!(sch.change(&16u32.to_ne_bytes()) == Err(EBUSY));
        assert!(sch.change_tx_queue_len(16) == Err(EBUSY));
        assert_eq!((sch.limit()?, sch.waiting().0), (8, 5));
        // This is no change.
        sch.change(&8u32.to_ne_bytes())?;

        // Its side is empty then, without another look at it.
        assert_eq!(sch.dequeue(), Some(0));
        sch.change(&16u32.to_ne_bytes())?;
        for number in 1..5 {
            assert_eq!(sch.dequeue(), Some(number));
        }
        assert_eq!((sch.dequeue(), sch.older_sides()), (None, 0));
        Ok(())
    }

    #[test]
    fn a_side_in_the_middle_goes_when_it_is_empty() -> Result {
        let sch = Discipline::new(Some(&8u32.to_ne_bytes()))?;

        sch.enqueue(0)?;
        for limit in [16u32, 8, 16] {
            sch.change(&limit.to_ne_bytes())?;
        }
        sch.enqueue(1)?;
        sch.change(&8u32.to_ne_bytes())?;
        assert_eq!(sch.older_sides(), 2);
        sch.enqueue(2)?;
        for number in 0..3 {
            assert_eq!(sch.dequeue(), Some(number));
        }

        sch.enqueue(3)?;
        sch.change(&16u32.to_ne_bytes())?;
        assert_eq!(sch.older_sides(), 1);
        sch.reset();
        assert_eq!((sch.older_sides(), sch.waiting()), (0, (0, 0)));
        Ok(())
    }

    #[test]
    fn a_reset_drops_older_packets_too() -> Result {
        let sch = Discipline::new(Some(&8u32.to_ne_bytes()))?;

        sch.enqueue_all(0..3)?;
        sch.change(&4u32.to_ne_bytes())?;
        sch.enqueue_all(3..5)?;
        sch.reset();
        assert_eq!((sch.waiting(), sch.dequeue()), ((0, 0), None));
        sch.enqueue(5)?;
        assert_eq!((sch.dequeue(), sch.dequeue()), (Some(5), None));

        // It goes with packets of both kinds.
        sch.enqueue_all(0..3)?;
        sch.change(&8u32.to_ne_bytes())?;
        sch.enqueue_all(3..5)?;
        Ok(())
    }

    #[test]
    fn packets_arrive_on_both_sides_during_a_change() -> Result {
        let (early, earlier) = Fifo::init(8)?;
        let (late, later) = Fifo::init(8)?;
        let mut sides = Parts::<Fifo>::new(earlier);
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let put = |input: &Input, number: u8| -> Result<bool> {
            let mut skb = UniqueSkBuff::alloc(64, GFP_ATOMIC)?;
            skb.put(&[number])?;
            // SAFETY: The packet is new.
            let skb = unsafe { QueuedSkBuff::from_raw(SkBuff::from(skb).into_raw()) };
            Ok(Fifo::enqueue(input, guard.softirq(), skb).is_ok())
        };
        let number = |skb: Option<QueuedSkBuff>| skb.and_then(|skb| skb.data().first().copied());

        assert!(put(&early, 0)?);
        sides.replace(later, Older::memory(GFP_ATOMIC)?);
        assert!(put(&late, 2)?);
        assert!(put(&early, 1)?);
        for expected in 0..3 {
            assert_eq!(number(sides.dequeue()), Some(expected));
        }
        assert_eq!(number(sides.dequeue()), None);
        // The older side is empty, but senders may still come.
        assert!(put(&early, 3)?);
        assert_eq!(number(sides.dequeue()), Some(3));
        drop(early);
        sides.settle();
        assert!(put(&late, 4)?);
        assert_eq!(number(sides.dequeue()), Some(4));
        assert_eq!(number(sides.dequeue()), None);
        Ok(())
    }

    #[test]
    fn the_same_limit_is_no_change() -> Result {
        let sch = Discipline::new(Some(&8u32.to_ne_bytes()))?;

        let before = sch.enqueueing_side();
        sch.change(&8u32.to_ne_bytes())?;
        assert_eq!(sch.enqueueing_side(), before);
        sch.change(&16u32.to_ne_bytes())?;
        assert!(sch.enqueueing_side() != before);
        Ok(())
    }

    #[test]
    fn a_change_that_is_refused_changes_nothing() -> Result {
        let sch = Discipline::new(Some(&8u32.to_ne_bytes()))?;

        sch.enqueue_all(0..5)?;
        assert!(sch.change(&0u32.to_ne_bytes()) == Err(EINVAL));
        assert_eq!((sch.waiting().0, sch.drops()), (5, 0));
        assert_eq!(sch.limit()?, 8);
        Ok(())
    }

    #[test]
    fn another_length_of_the_device_is_passed_on() -> Result {
        let sch = Discipline::new(None)?;

        sch.enqueue_all(0..5)?;
        sch.change_tx_queue_len(4)?;
        assert_eq!((sch.limit()?, sch.waiting().0, sch.drops()), (4, 5, 0));
        Ok(())
    }

    #[test]
    fn a_name_is_registered_once() -> Result {
        // SAFETY: No module is being initialised.
        let registration = unsafe { Registration::new(&OPS) }?;

        // SAFETY: As above.
        assert!(unsafe { Registration::new(&OPS) }.err() == Some(EEXIST));
        drop(registration);
        // SAFETY: As above.
        drop(unsafe { Registration::new(&OPS) }?);
        Ok(())
    }
}
