// SPDX-License-Identifier: GPL-2.0

//! Kernel threads that run a closure on one CPU.
//!
//! [`spawn_on`] starts a thread that is bound to a CPU and runs a closure once. The returned
//! [`Thread`] is joined: dropping it waits until the closure has returned and the thread is gone,
//! so that nothing of the caller's module still runs afterwards.
//!
//! There is no request to stop. What the thread needs to be told, the closure shares with its
//! creator, and the creator must tell it before dropping the handle.
//!
//! C header: [`include/linux/kthread.h`](srctree/include/linux/kthread.h)
//!
//! # Examples
//!
//! ```
//! use kernel::{
//!     kthread,
//!     sync::{
//!         atomic::{Atomic, Relaxed},
//!         Arc,
//!     },
//! };
//!
//! let seen = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
//! let mut threads = KVec::new();
//! for cpu in kthread::online_cpus() {
//!     let seen = seen.clone();
//!     let thread = kthread::spawn_on(cpu, c"example", move || {
//!         seen.add(1u32, Relaxed);
//!     })?;
//!     threads.push(thread, GFP_KERNEL)?;
//! }
//! let started = threads.len();
//! drop(threads);
//! assert_eq!(seen.load(Relaxed) as usize, started);
//! # Ok::<(), Error>(())
//! ```

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
use core::ptr::NonNull;

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
#[must_use = "the thread is joined when this is dropped"]
pub struct Thread {
    task: NonNull<bindings::task_struct>,
    started: Arc<Completion>,
}

// SAFETY: Any task may join a thread.
unsafe impl Send for Thread {}

// SAFETY: There is nothing to be done with a shared reference.
unsafe impl Sync for Thread {}

/// Starts a thread that runs `body` on `cpu`.
///
/// If the CPU goes offline, the thread goes on elsewhere. Must be called where sleeping is allowed;
/// returns an error if there is no memory, or if the caller is being killed.
pub fn spawn_on<F>(cpu: CpuId, name: &CStr, body: F) -> Result<Thread>
where
    F: FnOnce() + Send + 'static,
{
    // SAFETY: What lives forever may be used by a thread that does.
    unsafe { spawn_borrowing(cpu, name, body) }
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
pub fn run_on_each<F>(cpus: impl Iterator<Item = CpuId>, name: &CStr, body: F) -> Result
where
    F: Fn(CpuId) + Sync,
{
    let body = &body;
    let mut threads = KVec::new();
    for cpu in cpus {
        threads.reserve(1, GFP_KERNEL)?;
        // SAFETY: The threads are joined when `threads` is dropped, before this function returns;
        // what `body` has borrowed is there until then.
        let thread = unsafe { spawn_borrowing(cpu, name, move || body(cpu)) }?;
        threads.push(thread, GFP_KERNEL)?;
    }
    Ok(())
}

/// [`spawn_on`] for a closure that need not live forever.
///
/// # Safety
///
/// The thread must be joined while everything that `body` refers to is there.
unsafe fn spawn_borrowing<F>(cpu: CpuId, name: &CStr, body: F) -> Result<Thread>
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

    // SAFETY: `run::<F>` takes what `start` is, and the format takes one string, which is copied.
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
    Ok(Thread {
        // SAFETY: A task that is no error is not null.
        task: unsafe { NonNull::new_unchecked(task) },
        started,
    })
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
    /// Waits until the closure has returned and the thread is gone.
    ///
    /// So does dropping it; this is for saying so. Must be called where sleeping is allowed.
    #[inline]
    pub fn join(self) {}
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
    use crate::sync::atomic::{
        Atomic,
        Relaxed, //
    };

    #[test]
    fn runs_on_the_cpu_that_was_asked_for() -> Result {
        for cpu in online_cpus() {
            let ran_on = Arc::new(Atomic::new(u32::MAX), GFP_KERNEL)?;
            let result = ran_on.clone();
            spawn_on(cpu, c"where", move || {
                result.store(CpuId::current().as_u32(), Relaxed);
            })?
            .join();
            assert_eq!(ran_on.load(Relaxed), cpu.as_u32());
        }
        Ok(())
    }

    #[test]
    fn dropping_at_once_still_runs_the_closure_and_drops_it() -> Result {
        let ran = Arc::new(Atomic::new(0u32), GFP_KERNEL)?;
        let cpu = online_cpus().next().ok_or(EINVAL)?;

        for _ in 0..50 {
            let ran = ran.clone();
            drop(spawn_on(cpu, c"%s%n", move || {
                ran.add(1u32, Relaxed);
            })?);
        }
        assert_eq!(ran.load(Relaxed), 50);
        // Nobody else has a reference any more.
        let unique = Arc::into_unique_or_drop(ran);
        assert!(unique.is_some());
        Ok(())
    }

    #[test]
    fn borrowed_closures_run_on_all_cpus_at_once() -> Result {
        let cpus = online_cpus().count() as u32;
        let arrived = Atomic::new(0u32);

        run_on_each(online_cpus(), c"each", |cpu| {
            if CpuId::current() == cpu {
                arrived.add(1u32, Relaxed);
            }
            // Each of them waits for the others.
            while arrived.load(Relaxed) < cpus {
                crate::time::delay::fsleep(crate::time::Delta::from_micros(100));
            }
        })?;
        assert_eq!(arrived.load(Relaxed), cpus);
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
            let ran_on = Arc::new(Atomic::new(u32::MAX), GFP_KERNEL)?;
            let result = ran_on.clone();
            // If there is no such CPU at the moment, the thread runs elsewhere.
            spawn_on(cpu, c"there", move || {
                result.store(CpuId::current().as_u32(), Relaxed);
            })?
            .join();
            let there = ran_on.load(Relaxed);
            wrong += u32::from(!online_cpus().any(|online| online.as_u32() == there));
        }
        assert_eq!(wrong, 0);
        Ok(())
    }
}
