// SPDX-License-Identifier: GPL-2.0

//! Tests of shared ends and of bulk operations on one CPU.

#[crate::prelude::kunit_tests(rust_alf_queue_shared)]
mod cases {
    use super::super::super::*;
    use crate::{
        softirq::BhGuard,
        sync::atomic::{
            Atomic,
            Relaxed, //
        }, //
    };

    /// An element that counts drops in a shared counter.
    struct Counted(Arc<Atomic<u32>>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.add(1u32, Relaxed);
        }
    }

    /// Numbers from `start` on.
    fn numbers<const N: usize>(start: u32, count: usize) -> Chunk<u32, N> {
        let mut chunk = Chunk::new();
        for number in (start..).take(count) {
            let _ = chunk.push(number);
        }
        chunk
    }

    #[test]
    fn refuses_capacities_that_are_no_power_of_two() {
        for capacity in [0, 3, 12, (1 << 20) + 1, 1 << 21, 1 << 31, usize::MAX] {
            assert!(mpmc::<u8>(capacity, GFP_KERNEL).is_err_and(|e| e == EINVAL));
            assert!(mpsc::<u8>(capacity, GFP_KERNEL).is_err_and(|e| e == EINVAL));
            assert!(spmc::<u8>(capacity, GFP_KERNEL).is_err_and(|e| e == EINVAL));
        }
    }

    #[test]
    fn says_when_there_is_no_memory() {
        // More than the largest allocation, of which the allocator would warn.
        type Large = [u64; 512];
        let (capacity, flags) = (1 << 20, GFP_KERNEL);
        // SAFETY: There are no requirements.
        let has_warned = || unsafe { crate::bindings::test_taint(crate::bindings::TAINT_WARN) };
        let before = has_warned();

        assert!(mpmc::<Large>(capacity, flags).is_err_and(|e| e == ENOMEM));
        assert!(mpsc::<Large>(capacity, flags).is_err_and(|e| e == ENOMEM));
        assert!(spmc::<Large>(capacity, flags).is_err_and(|e| e == ENOMEM));
        assert!(spsc::<Large>(capacity, flags).is_err_and(|e| e == ENOMEM));
        assert_eq!(has_warned(), before);
    }

    #[test]
    fn keeps_the_order_and_gives_back_what_does_not_fit() -> Result {
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let cx = guard.softirq();
        let queue = Mpmc::<u32>::new_from(u32::MAX - 1, 4, GFP_ATOMIC)?;

        assert_eq!(queue.capacity(), 4);
        assert_eq!(queue.pop(cx), None);
        for value in 0..4 {
            assert_eq!(queue.push(cx, value), Ok(()));
        }
        assert_eq!(queue.push(cx, 4), Err(4));
        assert_eq!(queue.len(), 4);
        for value in 0..4 {
            assert_eq!(queue.pop(cx), Some(value));
        }
        assert_eq!(queue.pop(cx), None);
        assert!(queue.is_empty());
        Ok(())
    }

    #[test]
    fn one_slot_is_a_queue_too() -> Result {
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let cx = guard.softirq();
        let queue = Mpmc::<u32>::new_from(u32::MAX - 3, 1, GFP_ATOMIC)?;

        for value in 0..10 {
            assert_eq!(queue.push(cx, value), Ok(()));
            assert_eq!(queue.push(cx, value), Err(value));
            assert_eq!(queue.pop(cx), Some(value));
            assert_eq!(queue.pop(cx), None);
        }
        Ok(())
    }

    #[test]
    fn all_or_nothing_and_as_many_as_fit() -> Result {
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let cx = guard.softirq();
        let queue = Mpmc::<u32>::new_from(u32::MAX - 2, 8, GFP_ATOMIC)?;
        let mut first = numbers::<16>(0, 6);
        let mut second = numbers::<16>(6, 5);
        let mut sink = Chunk::<u32, 4>::new();

        assert_eq!(queue.push_bulk(cx, &mut first), Ok(()));
        assert!(first.is_empty());
        assert_eq!(queue.push_bulk(cx, &mut second), Err(Full));
        assert_eq!(second.as_slice(), [6, 7, 8, 9, 10]);
        assert_eq!(queue.push_some(cx, &mut second), 2);
        assert_eq!(second.as_slice(), [8, 9, 10]);
        assert_eq!(queue.push_some(cx, &mut second), 0);

        // Limited by the argument, then by the room of the sink.
        assert_eq!(queue.pop_bulk(cx, &mut sink, 3), 3);
        assert_eq!(queue.pop_bulk(cx, &mut sink, 100), 1);
        assert_eq!(queue.pop_bulk(cx, &mut sink, 100), 0);
        assert_eq!(sink.as_slice(), [0, 1, 2, 3]);

        let mut rest = Chunk::<u32, 10>::new();
        assert_eq!(rest.push(100), Ok(()));
        assert_eq!(queue.pop_bulk(cx, &mut rest, 100), 4);
        assert_eq!(rest.as_slice(), [100, 4, 5, 6, 7]);
        assert!(queue.is_empty());
        Ok(())
    }

    #[test]
    fn nothing_is_nothing() -> Result {
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let cx = guard.softirq();
        let queue = mpmc::<u32>(2, GFP_ATOMIC)?;
        let (mut tx, mut rx) = spsc::<u32>(2, GFP_ATOMIC)?;
        let mut none = Chunk::<u32, 2>::new();

        assert_eq!(queue.push_bulk(cx, &mut none), Ok(()));
        assert_eq!(queue.push_some(cx, &mut none), 0);
        assert_eq!(queue.pop_bulk(cx, &mut none, 0), 0);
        assert_eq!(tx.push_bulk(&mut none), Ok(()));
        assert_eq!(tx.push_some(&mut none), 0);
        assert_eq!(rx.pop_bulk(&mut none, 0), 0);
        assert!(queue.is_empty() && rx.is_empty());
        Ok(())
    }

    /// The operations of any queue on one CPU.
    trait Any {
        fn put_all(&mut self, values: &mut Chunk<u32, 70>) -> bool;
        fn put_some(&mut self, values: &mut Chunk<u32, 70>) -> usize;
        fn take(&mut self, values: &mut Chunk<u32, 70>, limit: usize) -> usize;
    }

    struct Both<A, B>(A, B);

    macro_rules! any {
        ($type:ty, $push:expr, $some:expr, $pop:expr) => {
            impl Any for $type {
                fn put_all(&mut self, values: &mut Chunk<u32, 70>) -> bool {
                    BhGuard::new().is_some_and(|guard| $push(self, guard.softirq(), values).is_ok())
                }
                fn put_some(&mut self, values: &mut Chunk<u32, 70>) -> usize {
                    BhGuard::new().map_or(0, |guard| $some(self, guard.softirq(), values))
                }
                fn take(&mut self, values: &mut Chunk<u32, 70>, limit: usize) -> usize {
                    BhGuard::new().map_or(0, |guard| $pop(self, guard.softirq(), values, limit))
                }
            }
        };
    }

    any!(
        Both<Producer<u32>, Consumer<u32>>,
        |this: &mut Self, _, values| this.0.push_bulk(values),
        |this: &mut Self, _, values| this.0.push_some(values),
        |this: &mut Self, _, values, limit| this.1.pop_bulk(values, limit)
    );
    any!(
        Both<SharedProducer<u32>, Consumer<u32>>,
        |this: &mut Self, cx, values| this.0.push_bulk(cx, values),
        |this: &mut Self, cx, values| this.0.push_some(cx, values),
        |this: &mut Self, _, values, limit| this.1.pop_bulk(values, limit)
    );
    any!(
        Both<Producer<u32>, SharedConsumer<u32>>,
        |this: &mut Self, _, values| this.0.push_bulk(values),
        |this: &mut Self, _, values| this.0.push_some(values),
        |this: &mut Self, cx, values, limit| this.1.pop_bulk(cx, values, limit)
    );
    any!(
        Mpmc<u32>,
        |this: &mut Self, cx, values| this.push_bulk(cx, values),
        |this: &mut Self, cx, values| this.push_some(cx, values),
        |this: &mut Self, cx, values, limit| this.pop_bulk(cx, values, limit)
    );

    /// Compares a queue with two counters, under random operations.
    fn behaves_like_a_fifo(queue: &mut dyn Any, capacity: usize, seed: u32) -> Result {
        let mut random = seed;
        let (mut next_in, mut next_out) = (0u32, 0u32);
        let mut chunk = KBox::new(Chunk::<u32, 70>::new(), GFP_KERNEL)?;

        for _ in 0..2_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let count = (random >> 16) as usize % (capacity + 4);
            let inside = (next_in - next_out) as usize;
            chunk.clear();
            if random & 0x100 == 0 {
                for number in (next_in..).take(count) {
                    assert!(chunk.push(number).is_ok());
                }
                let room = capacity - inside;
                if random & 0x200 == 0 {
                    let put = queue.put_all(&mut chunk);
                    assert_eq!(put, count <= room);
                    next_in += if put { count as u32 } else { 0 };
                } else {
                    let put = queue.put_some(&mut chunk);
                    assert_eq!(put, count.min(room));
                    next_in += put as u32;
                    assert_eq!(
                        chunk.as_slice().first().copied(),
                        (put < count).then_some(next_in)
                    );
                }
            } else {
                assert_eq!(queue.take(&mut chunk, count), count.min(inside));
                for &number in chunk.as_slice() {
                    assert_eq!(number, next_out);
                    next_out += 1;
                }
            }
        }
        assert!(next_out > 100);
        Ok(())
    }

    #[test]
    fn all_forms_behave_like_a_fifo() -> Result {
        for shift in 0..7 {
            let capacity = 1usize << shift;
            let start = u32::MAX - 40;
            let flags = GFP_KERNEL;
            let (tx, rx) = spsc_from(start, capacity, flags)?;
            behaves_like_a_fifo(&mut Both(tx, rx), capacity, 1)?;
            let (tx, rx) = mpsc_from(start, capacity, flags)?;
            behaves_like_a_fifo(&mut Both(tx, rx), capacity, 2)?;
            let (tx, rx) = spmc_from(start, capacity, flags)?;
            behaves_like_a_fifo(&mut Both(tx, rx), capacity, 3)?;
            behaves_like_a_fifo(&mut Mpmc::new_from(start, capacity, flags)?, capacity, 4)?;
        }
        Ok(())
    }

    #[test]
    fn dropping_a_queue_drops_what_is_in_it() -> Result {
        let drops = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let cx = guard.softirq();
        let start = u32::MAX - 1;

        let queue = Mpmc::<Counted>::new_from(start, 4, GFP_ATOMIC)?;
        for _ in 0..4 {
            assert!(queue.push(cx, Counted(drops.clone())).is_ok());
        }
        // One is returned, one is popped.
        drop(queue.push(cx, Counted(drops.clone())));
        drop(queue.pop(cx));
        assert_eq!(drops.load(Relaxed), 2);
        drop(queue);
        assert_eq!(drops.load(Relaxed), 5);

        drops.store(0, Relaxed);
        let (tx, rx) = mpsc_from(start, 4, GFP_ATOMIC)?;
        let other = tx.clone();
        for tx in [&tx, &other, &tx] {
            assert!(tx.push(cx, Counted(drops.clone())).is_ok());
        }
        drop((tx, rx));
        assert_eq!(drops.load(Relaxed), 0);
        drop(other);
        assert_eq!(drops.load(Relaxed), 3);

        drops.store(0, Relaxed);
        let (mut tx, rx) = spmc_from(start, 4, GFP_ATOMIC)?;
        for _ in 0..3 {
            assert!(tx.push(Counted(drops.clone())).is_ok());
        }
        drop(rx.clone().pop(cx));
        drop((tx, rx));
        assert_eq!(drops.load(Relaxed), 3);
        Ok(())
    }

    #[test]
    fn each_element_has_one_owner() -> Result {
        let drops = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let cx = guard.softirq();
        let queue = mpmc(4, GFP_ATOMIC)?;
        let mut chunk = Chunk::<_, 6>::new();
        for _ in 0..6 {
            assert!(chunk.push(Counted(drops.clone())).is_ok());
        }

        assert_eq!(queue.push_some(cx, &mut chunk), 4);
        assert_eq!(chunk.len(), 2);
        drop(chunk);
        assert_eq!(drops.load(Relaxed), 2);
        let mut back = Chunk::<_, 3>::new();
        assert_eq!(queue.pop_bulk(cx, &mut back, 6), 3);
        drop(back.pop());
        back.clear();
        back.clear();
        assert_eq!(drops.load(Relaxed), 5);
        drop((back, queue));
        assert_eq!(drops.load(Relaxed), 6);
        Ok(())
    }

    #[test]
    fn boxes_can_be_passed() -> Result {
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let cx = guard.softirq();
        let (tx, mut rx) = mpsc::<KBox<u32>>(2, GFP_ATOMIC)?;

        assert!(tx.push(cx, KBox::new(1, GFP_ATOMIC)?).is_ok());
        assert!(tx.push(cx, KBox::new(2, GFP_ATOMIC)?).is_ok());
        let back = tx.push(cx, KBox::new(3, GFP_ATOMIC)?);
        assert_eq!(back.err().as_deref(), Some(&3));
        assert_eq!(rx.pop().as_deref(), Some(&1));
        Ok(())
    }

    #[test]
    fn elements_without_size_and_large_ones() -> Result {
        let guard = BhGuard::new().ok_or(EINVAL)?;
        let cx = guard.softirq();
        let queue = mpmc::<()>(4, GFP_ATOMIC)?;
        let large = mpmc::<[u64; 20]>(4, GFP_ATOMIC)?;

        for _ in 0..4 {
            assert_eq!(queue.push(cx, ()), Ok(()));
        }
        assert_eq!(queue.push(cx, ()), Err(()));
        assert_eq!(queue.pop_bulk(cx, &mut Chunk::<(), 8>::new(), 8), 4);

        let mut chunk = Chunk::from([[1u64; 20], [2; 20], [3; 20]]);
        assert_eq!(large.push_bulk(cx, &mut chunk), Ok(()));
        assert_eq!(large.pop_bulk(cx, &mut chunk, 3), 3);
        assert_eq!(chunk.as_slice(), [[1u64; 20], [2; 20], [3; 20]]);
        Ok(())
    }
}
