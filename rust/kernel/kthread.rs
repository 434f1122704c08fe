// SPDX-License-Identifier: GPL-2.0

//! Kernel threads that run a closure on one CPU.
//!
//! Threads run in a [`scope`], which waits until the closures of all threads have returned and the
//! threads are gone. So the closures can borrow from the caller, and no code of the caller's module
//! outlives the call: there is no thread handle that could be forgotten, which would skip the wait.
//!
//! There is no request to stop. A closure shares a flag or the like with its creator, which must
//! set it before the scope ends.
//!
//! C header: [`include/linux/kthread.h`](srctree/include/linux/kthread.h)

use crate::{
    bindings,
    cpu::CpuId,
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

#[cfg(CONFIG_KUNIT = "y")]
mod tests;

#[cfg(CONFIG_KUNIT = "y")]
pub(crate) use self::tests::{
    run_on_each,
    two_cpus_for_case, //
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
    let next = |after: i32| {
        // SAFETY: The mask is always valid, and numbers past its end are allowed.
        CpuId::from_u32(unsafe {
            bindings::cpumask_next(after, &raw const bindings::__cpu_online_mask)
        })
    };
    core::iter::successors(next(-1), move |cpu| next(i32::from(*cpu)))
}
