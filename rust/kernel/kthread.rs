// SPDX-License-Identifier: GPL-2.0

//! Kernel threads that run a closure on one CPU.
//!
//! Threads run in a [`scope`], or are started together by [`run_on_each`]. Both wait until the
//! closures of all threads have returned and the threads are gone. So the closures can borrow from
//! the caller, and no code of the caller's module outlives the call: there is no thread handle that
//! could be forgotten, which would skip the wait.
//!
//! There is no request to stop. A closure shares a flag or the like with its creator, which must
//! set it before the scope ends.
//!
//! C header: [`include/linux/kthread.h`](srctree/include/linux/kthread.h)

use crate::{
    bindings,
    cpu::{
        nr_cpu_ids,
        CpuId, //
    },
    error::from_err_ptr,
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        Completion, //
    }, //
};
use core::{
    cell::Cell,
    marker::PhantomData,
    ptr::NonNull, //
};

/// The argument of a new thread.
struct Start<F> {
    started: Arc<Completion>,
    body: F,
}

/// A kernel thread; dropping this joins it.
///
/// # Invariants
///
/// `task` was created by `kthread_create_on_node()` and has been woken; this owns a reference to
/// it. The thread completes `started` before it runs its closure, and returns when the closure
/// does, regardless of `kthread_stop()`.
struct Thread {
    task: NonNull<bindings::task_struct>,
    started: Arc<Completion>,
}

/// Starts threads, all of which end before [`scope`] returns.
///
/// It is neither `Send` nor `Sync`, so threads of a scope cannot start others.
pub struct Scope<'scope, 'env: 'scope> {
    threads: Cell<KVec<Thread>>,
    // Invariant in both: a shorter `'scope` would let threads borrow data that they outlive.
    scope: PhantomData<Cell<&'scope ()>>,
    env: PhantomData<Cell<&'env ()>>,
}

/// Calls `body` with a [`Scope`] in which it can start threads, and waits until these are gone.
///
/// Context: may sleep.
///
/// # Examples
///
/// ```
/// use kernel::{
///     kthread,
///     sync::atomic::{Atomic, Relaxed},
/// };
///
/// let seen = Atomic::new(0u32);
/// let started = kthread::scope(|scope| {
///     for cpu in kthread::online_cpus() {
///         scope.spawn_on(cpu, c"example", || {
///             seen.add(1u32, Relaxed);
///         })?;
///     }
///     Ok::<_, Error>(kthread::online_cpus().count())
/// })?;
/// assert_eq!(seen.load(Relaxed) as usize, started);
/// # Ok::<(), Error>(())
/// ```
pub fn scope<'env, F, R>(body: F) -> R
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
{
    let scope = Scope {
        threads: Cell::new(KVec::new()),
        scope: PhantomData,
        env: PhantomData,
    };
    let result = body(&scope);
    // Dropping threads joins them. Their borrows last until this function returns.
    drop(scope.threads.replace(KVec::new()));
    result
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a thread that runs `body` on `cpu`.
    ///
    /// If the CPU goes offline, the thread migrates to another one.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory, [`EINTR`] if the caller is being killed. Threads started
    /// before continue, and the scope waits for them.
    pub fn spawn_on<F>(&'scope self, cpu: CpuId, name: &CStr, body: F) -> Result
    where
        F: FnOnce() + Send + 'scope,
    {
        // This does not nest, so the list is not changed meanwhile. If it were, `set()` would drop,
        // and thereby join, the threads of the other list.
        let mut threads = self.threads.replace(KVec::new());
        let result = threads
            .reserve(1, GFP_KERNEL)
            .map_err(Error::from)
            // SAFETY: The thread is joined before `'scope` ends, or at once if it cannot be added
            // to the list.
            .and_then(|()| unsafe { Thread::spawn_on(cpu, name, body) })
            .and_then(|thread| Ok(threads.push(thread, GFP_KERNEL)?));
        self.threads.set(threads);
        result
    }
}

/// Runs `body` on each of some CPUs at the same time, and waits until all have returned.
///
/// The threads can borrow from the caller. `body` gets the CPU that its thread was started on. If a
/// thread cannot be started, this still waits for the others.
///
/// # Examples
///
/// ```
/// use kernel::{
///     kthread,
///     sync::atomic::{Atomic, Relaxed},
/// };
///
/// let sum = Atomic::new(0u32);
/// kthread::run_on_each(kthread::online_cpus(), c"example", |cpu| {
///     sum.add(cpu.as_u32() + 1, Relaxed);
/// })?;
/// assert!(sum.load(Relaxed) >= 1);
/// # Ok::<(), Error>(())
/// ```
pub fn run_on_each<F>(mut cpus: impl Iterator<Item = CpuId>, name: &CStr, body: F) -> Result
where
    F: Fn(CpuId) + Sync,
{
    let body = &body;
    scope(|scope| cpus.try_for_each(|cpu| scope.spawn_on(cpu, name, move || body(cpu))))
}

/// The thread's function.
///
/// # Safety
///
/// `start` comes from [`KBox::into_raw`] of a `Start<F>`, which this takes over.
unsafe extern "C" fn run<F: FnOnce()>(start: *mut c_void) -> c_int {
    // SAFETY: By the safety requirements.
    let start = unsafe { KBox::<Start<F>>::from_raw(start.cast()) };
    let Start { started, body } = KBox::into_inner(start);
    started.complete_all();
    drop(started);
    body();
    0
}

impl Thread {
    /// Starts a thread that runs `body` on `cpu`.
    ///
    /// # Safety
    ///
    /// The thread must be joined before anything that `body` refers to goes away, including the
    /// code of `body`.
    unsafe fn spawn_on<F>(cpu: CpuId, name: &CStr, body: F) -> Result<Self>
    where
        F: FnOnce() + Send,
    {
        let started = Arc::pin_init(Completion::new(), GFP_KERNEL)?;
        let start = KBox::new(
            Start {
                started: started.clone(),
                body,
            },
            GFP_KERNEL,
        )?;
        let start = KBox::into_raw(start);

        // SAFETY: `start` is the argument that `run::<F>` requires. The format takes one string,
        // which is copied.
        let task = from_err_ptr(unsafe {
            bindings::kthread_create_on_node(
                Some(run::<F>),
                start.cast(),
                bindings::NUMA_NO_NODE,
                c"%s".as_char_ptr(),
                name.as_char_ptr(),
            )
        });
        let task = match task {
            Ok(task) => task,
            Err(error) => {
                // SAFETY: It comes from a box above, and no thread got it.
                drop(unsafe { KBox::from_raw(start) });
                return Err(error);
            }
        };

        // SAFETY: The thread exists and sleeps until it is woken. The reference keeps the task
        // allocated after the thread has ended.
        unsafe {
            bindings::get_task_struct(task);
            bindings::kthread_bind(task, cpu.as_u32());
            bindings::wake_up_process(task);
        }
        // INVARIANT: As above; `run` completes `started` first.
        Ok(Self {
            // SAFETY: The function returns a valid task or an error pointer, never null.
            task: unsafe { NonNull::new_unchecked(task) },
            started,
        })
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // `kthread_stop()` of a thread that has not started yet would skip its function: the
        // closure would neither run nor be dropped.
        self.started.wait_for_completion();
        // SAFETY: By the type invariants this is a kernel thread, and the reference is ours.
        unsafe { bindings::kthread_stop_put(self.task.as_ptr()) };
    }
}

/// Returns the CPUs that are online, in ascending order.
///
/// CPUs may go offline or come online at any time, also while this iterates.
pub fn online_cpus() -> impl Iterator<Item = CpuId> {
    let mut last = -1;
    core::iter::from_fn(move || {
        // SAFETY: The mask is always valid, and numbers past its end are allowed.
        let cpu = unsafe { bindings::cpumask_next_online(last) };
        if cpu >= nr_cpu_ids() {
            return None;
        }
        // CAST: CPU numbers fit in an `i32`.
        last = cpu as i32;
        CpuId::from_u32(cpu)
    })
}

/// Two CPUs, for a KUnit case that needs them.
///
/// If there is one only, the case is reported as skipped, and has to return.
#[cfg(CONFIG_KUNIT = "y")]
#[doc(hidden)]
pub fn two_cpus_for_case() -> Option<(CpuId, CpuId)> {
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
mod tests {
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
