// SPDX-License-Identifier: GPL-2.0

//! Tests of combining lists.

#[crate::prelude::kunit_tests(rust_combiner)]
mod cases {
    use super::super::*;
    use crate::{
        impl_has_llist_node,
        kthread,
        new_spinlock,
        sync::{
            atomic::{
                Full,
                Relaxed, //
            },
            Arc,
            SpinLock, //
        }, //
    };
    use core::mem;

    struct Element {
        number: u32,
        node: Node,
        drops: Option<Arc<Atomic<u32>>>,
    }

    impl_has_llist_node! {
        impl HasNode for Element { self.node }
    }

    impl Drop for Element {
        fn drop(&mut self) {
            if let Some(drops) = &self.drops {
                drops.add(1u32, Relaxed);
            }
        }
    }

    fn element(number: u32, drops: Option<&Arc<Atomic<u32>>>) -> Result<KBox<Element>> {
        Ok(KBox::new(
            Element {
                number,
                node: Node::new(),
                drops: drops.cloned(),
            },
            GFP_KERNEL,
        )?)
    }

    type Elements = Combiner<KBox<Element>>;

    /// Adds elements for another combiner to process.
    fn behind(list: &Elements, numbers: core::ops::Range<u32>) -> Result {
        for number in numbers {
            let Pushed::Behind = list.push(element(number, None)?, 8) else {
                return Err(EBUSY);
            };
        }
        Ok(())
    }

    fn first(list: &Elements, number: u32) -> Result<Turn<'_, KBox<Element>>> {
        match list.push(element(number, None)?, 8) {
            Pushed::First(turn) => Ok(turn),
            _ => Err(EBUSY),
        }
    }

    fn numbers(batch: Drain<KBox<Element>>) -> Result<KVec<u32>> {
        let mut numbers = KVec::new();
        for element in batch {
            numbers.push(element.number, GFP_KERNEL)?;
        }
        Ok(numbers)
    }

    fn counted(list: &Elements) -> isize {
        list.behind.0.load(Relaxed)
    }

    #[test]
    fn one_works_and_the_others_go() -> Result {
        let list = Elements::default();

        for _ in 0..2 {
            assert!(!list.is_busy());
            let mut turn = first(&list, 0)?;
            assert!(list.is_busy());
            behind(&list, 1..4)?;
            let mut batch = turn.take().ok_or(EINVAL)?;
            assert_eq!(batch.len(), 4);
            assert_eq!(counted(&list), 0);
            assert!(batch.next().is_some_and(|oldest| oldest.number == 0));
            assert_eq!(batch.len(), 3);
            assert_eq!(numbers(batch)?.as_slice(), [1, 2, 3]);

            assert!(list.is_busy());
            behind(&list, 4..6)?;
            assert_eq!(counted(&list), 2);
            let batch = turn.take().ok_or(EINVAL)?;
            assert_eq!(numbers(batch)?.as_slice(), [4, 5]);
            assert_eq!(counted(&list), 0);
            assert!(turn.take().is_none());
            // That was the end of the turn, although the value still exists.
            assert!(!list.is_busy());
            let mut next = first(&list, 6)?;
            assert!(turn.take().is_none());
            drop(turn);
            let batch = next.take().ok_or(EINVAL)?;
            assert_eq!(numbers(batch)?.as_slice(), [6]);
        }
        Ok(())
    }

    #[test]
    fn the_last_batch_ends_the_turn() -> Result {
        let list = Elements::new();
        let turn = first(&list, 0)?;

        behind(&list, 1..3)?;
        let last = turn.take_last();
        assert_eq!(counted(&list), 0);
        // While it is processed, the next one has its turn.
        let mut next = first(&list, 3)?;
        assert_eq!(numbers(last)?.as_slice(), [0, 1, 2]);
        assert!(next.take().is_some());
        assert_eq!(next.take_last().len(), 0);
        assert!(!list.is_busy());
        Ok(())
    }

    #[test]
    fn the_list_has_a_limit() -> Result {
        let list = Elements::new();
        let mut turn = first(&list, 0)?;

        behind(&list, 1..9)?;
        for _ in 0..2 {
            match list.push(element(9, None)?, 8) {
                Pushed::Refused(element) => assert_eq!(element.number, 9),
                _ => return Err(EINVAL),
            }
        }
        // A refused element stays counted: the number starts at zero again with each batch.
        assert_eq!(counted(&list), 10);
        assert_eq!(turn.take().ok_or(EINVAL)?.len(), 9);
        assert_eq!(counted(&list), 0);
        behind(&list, 0..8)?;
        assert!(matches!(
            list.push(element(8, None)?, 8),
            Pushed::Refused(_)
        ));
        drop(turn);
        // An element that finds the list idle is not refused.
        assert!(matches!(list.push(element(0, None)?, 0), Pushed::First(_)));
        assert_eq!(counted(&list), 0);
        Ok(())
    }

    #[test]
    fn the_first_sender_is_not_on_the_list() -> Result {
        let list = Elements::new();
        let word = || list.first.load_relaxed();
        let mut turn = first(&list, 0)?;

        assert!(word() == RoleWord::BUSY);
        behind(&list, 1..2)?;
        let one = word();
        assert!(one != RoleWord::BUSY && one != RoleWord::IDLE);
        assert_eq!(numbers(turn.take().ok_or(EINVAL)?)?.as_slice(), [0, 1]);
        assert!(word() == RoleWord::BUSY);
        assert_eq!(turn.take_last().len(), 0);
        assert!(word() == RoleWord::IDLE);

        // Without contention, the word does not change in between.
        let mut turn = first(&list, 2)?;
        assert_eq!(numbers(turn.take().ok_or(EINVAL)?)?.as_slice(), [2]);
        assert!(word() == RoleWord::BUSY);
        behind(&list, 3..4)?;
        assert_eq!(numbers(turn.take_last())?.as_slice(), [3]);
        Ok(())
    }

    #[test]
    fn c_code_and_rust_code_share_a_list() -> Result {
        let list = Elements::new();
        let add_in_c = |number| -> Result<*mut Node> {
            let node = element(number, None)?.into_node().as_ptr();
            let old = list.first.load_relaxed();
            let next = if old == RoleWord::BUSY {
                RoleWord::IDLE
            } else {
                old
            };
            // SAFETY: The element is ours.
            unsafe { llist::set_next(node, next) };
            list.first.0.xchg(node, Full);
            Ok(old)
        };
        // C code has the role as long as its element is there.
        assert!(add_in_c(0)? == RoleWord::IDLE);
        assert!(list.is_busy());
        behind(&list, 1..3)?;
        let newest = list.first.0.xchg(RoleWord::IDLE, Full);
        // SAFETY: These elements were on the list, and are ours now.
        let batch = unsafe { Elements::batch(None, Some(newest)) };
        assert_eq!(numbers(batch)?.as_slice(), [0, 1, 2]);

        // It finds Rust code at work.
        let mut turn = first(&list, 3)?;
        assert!(add_in_c(4)? == RoleWord::BUSY);
        assert!(add_in_c(5)? != RoleWord::IDLE);
        behind(&list, 6..7)?;
        let batch = turn.take().ok_or(EINVAL)?;
        assert_eq!(numbers(batch)?.as_slice(), [3, 4, 5, 6]);
        assert!(turn.take().is_none());
        assert!(!list.is_busy());
        Ok(())
    }

    #[test]
    fn submitting_works_off_what_comes_meanwhile() -> Result {
        let list = Elements::new();
        let mut locks = 0;
        let mut seen = KVec::new();

        let submitted = list.submit(
            element(0, None)?,
            8,
            3,
            || locks += 1,
            |(), batch| {
                for element in batch {
                    let number = element.number;
                    let _ = seen.push(number, GFP_KERNEL);
                    // Two more for each of the first two: there is no other CPU to do them.
                    if number < 2 {
                        let _ = behind(&list, 2 * number + 1..2 * number + 3);
                    }
                }
            },
        );
        assert!(matches!(submitted, Ok(Disposition::Done)));
        assert_eq!(locks, 1);
        assert_eq!(seen.as_slice(), [0, 1, 2, 3, 4]);
        assert!(!list.is_busy());

        let turn = first(&list, 0)?;
        let no_lock = || -> () { panic!("there is a combiner already") };
        let submitted = list.submit(element(1, None)?, 1, 8, no_lock, |(), _| ());
        assert!(matches!(submitted, Ok(Disposition::Delegated)));
        let submitted = list.submit(element(2, None)?, 1, 8, no_lock, |(), _| ());
        assert!(submitted.is_err_and(|element| element.number == 2));
        assert_eq!(numbers(turn.take_last())?.as_slice(), [0, 1]);
        Ok(())
    }

    #[test]
    fn a_combiner_that_has_done_enough_hands_over() -> Result {
        let list = Elements::new();
        let mut batches = 0;
        let mut next = None;

        let submitted = list.submit(
            element(0, None)?,
            8,
            2,
            || (),
            |(), batch| {
                batches += 1;
                if batches < 3 {
                    // With the second batch, there are two that were done.
                    let _ = behind(&list, 0..1);
                } else {
                    next = first(&list, 1).ok();
                }
                drop(batch);
            },
        );
        assert!(matches!(submitted, Ok(Disposition::Done)));
        assert_eq!(batches, 3);
        assert_eq!(next.ok_or(EBUSY)?.take_last().len(), 1);

        // With no bound at all, there is one batch.
        let submitted = list.submit(element(0, None)?, 8, 0, || (), |(), _| batches += 1);
        assert!(matches!(submitted, Ok(Disposition::Done)));
        assert_eq!(batches, 4);
        Ok(())
    }

    #[test]
    fn dropping_drops_what_is_inside() -> Result {
        let drops = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let push = |list: &Elements| -> Result {
            match list.push(element(0, Some(&drops))?, 8) {
                Pushed::Behind => Ok(()),
                _ => Err(EBUSY),
            }
        };
        let list = Elements::new();

        let Pushed::First(mut turn) = list.push(element(0, Some(&drops))?, 8) else {
            return Err(EINVAL);
        };
        push(&list)?;
        let batch = turn.take();
        assert_eq!(drops.load(Relaxed), 0);
        drop(batch);
        assert_eq!(drops.load(Relaxed), 2);
        push(&list)?;
        drop(turn);
        assert_eq!(drops.load(Relaxed), 3);
        assert!(!list.is_busy());

        // A forgotten turn keeps the role from all CPUs, and has no other effect.
        let Pushed::First(mut turn) = list.push(element(0, Some(&drops))?, 8) else {
            return Err(EINVAL);
        };
        drop(turn.take());
        mem::forget(turn);
        push(&list)?;
        assert_eq!(drops.load(Relaxed), 4);
        drop(list);
        assert_eq!(drops.load(Relaxed), 5);

        let list = Elements::new();
        let mut turn = first(&list, 0)?;
        drop(turn.take());
        mem::forget(turn);
        drop(list);
        Ok(())
    }

    /// The state of a stress test.
    struct Seen {
        next: [u32; 4],
        wrong: u32,
        total: u32,
    }

    const COUNT: u32 = 2_000;

    /// All CPUs submit: each element arrives once, in order per CPU, whichever CPU worked it off.
    fn all_cpus_submit(bound: usize) -> Result {
        let list = &Elements::new();
        let seen = &*KBox::pin_init(
            new_spinlock!(Seen {
                next: [0; 4],
                wrong: 0,
                total: 0,
            }),
            GFP_KERNEL,
        )?;
        let cpus = kthread::online_cpus().count();
        let threads = (2 * cpus).min(4);

        kthread::scope(|scope| {
            for thread in 0..threads {
                let cpu = kthread::online_cpus().nth(thread % cpus).ok_or(EINVAL)?;
                // Nothing is allocated while the others are at it.
                let mut own = Chain::new();
                for number in 0..COUNT {
                    own.push(element(thread as u32 * COUNT + number, None)?);
                }
                scope.spawn_on(cpu, c"combiner", move || {
                    for mut element in own.reverse() {
                        // One that is refused comes again, so that none is missing in the end.
                        while let Err(again) = submit_one(list, seen, element, bound) {
                            element = again;
                        }
                    }
                })?;
            }
            Ok::<_, Error>(())
        })?;
        let seen = seen.lock();
        assert_eq!(seen.wrong, 0);
        assert_eq!(seen.total, threads as u32 * COUNT);
        assert!(!list.is_busy());
        // Elements that were too late for the last batch may have been counted.
        assert!(counted(list) >= 0);
        Ok(())
    }

    fn submit_one(
        list: &Elements,
        seen: &SpinLock<Seen>,
        element: KBox<Element>,
        bound: usize,
    ) -> Result<Disposition, KBox<Element>> {
        list.submit(
            element,
            64,
            bound,
            || seen.lock(),
            |seen, batch| {
                for element in batch {
                    match seen.next.get_mut((element.number / COUNT) as usize) {
                        Some(next) if *next == element.number % COUNT => *next += 1,
                        _ => seen.wrong += 1,
                    }
                    seen.total += 1;
                }
            },
        )
    }

    #[test]
    fn nothing_gets_lost_if_one_stays() -> Result {
        all_cpus_submit(usize::MAX)
    }

    #[test]
    fn nothing_gets_lost_if_one_hands_over() -> Result {
        all_cpus_submit(0)?;
        all_cpus_submit(16)
    }
}
