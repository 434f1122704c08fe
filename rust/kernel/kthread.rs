// SPDX-License-Identifier: GPL-2.0

//! Kernel threads that run a closure on one CPU.
//!
//! Threads run in a [`scope`], or all at once by [`run_on_each`]. Both wait until the closures of
//! all threads have returned and the threads are gone. So the closures can use what the caller has
//! borrowed, and no code of the caller's module runs behind its back: there is no handle of a
//! thread that could be forgotten, and with it the waiting.
//!
//! There is no request to stop. What a thread needs to be told, its closure shares with its
//! creator, and the creator must tell it before the scope ends.
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

/// What a new thread is given.
struct Start<F> {
    started: Arc<Completion>,
    body: F,
}

/// A kernel thread, which is joined when this is dropped.
///
/// # Invariants
///
/// `task` was made by `kthread_create_on_node()` and has been woken; this owns a reference to it.
/// The thread completes `started` when it has begun to run its closure, and returns from it
/// without regard to `kthread_stop()`.
struct Thread {
    task: NonNull<bindings::task_struct>,
    started: Arc<Completion>,
}

/// Starts threads, all of which have ended when the call of [`scope`] that made this returns.
///
/// It cannot be sent to another thread or shared with one, so threads do not start threads.
pub struct Scope<'scope, 'env: 'scope> {
    threads: Cell<KVec<Thread>>,
    // Invariant in both: a shorter `'scope` would let threads borrow what ends before they do.
    scope: PhantomData<Cell<&'scope ()>>,
    env: PhantomData<Cell<&'env ()>>,
}

/// Calls `body` with a [`Scope`], in which it can start threads, and waits until these are gone.
///
/// Must be called where sleeping is allowed.
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
    // Dropping threads joins them. What they borrow is borrowed until this function returns.
    drop(scope.threads.replace(KVec::new()));
    result
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a thread that runs `body` on `cpu`.
    ///
    /// If the CPU goes offline, the thread goes on elsewhere.
    ///
    /// # Errors
    ///
    /// [`ENOMEM`] if there is no memory, [`EINTR`] if the caller is being killed. Threads that were
    /// started before go on, and are waited for.
    pub fn spawn_on<F>(&'scope self, cpu: CpuId, name: &CStr, body: F) -> Result
    where
        F: FnOnce() + Send + 'scope,
    {
        // Nobody else takes the list meanwhile. If somebody did, what he has put there would be
        // joined when this puts the list back.
        let mut threads = self.threads.replace(KVec::new());
        let result = threads
            .reserve(1, GFP_KERNEL)
            .map_err(Error::from)
            // SAFETY: The thread is joined before `'scope` ends, or at once if it gets no place in
            // the list.
            .and_then(|()| unsafe { Thread::spawn_on(cpu, name, body) })
            .and_then(|thread| Ok(threads.push(thread, GFP_KERNEL)?));
        self.threads.set(threads);
        result
    }
}

/// Runs `body` on each of some CPUs at the same time, and waits until all have returned.
///
/// The threads can use what the caller has borrowed. `body` is given the CPU that it was asked to
/// run on. If a thread cannot be started, those that were are waited for.
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
/// `start` is a box of a `Start<F>`, which this takes over.
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
    /// The thread must be joined while everything that `body` refers to is there, the code of
    /// `body` included.
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

        // SAFETY: `run::<F>` takes what `start` is, and the format takes one string, which is
        // copied.
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
                // SAFETY: It was made from a box above, and no thread will get it.
                drop(unsafe { KBox::from_raw(start) });
                return Err(error);
            }
        };

        // SAFETY: The thread exists and sleeps until it is woken. The reference that is taken keeps
        // the task there after the thread has ended.
        unsafe {
            bindings::get_task_struct(task);
            bindings::kthread_bind(task, cpu.as_u32());
            bindings::wake_up_process(task);
        }
        // INVARIANT: Just so; `run` completes `started` first.
        Ok(Self {
            // SAFETY: A task that is no error is not null.
            task: unsafe { NonNull::new_unchecked(task) },
            started,
        })
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // `kthread_stop()` keeps a thread that has not run yet from running at all, and the
        // closure would neither run nor be dropped.
        self.started.wait_for_completion();
        // SAFETY: By the type invariants this is a kernel thread, and the reference is ours.
        unsafe { bindings::kthread_stop_put(self.task.as_ptr()) };
    }
}

/// Returns the CPUs that are online, in ascending order.
///
/// CPUs may come and go while this is used; nothing keeps them.
pub fn online_cpus() -> impl Iterator<Item = CpuId> {
    let mut last = -1;
    core::iter::from_fn(move || {
        // SAFETY: The mask is valid at any time, and numbers past its end are allowed for.
        let cpu = unsafe { bindings::cpumask_next_online(last) };
        if cpu >= nr_cpu_ids() {
            return None;
        }
        // CAST: Numbers of CPUs fit into an `i32`.
        last = cpu as i32;
        CpuId::from_u32(cpu)
    })
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

    /// How long threads wait for each other before they take it that others do not come.
    const PATIENCE: Delta = Delta::from_secs(5);

    /// The number of CPUs that the current thread may run on.
    fn allowed_cpus() -> i32 {
        // SAFETY: The current task is there; only what binds a thread changes this.
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
            // Not by chance.
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
        // Nobody else has a reference any more.
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
            // Each of them waits for the others.
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
            // If there is no such CPU at the moment, the thread runs elsewhere.
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
