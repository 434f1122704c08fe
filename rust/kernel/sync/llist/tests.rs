// SPDX-License-Identifier: GPL-2.0

//! Tests of lock-free lists.

#[crate::prelude::kunit_tests(rust_llist)]
mod cases {
    use super::super::*;
    use crate::{
        kthread,
        sync::{
            atomic::Relaxed,
            Arc, //
        },
        time::{
            delay::fsleep,
            Delta,
            Instant,
            Monotonic, //
        }, //
    };

    struct Element {
        // Not the first field, so that a wrong offset is detected.
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

    fn numbers(chain: Chain<KBox<Element>>) -> Result<KVec<u32>> {
        let mut numbers = KVec::new();
        for element in chain {
            numbers.push(element.number, GFP_KERNEL)?;
        }
        Ok(numbers)
    }

    #[test]
    fn newest_first_or_in_order() -> Result {
        let list = LockLessList::new();

        assert!(list.is_empty() && list.take_all().is_empty());
        for round in 0..2 {
            for number in 0..4 {
                assert_eq!(list.push(element(number, None)?), number == 0);
            }
            assert!(!list.is_empty());
            let all = list.take_all();
            assert!(list.is_empty());
            if round == 0 {
                assert_eq!(numbers(all)?.as_slice(), [3, 2, 1, 0]);
            } else {
                assert_eq!(numbers(all.reverse())?.as_slice(), [0, 1, 2, 3]);
            }
        }
        assert!(Chain::<KBox<Element>>::new().reverse().is_empty());
        Ok(())
    }

    #[test]
    fn dropping_drops_what_is_inside() -> Result {
        let drops = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let list = LockLessList::default();

        for number in 0..6 {
            list.push(element(number, Some(&drops))?);
        }
        let mut chain = list.take_all();
        assert_eq!(drops.load(Relaxed), 0);
        let first = chain.pop();
        assert!(first.as_ref().is_some_and(|first| first.number == 5));
        drop(first);
        assert_eq!(drops.load(Relaxed), 1);
        drop(chain.next());
        drop(chain);
        assert_eq!(drops.load(Relaxed), 6);
        list.push(element(6, Some(&drops))?);
        drop(list);
        assert_eq!(drops.load(Relaxed), 7);
        Ok(())
    }

    /// A replacement never overwrites a concurrent one.
    #[test]
    fn no_replacement_gets_lost() -> Result {
        // Longer than the start of a thread may be delayed.
        const TIME: Delta = Delta::from_millis(60);

        let cpus = kthread::online_cpus().count();
        let first = First(Atomic::new(ptr::null_mut()));
        let (ready, replaced) = (Atomic::new(0u32), Atomic::new(0usize));

        kthread::run_on_each(kthread::online_cpus(), c"llist", |_| {
            ready.add(1u32, Relaxed);
            // Start together, unless one of the threads could not be started.
            for _ in 0..1000 {
                if ready.load(Relaxed) as usize == cpus {
                    break;
                }
                fsleep(Delta::from_micros(100));
            }
            let start = Instant::<Monotonic>::now();
            while start.elapsed() < TIME {
                for _ in 0..1000 {
                    // Each replacement increments the number.
                    let mut old = first.load_relaxed();
                    while let Err(now) = first.replace_release(old, old.wrapping_byte_add(1)) {
                        old = now;
                    }
                }
                replaced.add(1000usize, Relaxed);
            }
        })?;
        assert_eq!(first.take_acquire().addr(), replaced.load(Relaxed));
        assert!(first.load_relaxed().is_null());
        Ok(())
    }

    /// All CPUs add, and one takes: each element arrives once, in order per CPU.
    #[test]
    fn nothing_gets_lost_between_cpus() -> Result {
        const COUNT: u32 = 2_000;

        let list = &LockLessList::<KBox<Element>>::new();
        let found_empty = &Atomic::new(0u32);
        let cpus = kthread::online_cpus().count();
        let threads = (2 * cpus).min(4);
        let mut next = [0; 4];
        let (mut seen, mut taken, mut wrong) = (0, 0u32, 0);

        kthread::scope(|scope| {
            for thread in 0..threads {
                let cpu = kthread::online_cpus().nth(thread % cpus).ok_or(EINVAL)?;
                // Allocate before the other threads are at full speed.
                let mut own = Chain::new();
                for number in 0..COUNT {
                    own.push(element(thread as u32 * COUNT + number, None)?);
                }
                scope.spawn_on(cpu, c"llist", move || {
                    for element in own.reverse() {
                        if list.push(element) {
                            found_empty.add(1u32, Relaxed);
                        }
                    }
                })?;
            }

            let total = threads as u32 * COUNT;
            while seen < total {
                let all = list.take_all().reverse();
                taken += u32::from(!all.is_empty());
                for element in all {
                    match next.get_mut((element.number / COUNT) as usize) {
                        Some(next) if *next == element.number % COUNT => *next += 1,
                        _ => wrong += 1,
                    }
                    seen += 1;
                }
                // SAFETY: May be called in process context at any time.
                unsafe { bindings::schedule() };
            }
            Ok::<_, Error>(())
        })?;
        assert_eq!(wrong, 0);
        assert!(list.is_empty());
        // For each chain taken, exactly one push had found the list empty.
        assert_eq!(found_empty.load(Relaxed), taken);
        Ok(())
    }
}
