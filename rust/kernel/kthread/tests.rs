// SPDX-License-Identifier: GPL-2.0

//! Threads in tests, and the tests of threads.

use super::*;

use crate::cpu::nr_cpu_ids;

/// Runs `body` on each of some CPUs at the same time, and waits until all have returned.
///
/// The threads can borrow from the caller. `body` gets the CPU that its thread was started on. If a
/// thread cannot be started, this still waits for the others.
pub(crate) fn run_on_each<F>(mut cpus: impl Iterator<Item = CpuId>, name: &CStr, body: F) -> Result
where
    F: Fn(CpuId) + Sync,
{
    let body = &body;
    scope(|scope| cpus.try_for_each(|cpu| scope.spawn_on(cpu, name, move || body(cpu))))
}

/// Two CPUs, for a KUnit case that needs them.
///
/// If there is one only, the case is reported as skipped, and has to return.
pub(crate) fn two_cpus_for_case() -> Option<(CpuId, CpuId)> {
    let mut cpus = online_cpus();

    if let (Some(first), Some(second)) = (cpus.next(), cpus.next()) {
        return Some((first, second));
    }
    let why = c"one CPU".to_bytes_with_nul();
    // SAFETY: The case that is running is valid, and has room for that. Nothing else writes to it.
    unsafe {
        let case = bindings::kunit_get_current_test();
        if !case.is_null() {
            (*case).status = bindings::kunit_status_KUNIT_SKIPPED;
            (&raw mut (*case).status_comment)
                .cast::<u8>()
                .copy_from_nonoverlapping(why.as_ptr(), why.len());
        }
    }
    None
}

#[kunit_tests(rust_kthread)]
mod cases {
    use super::*;
    use crate::{
        sync::atomic::{
            Atomic,
            Relaxed, //
        },
        task::Task,
        time::{
            delay::fsleep,
            Delta,
            Instant,
            Monotonic, //
        }, //
    };

    /// How long threads wait for each other before the test fails.
    const PATIENCE: Delta = Delta::from_secs(5);

    /// Returns the number of CPUs that the current thread may run on.
    fn allowed_cpus() -> i32 {
        // SAFETY: The current task is valid, and its affinity does not change here.
        unsafe { (*Task::current_raw()).nr_cpus_allowed }
    }

    #[test]
    fn runs_on_the_cpu_that_was_asked_for() -> Result {
        for cpu in online_cpus() {
            let ran_on = Atomic::new(u32::MAX);
            let allowed = Atomic::new(0i32);
            run_on_each([cpu].into_iter(), c"where", |_| {
                ran_on.store(CpuId::current().as_u32(), Relaxed);
                allowed.store(allowed_cpus(), Relaxed);
            })?;
            assert_eq!(ran_on.load(Relaxed), cpu.as_u32());
            // The thread is bound to the CPU.
            assert_eq!(allowed.load(Relaxed), 1);
        }
        Ok(())
    }

    #[test]
    fn ending_at_once_still_runs_closures_and_drops_them() -> Result {
        let ran = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let cpu = online_cpus().next().ok_or(EINVAL)?;

        for _ in 0..50 {
            let ran = ran.clone();
            scope(|scope| {
                scope.spawn_on(cpu, c"%s%n", move || {
                    ran.add(1u32, Relaxed);
                })
            })?;
        }
        assert_eq!(ran.load(Relaxed), 50);
        // All closures were dropped: there is no other reference.
        let unique = Arc::into_unique_or_drop(ran);
        assert!(unique.is_some());
        Ok(())
    }

    #[test]
    fn a_scope_ends_after_its_threads() -> Result {
        let ended = Atomic::new(0u32);

        let started = scope(|scope| {
            for cpu in online_cpus() {
                scope.spawn_on(cpu, c"late", || {
                    fsleep(Delta::from_millis(30));
                    ended.add(1u32, Relaxed);
                })?;
            }
            Ok::<_, Error>(online_cpus().count() as u32)
        })?;
        assert_eq!(ended.load(Relaxed), started);
        Ok(())
    }

    #[test]
    fn a_scope_that_fails_waits_too() -> Result {
        let ended = Atomic::new(0u32);
        let cpu = online_cpus().next().ok_or(EINVAL)?;

        let result = scope(|scope| {
            scope.spawn_on(cpu, c"late", || {
                fsleep(Delta::from_millis(30));
                ended.add(1u32, Relaxed);
            })?;
            Err::<(), _>(EBUSY)
        });
        assert_eq!(result, Err(EBUSY));
        assert_eq!(ended.load(Relaxed), 1);
        Ok(())
    }

    #[test]
    fn borrowed_closures_run_on_all_cpus_at_once() -> Result {
        let cpus = online_cpus().count() as u32;
        let (arrived, elsewhere, alone) = (Atomic::new(0u32), Atomic::new(0u32), Atomic::new(0u32));

        run_on_each(online_cpus(), c"each", |cpu| {
            elsewhere.add(u32::from(CpuId::current() != cpu), Relaxed);
            arrived.add(1u32, Relaxed);
            // Wait for the other threads.
            let start = Instant::<Monotonic>::now();
            while arrived.load(Relaxed) < cpus {
                if start.elapsed() > PATIENCE {
                    alone.add(1u32, Relaxed);
                    break;
                }
                fsleep(Delta::from_micros(100));
            }
        })?;
        assert_eq!(arrived.load(Relaxed), cpus);
        assert_eq!(elsewhere.load(Relaxed), 0);
        assert_eq!(alone.load(Relaxed), 0);
        Ok(())
    }

    #[test]
    fn online_cpus_ascend() {
        let mut last = None;
        for cpu in online_cpus() {
            assert!(last < Some(cpu.as_u32()));
            last = Some(cpu.as_u32());
        }
        assert!(last.is_some());
    }

    #[test]
    fn where_threads_run_is_online() -> Result {
        let mut wrong = 0;
        for number in 0..nr_cpu_ids() {
            let cpu = CpuId::from_u32(number).ok_or(EINVAL)?;
            let ran_on = Atomic::new(u32::MAX);
            // If this CPU is offline, the thread runs on another one.
            run_on_each([cpu].into_iter(), c"there", |_| {
                ran_on.store(CpuId::current().as_u32(), Relaxed);
            })?;
            let there = ran_on.load(Relaxed);
            wrong += u32::from(!online_cpus().any(|online| online.as_u32() == there));
        }
        assert_eq!(wrong, 0);
        Ok(())
    }
}
