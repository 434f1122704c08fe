// SPDX-License-Identifier: GPL-2.0

//! Per-CPU data.
//!
//! A [`PerCpu`] holds a value for each possible CPU. The value of the current CPU is accessed with
//! a [`Softirq`] token: while it lives, the context does not migrate, and no other context on this
//! CPU gets a token. So the value needs neither a lock nor atomic operations, and need not be
//! [`Sync`]; a [`Cell`] is enough.
//!
//! Tokens can be copied, and calls nest: the holder of a token can call code that uses the same
//! data. Therefore access is by shared reference, and a caller must not call code that may use the
//! data while it is inconsistent.
//!
//! There is no access to the values of other CPUs.
//!
//! C header: [`include/linux/percpu.h`](srctree/include/linux/percpu.h)
//!
//! # Examples
//!
//! ```
//! use core::cell::Cell;
//! use kernel::{
//!     percpu::PerCpu,
//!     softirq::BhGuard, //
//! };
//!
//! let calls = PerCpu::new(|_cpu| Ok::<_, Error>(Cell::new(0u64)), GFP_KERNEL)?;
//!
//! let guard = BhGuard::new().ok_or(EINVAL)?;
//! let mine = calls.get(guard.softirq());
//! mine.set(mine.get() + 1);
//! assert_eq!(calls.get(guard.softirq()).get(), 1);
//! # drop(guard);
//! # Ok::<(), Error>(())
//! ```
//!
//! [`Cell`]: core::cell::Cell

use crate::{
    alloc::Flags,
    bindings,
    cpu::CpuId,
    prelude::*,
    softirq::Softirq, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

mod tests;

/// A value of type `T` for each possible CPU.
///
/// Dropping it drops the values. They do not move, and CPU hotplug does not affect them: there is
/// one for each CPU that may ever come online.
///
/// # Invariants
///
/// `base` is dynamic per-CPU memory, owned by this, which holds a value of type `T` for each
/// possible CPU.
pub struct PerCpu<T> {
    base: NonNull<T>,
    _values: PhantomData<T>,
}

// SAFETY: This owns the values.
unsafe impl<T: Send> Send for PerCpu<T> {}

// SAFETY: Contexts on the same CPU get references to its value one after the other, as if it had
// been sent from one to the next, for which `T: Send` is enough. References to values of other CPUs
// are only given out if `T` is `Sync`.
unsafe impl<T: Send> Sync for PerCpu<T> {}

impl<T> PerCpu<T> {
    /// Allocates a value for each possible CPU, initialised by `init`.
    ///
    /// If `init` fails, the values made so far are dropped.
    ///
    /// # Errors
    ///
    /// Errors of `init`; [`ENOMEM`] if there is no memory, or if the size or alignment of `T`
    /// exceeds the limits of the per-CPU allocator (a few pages; a page). There is no warning.
    pub fn new<E>(mut init: impl FnMut(CpuId) -> Result<T, E>, flags: Flags) -> Result<Self, E>
    where
        E: From<Error>,
    {
        let mut memory = Memory::<T>::new(flags | __GFP_NOWARN).ok_or(ENOMEM)?;

        for cpu in possible_cpus() {
            let value = init(cpu)?;
            // SAFETY: This is memory for a value of `T` that nobody else uses yet.
            unsafe { of_cpu(memory.base, cpu).write(value) };
            // INVARIANT: All possible CPUs up to this one have a value.
            memory.filled = cpu.as_u32() + 1;
        }

        let base = memory.base;
        core::mem::forget(memory);
        // INVARIANT: All possible CPUs have a value now, and we own the memory.
        Ok(Self {
            base,
            _values: PhantomData,
        })
    }

    /// Returns the value of this CPU.
    #[inline(always)]
    pub fn get<'a>(&'a self, _cx: Softirq<'a>) -> &'a T {
        // SAFETY: By the type invariants, this is per-CPU memory. The token proves that we stay on
        // this CPU.
        let value = unsafe { bindings::this_cpu_ptr(self.base.as_ptr().cast()) };
        // SAFETY: By the type invariants, each possible CPU has a value, and the borrow of `self`
        // keeps it. Other references to it exist only in the same call chain, or if `T` is `Sync`.
        unsafe { &*value.cast::<T>() }
    }

    /// Returns a pointer to the value of any CPU, or null if that is not a possible CPU.
    ///
    /// The caller has to make sure that it may access the value.
    #[cfg_attr(not(CONFIG_QMEMPOOL), expect(dead_code, reason = "for qmempool"))]
    pub(crate) fn of_cpu(&self, cpu: CpuId) -> *mut T {
        // The first possible CPU from this one on. Not a search for it: callers go over all CPUs.
        if next_possible(i32::from(cpu) - 1) == Some(cpu) {
            of_cpu(self.base, cpu).as_ptr()
        } else {
            core::ptr::null_mut()
        }
    }

    /// Returns the per-CPU pointer for C code.
    #[cfg_attr(not(CONFIG_QMEMPOOL), expect(dead_code, reason = "for qmempool"))]
    pub(crate) fn as_raw(&self) -> *mut T {
        self.base.as_ptr()
    }
}

impl<T> Drop for PerCpu<T> {
    fn drop(&mut self) {
        // INVARIANT: By the type invariants, all possible CPUs have a value. It is given up here.
        drop(Memory {
            base: self.base,
            filled: u32::MAX,
        });
    }
}

/// Partially initialised per-CPU memory.
///
/// # Invariants
///
/// `base` is dynamic per-CPU memory for a `T`, owned by this; it holds values for those possible
/// CPUs whose numbers are less than `filled`.
struct Memory<T> {
    base: NonNull<T>,
    filled: u32,
}

impl<T> Memory<T> {
    fn new(flags: Flags) -> Option<Self> {
        // The allocator requires a size other than zero.
        let size = size_of::<T>().max(1);
        // SAFETY: The allocator checks size and alignment.
        let base = unsafe { bindings::__alloc_percpu_gfp(size, align_of::<T>(), flags.as_raw()) };
        // INVARIANT: There is no value yet.
        Some(Self {
            base: NonNull::new(base.cast())?,
            filled: 0,
        })
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() {
            for cpu in possible_cpus().take_while(|cpu| cpu.as_u32() < self.filled) {
                // SAFETY: By the type invariants, there is a value, which is not used again.
                unsafe { of_cpu(self.base, cpu).drop_in_place() };
            }
        }
        // SAFETY: By the type invariants, the memory is ours, and it is not used again.
        unsafe { bindings::free_percpu(self.base.as_ptr().cast()) };
    }
}

/// Returns the part of per-CPU memory that belongs to a possible CPU.
#[inline]
fn of_cpu<T>(base: NonNull<T>, cpu: CpuId) -> NonNull<T> {
    // SAFETY: This only computes an address; `cpu` is less than `nr_cpu_ids`.
    let ptr = unsafe { bindings::per_cpu_ptr(base.as_ptr().cast(), cpu.as_u32()) };
    // SAFETY: Per-CPU memory of a possible CPU is never at address 0.
    unsafe { NonNull::new_unchecked(ptr.cast()) }
}

/// Returns the first possible CPU after that number, or after -1.
#[inline]
fn next_possible(after: i32) -> Option<CpuId> {
    // SAFETY: The mask is always valid, and numbers past its end are allowed.
    CpuId::from_u32(unsafe {
        bindings::cpumask_next(after, &raw const bindings::__cpu_possible_mask)
    })
}

/// Returns all possible CPUs, in ascending order.
pub fn possible_cpus() -> impl Iterator<Item = CpuId> {
    core::iter::successors(next_possible(-1), |cpu| next_possible(i32::from(*cpu)))
}
