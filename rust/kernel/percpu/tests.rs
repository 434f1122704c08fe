// SPDX-License-Identifier: GPL-2.0

//! Tests of per-CPU data.

#[crate::prelude::kunit_tests(rust_percpu)]
mod cases {
    use super::super::*;
    use crate::{
        kthread,
        softirq::BhGuard,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            Arc, //
        }, //
    };
    use core::cell::Cell;

    /// All values, with their CPUs.
    fn all<T: Sync>(values: &PerCpu<T>) -> impl Iterator<Item = (CpuId, &T)> {
        possible_cpus().map(|cpu| {
            // SAFETY: Each possible CPU has a value, which the borrow keeps, and which can be
            // shared.
            (cpu, unsafe { of_cpu(values.base, cpu).as_ref() })
        })
    }

    /// A value that counts drops in a shared counter.
    struct Counted(Arc<Atomic<u32>>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.add(1u32, Relaxed);
        }
    }

    #[test]
    fn each_cpu_has_its_value() -> Result {
        let numbers = PerCpu::new(|cpu| Ok::<_, Error>(cpu.as_u32()), GFP_KERNEL)?;

        assert!(all(&numbers).count() >= 1);
        assert!(all(&numbers).all(|(cpu, number)| *number == cpu.as_u32()));
        // They are at distinct addresses.
        for (cpu, number) in all(&numbers) {
            let same = |other| core::ptr::eq(number, other);
            assert!(all(&numbers).all(|(c, other)| same(other) == (c == cpu)));
        }
        Ok(())
    }

    #[test]
    fn a_token_reaches_the_value_of_this_cpu() -> Result {
        let numbers = PerCpu::new(
            |cpu| Ok::<_, Error>((cpu.as_u32(), Cell::new(0))),
            GFP_KERNEL,
        )?;

        for round in 1..=3 {
            let guard = BhGuard::new().ok_or(EINVAL)?;
            let mine = numbers.get(guard.softirq());
            assert_eq!(mine.0, CpuId::current().as_u32());
            mine.1.set(mine.1.get() + 1);
            // A nested user gets the same value.
            assert_eq!(numbers.get(guard.softirq()).1.get(), mine.1.get());
            assert!(mine.1.get() <= round);
        }
        Ok(())
    }

    #[test]
    fn each_cpu_reaches_its_own_value() -> Result {
        let numbers = PerCpu::new(|cpu| Ok::<_, Error>(Atomic::new(cpu.as_u32())), GFP_KERNEL)?;
        let wrong = Atomic::new(0u32);

        kthread::run_on_each(kthread::online_cpus(), c"percpu", |_| {
            let guard = BhGuard::new();
            let right = guard.as_ref().is_some_and(|guard| {
                let here = CpuId::current().as_u32();
                numbers.get(guard.softirq()).fetch_add(100u32, Relaxed) == here
            });
            wrong.add(u32::from(!right), Relaxed);
        })?;
        assert_eq!(wrong.load(Relaxed), 0);
        // Each thread changed the value of its CPU, and no other.
        for cpu in kthread::online_cpus() {
            let value = all(&numbers)
                .find(|(c, _)| *c == cpu)
                .map(|(_, v)| v.load(Relaxed));
            assert_eq!(value, Some(100 + cpu.as_u32()));
        }
        Ok(())
    }

    #[test]
    fn values_are_dropped() -> Result {
        let drops = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let values = PerCpu::new(|_| Ok::<_, Error>(Counted(drops.clone())), GFP_KERNEL)?;
        let count = possible_cpus().count();

        assert_eq!(drops.load(Relaxed), 0);
        drop(values);
        assert_eq!(drops.load(Relaxed) as usize, count);
        Ok(())
    }

    #[test]
    fn a_failing_initializer_leaks_nothing() -> Result {
        let drops = Arc::new(Atomic::new(0), GFP_KERNEL)?;
        let last = possible_cpus().last().ok_or(EINVAL)?;
        let result = PerCpu::new(
            |cpu| {
                if cpu == last {
                    Err(EBUSY)
                } else {
                    Ok(Counted(drops.clone()))
                }
            },
            GFP_KERNEL,
        );

        assert_eq!(result.err(), Some(EBUSY));
        assert_eq!(drops.load(Relaxed) as usize, possible_cpus().count() - 1);
        Ok(())
    }

    #[test]
    fn values_are_aligned() -> Result {
        #[repr(align(512))]
        struct Aligned(u8);

        let values = PerCpu::new(|_| Ok::<_, Error>(Aligned(7)), GFP_KERNEL)?;
        for (_, value) in all(&values) {
            assert_eq!(core::ptr::from_ref(value).addr() % 512, 0);
            assert_eq!(value.0, 7);
        }
        Ok(())
    }

    /// The allocator would warn of them.
    #[test]
    fn refuses_values_that_are_too_large() {
        // SAFETY: There are no requirements.
        let has_warned = || unsafe { bindings::test_taint(bindings::TAINT_WARN) };
        let before = has_warned();
        let large = PerCpu::new(|_| Err::<[u8; 1 << 20], _>(EINVAL), GFP_KERNEL);

        assert_eq!(large.err(), Some(ENOMEM));
        assert_eq!(has_warned(), before);
    }

    #[test]
    fn types_without_size_are_values_too() -> Result {
        let values = PerCpu::new(|_| Ok::<_, Error>(()), GFP_KERNEL)?;
        assert!(all(&values).count() >= 1);
        Ok(())
    }
}
