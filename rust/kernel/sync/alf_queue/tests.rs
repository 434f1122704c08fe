// SPDX-License-Identifier: GPL-2.0

//! Tests of the array-based queue.

mod atomics;
mod shared;
mod stress;

#[crate::prelude::kunit_tests(rust_alf_queue)]
mod cases {
    use super::super::*;
    use crate::{
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            Completion, //
        },
        workqueue, //
    };

    /// An element that counts drops in a shared counter.
    struct Counted(Arc<Atomic<u32>>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.add(1u32, Relaxed);
        }
    }

    /// Takes `N` elements out at once.
    fn take<const N: usize>(rx: &mut Consumer<u32>) -> [Option<u32>; N] {
        let mut batch = rx.batch();

        [(); N].map(|()| batch.pop())
    }

    #[test]
    fn refuses_capacities_that_are_no_power_of_two() {
        for capacity in [0, 3, 12, (1 << 20) + 1, 1 << 21, 1 << 31, usize::MAX] {
            assert!(spsc::<u8>(capacity, GFP_KERNEL).is_err_and(|e| e == EINVAL));
        }
    }

    #[test]
    fn keeps_the_order_and_gives_back_what_does_not_fit() -> Result {
        let (mut tx, mut rx) = spsc::<u32>(4, GFP_KERNEL)?;

        assert_eq!(rx.pop(), None);
        for value in 0..4 {
            assert_eq!(tx.push(value), Ok(()));
        }
        assert_eq!(tx.push(4), Err(4));
        assert_eq!(rx.peek(), Some(&0));
        assert_eq!(rx.pop(), Some(0));
        assert_eq!(tx.push(4), Ok(()));
        assert_eq!(
            take::<5>(&mut rx),
            [Some(1), Some(2), Some(3), Some(4), None]
        );
        assert!(rx.is_empty());
        Ok(())
    }

    #[test]
    fn one_slot_is_a_queue_too() -> Result {
        let (mut tx, mut rx) = spsc::<u32>(1, GFP_KERNEL)?;

        for value in 0..10 {
            assert_eq!(tx.push(value), Ok(()));
            assert_eq!(tx.push(value), Err(value));
            assert_eq!(rx.pop(), Some(value));
        }
        Ok(())
    }

    #[test]
    fn positions_wrap() -> Result {
        let (mut tx, mut rx) = spsc_from::<u32>(u32::MAX - 5, 8, GFP_KERNEL)?;
        let mut expected = 0;

        for round in 0..10 {
            let mut values = Chunk::from([0, 1, 2].map(|i| 3 * round + i));
            assert_eq!(tx.push_bulk(&mut values), Ok(()));
            assert_eq!(tx.free(), 5);
            assert_eq!(rx.len(), 3);
            for value in take::<3>(&mut rx) {
                assert_eq!(value, Some(expected));
                expected += 1;
            }
            assert_eq!(tx.free(), 8);
        }
        assert_eq!(expected, 30);
        Ok(())
    }

    #[test]
    fn full_and_empty_differ_after_a_wrap() -> Result {
        let (mut tx, mut rx) = spsc_from::<u32>(u32::MAX, 2, GFP_KERNEL)?;

        assert_eq!(tx.push_bulk(&mut Chunk::from([1, 2])), Ok(()));
        assert_eq!(tx.push(3), Err(3));
        assert_eq!(rx.len(), 2);
        assert_eq!(take::<2>(&mut rx), [Some(1), Some(2)]);
        assert_eq!(rx.len(), 0);
        assert_eq!(tx.free(), 2);
        Ok(())
    }

    #[test]
    fn bulk_is_all_or_nothing() -> Result {
        let (mut tx, mut rx) = spsc::<u32>(4, GFP_KERNEL)?;

        assert_eq!(tx.push_bulk(&mut Chunk::from([1, 2, 3])), Ok(()));
        let mut back = Chunk::from([4, 5]);
        assert_eq!(tx.push_bulk(&mut back), Err(Full));
        assert_eq!(back.len(), 2);
        assert_eq!(rx.len(), 3);
        assert_eq!(take::<4>(&mut rx), [Some(1), Some(2), Some(3), None]);
        Ok(())
    }

    #[test]
    fn dropping_the_queue_drops_what_is_in_it() -> Result {
        let drops = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;

        for consumer_first in [true, false] {
            drops.store(0, Relaxed);
            let (mut tx, mut rx) = spsc_from(u32::MAX, 8, GFP_KERNEL)?;
            for _ in 0..5 {
                assert!(tx.push(Counted(drops.clone())).is_ok());
            }
            drop(rx.pop());
            assert_eq!(drops.load(Relaxed), 1);
            if consumer_first {
                drop(rx);
                drop(tx.push(Counted(drops.clone())));
                drop(tx);
                assert_eq!(drops.load(Relaxed), 6);
            } else {
                drop(tx);
                drop(rx);
                assert_eq!(drops.load(Relaxed), 5);
            }
        }
        Ok(())
    }

    #[test]
    fn dropping_a_reservation_takes_it_back() -> Result {
        let drops = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let (mut tx, mut rx) = spsc(4, GFP_KERNEL)?;

        let mut batch = tx.reserve(3).ok_or(EINVAL)?;
        assert!(batch.push(Counted(drops.clone())).is_ok());
        assert!(batch.push(Counted(drops.clone())).is_ok());
        drop(batch);
        assert_eq!(drops.load(Relaxed), 2);
        assert!(rx.pop().is_none());
        assert_eq!(tx.free(), 4);
        Ok(())
    }

    #[test]
    fn a_reservation_holds_no_more_than_it_asked_for() -> Result {
        let (mut tx, mut rx) = spsc::<u32>(4, GFP_KERNEL)?;

        assert!(tx.reserve(5).is_none());
        let mut batch = tx.reserve(1).ok_or(EINVAL)?;
        assert_eq!(batch.push(1), Ok(()));
        assert_eq!(batch.push(2), Err(2));
        batch.commit();
        assert_eq!(take::<2>(&mut rx), [Some(1), None]);
        Ok(())
    }

    #[test]
    fn what_a_reservation_holds_can_be_changed() -> Result {
        let (mut tx, mut rx) = spsc::<u32>(4, GFP_KERNEL)?;

        let mut batch = tx.reserve(3).ok_or(EINVAL)?;
        assert!(batch.is_empty() && batch.get_mut(0).is_none());
        assert_eq!((batch.push(1), batch.push(2)), (Ok(()), Ok(())));
        assert_eq!((batch.len(), batch.is_empty()), (2, false));
        for offset in 0..2 {
            if let Some(element) = batch.get_mut(offset) {
                *element += 10 * (1 + offset as u32);
            }
        }
        // The third slot is reserved, but not written.
        assert!(batch.get_mut(2).is_none());
        batch.commit();
        assert_eq!(take::<3>(&mut rx), [Some(11), Some(22), None]);
        Ok(())
    }

    #[test]
    fn a_forgotten_batch_does_no_harm() -> Result {
        let drops = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let (mut tx, mut rx) = spsc(4, GFP_KERNEL)?;

        for _ in 0..4 {
            assert!(tx.push(Counted(drops.clone())).is_ok());
        }
        let mut batch = rx.batch();
        drop(batch.pop());
        core::mem::forget(batch);
        assert_eq!(tx.free(), 0);
        drop(rx.pop());
        assert_eq!(tx.free(), 2);

        let mut batch = rx.batch();
        drop(batch.pop());
        core::mem::forget(batch);
        drop((tx, rx));
        assert_eq!(drops.load(Relaxed), 4);
        Ok(())
    }

    #[test]
    fn slots_count_up_and_start_over() -> Result {
        let (mut tx, mut rx) = spsc::<u32>(4, GFP_KERNEL)?;

        for value in 0..9 {
            assert_eq!(tx.next_slot(), value as usize % 4);
            assert_eq!(tx.push(value), Ok(()));
            let mut batch = rx.batch();
            assert_eq!(batch.slot_after(0), value as usize % 4);
            assert_eq!(batch.slot_after(3), (value as usize + 3) % 4);
            assert_eq!(batch.pop(), Some(value));
        }
        Ok(())
    }

    #[test]
    fn what_was_seen_needs_no_look_at_the_other_end() -> Result {
        let (mut tx, mut rx) = spsc::<u32>(4, GFP_KERNEL)?;

        assert_eq!(tx.push_bulk(&mut Chunk::from([1, 2])), Ok(()));
        assert_eq!(tx.free_seen(), 2);
        let mut batch = rx.batch();
        assert_eq!(batch.peek_seen(), None);
        assert_eq!(batch.pop_seen(|value| value), None);

        assert_eq!(batch.peek(), Some(&1));
        assert_eq!(tx.push(3), Ok(()));
        assert_eq!(batch.pop_seen(|value| 2 * value), Some(2));
        assert_eq!(batch.peek_seen(), Some(&2));
        assert_eq!(batch.pop_seen(|value| 2 * value), Some(4));
        assert_eq!(batch.peek_seen(), None);
        assert_eq!(batch.pop_seen(|value| value), None);
        assert_eq!(batch.pop(), Some(3));
        drop(batch);

        assert_eq!(tx.free_seen(), 1);
        assert_eq!(tx.free(), 4);
        assert_eq!(tx.free_seen(), 4);
        Ok(())
    }

    #[test]
    fn slots_become_free_when_the_batch_ends() -> Result {
        let (mut tx, mut rx) = spsc::<u32>(2, GFP_KERNEL)?;

        assert_eq!(tx.push_bulk(&mut Chunk::from([1, 2])), Ok(()));
        let mut batch = rx.batch();
        assert_eq!(batch.pop(), Some(1));
        assert_eq!(tx.push(3), Err(3));
        drop(batch);
        assert_eq!(tx.push(3), Ok(()));
        Ok(())
    }

    /// Two threads at full speed: every element arrives once, intact, and in order.
    #[test]
    fn passes_elements_between_contexts() -> Result {
        const COUNT: u64 = 5_000;

        let done = Arc::pin_init(Completion::new(), GFP_KERNEL)?;
        let (mut tx, mut rx) = spsc_from::<[u64; 4]>(u32::MAX - 1000, 64, GFP_KERNEL)?;

        let producer_done = done.clone();
        workqueue::system_long().try_spawn(GFP_KERNEL, move || {
            let mut next = 0;
            while next < COUNT {
                // Kernels for CPUs of 32 bits have no division of 64.
                let count = (COUNT - next).min(1 + u64::from(next as u32 % 7));
                let values = (next..next + count).map(|i| [i, !i, i << 7, i ^ 0x5555]);
                // `Range<u64>` has no exact size on all targets: reserve and fill by hand.
                match tx.reserve(count as usize) {
                    Some(mut batch) => {
                        for value in values {
                            let _ = batch.push(value);
                        }
                        batch.commit();
                        next += count;
                    }
                    // SAFETY: May be called in process context at any time.
                    None => unsafe {
                        bindings::schedule();
                    },
                }
            }
            producer_done.complete_all();
        })?;

        let mut expected = 0;
        let mut wrong = 0;
        while expected < COUNT {
            let before = expected;
            let mut batch = rx.batch();
            for _ in 0..1 + expected as usize % 11 {
                let Some(value) = batch.pop() else {
                    break;
                };
                if value != [expected, !expected, expected << 7, expected ^ 0x5555] {
                    wrong += 1;
                }
                expected += 1;
            }
            drop(batch);
            if expected == before {
                // SAFETY: May be called in process context at any time.
                unsafe { bindings::schedule() };
            }
        }
        done.wait_for_completion();
        assert_eq!(wrong, 0);
        assert_eq!(rx.pop(), None);
        Ok(())
    }
}
