// SPDX-License-Identifier: GPL-2.0

//! The C interface.

#[cfg(CONFIG_QMEMPOOL_KUNIT_TEST)]
use super::shortage;
use super::{
    pool::Pool,
    slab::Slab, //
};
use crate::{
    bindings,
    cpu::CpuId,
    prelude::*,
    softirq::Softirq, //
};
use core::ptr::NonNull;

/// Returns the pool of a C pointer, and the proof that this is softirq context.
///
/// # Safety
///
/// `pool` is valid during `'a`, and bottom halves are disabled. With lockdep, the latter is
/// checked.
#[inline(always)]
unsafe fn enter<'a>(pool: *mut bindings::qmempool) -> (&'a Pool, Softirq<'a>) {
    // SAFETY: By the safety requirements.
    unsafe {
        bindings::qmempool_assert_softirq();
        (Pool::from_raw(pool), Softirq::assume())
    }
}

/// Creates a pool, or returns null.
///
/// # Safety
///
/// `name` is null or a string; `cache` is null or a slab cache that outlives the pool.
#[export]
unsafe extern "C" fn qmempool_create(
    name: *const c_char,
    cache: *mut bindings::kmem_cache,
    magazine: c_uint,
    depot: c_uint,
) -> *mut bindings::qmempool {
    let Some(cache) = NonNull::new(cache) else {
        return core::ptr::null_mut();
    };
    if name.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: By the safety requirements.
    let pool = unsafe {
        Slab::new(cache).and_then(|slab| {
            Pool::new(
                CStr::from_char_ptr(name),
                slab,
                magazine as usize,
                depot as usize,
            )
        })
    };
    match pool {
        Ok(pool) => KBox::leak(pool).as_raw(),
        Err(_) => core::ptr::null_mut(),
    }
}

/// Destroys a pool.
///
/// # Safety
///
/// `pool` is null or comes from [`qmempool_create`], and is not used any more.
#[export]
unsafe extern "C" fn qmempool_destroy(pool: *mut bindings::qmempool) {
    if !pool.is_null() {
        // SAFETY: It was leaked by `qmempool_create`, and `shared` is its first member.
        drop(unsafe { KBox::from_raw(pool.cast::<Pool>()) });
    }
}

/// Allocates an object when the current magazine is empty.
///
/// # Safety
///
/// `pool` is valid, and bottom halves are disabled.
#[export]
unsafe extern "C" fn __qmempool_alloc(
    pool: *mut bindings::qmempool,
    gfp: bindings::gfp_t,
) -> *mut c_void {
    // SAFETY: By the safety requirements.
    let (pool, cx) = unsafe { enter(pool) };
    pool.alloc(pool.store(cx), cx, gfp)
        .map_or(core::ptr::null_mut(), NonNull::as_ptr)
}

/// Frees an object when the current magazine is full.
///
/// # Safety
///
/// `pool` is valid, bottom halves are disabled, and `object` belongs to its slab.
#[export]
unsafe extern "C" fn __qmempool_free(pool: *mut bindings::qmempool, object: *mut c_void) {
    // SAFETY: By the safety requirements.
    let (pool, cx) = unsafe { enter(pool) };
    if let Some(object) = NonNull::new(object) {
        // SAFETY: By the safety requirements.
        unsafe { pool.free(pool.store(cx), cx, object) };
    }
}

/// Allocates objects.
///
/// # Safety
///
/// `pool` is valid, bottom halves are disabled, and there is room for `n` objects.
#[export]
unsafe extern "C" fn qmempool_alloc_bulk_softirq(
    pool: *mut bindings::qmempool,
    gfp: bindings::gfp_t,
    n: c_uint,
    objects: *mut *mut c_void,
) -> c_uint {
    // SAFETY: By the safety requirements.
    let (pool, cx) = unsafe { enter(pool) };
    // SAFETY: By the safety requirements. `NonNull` has the layout of a pointer.
    let done = unsafe { pool.alloc_bulk(cx, gfp, objects.cast(), n as usize) };
    // CAST: It is at most `n`.
    done as c_uint
}

/// Frees objects.
///
/// # Safety
///
/// `pool` is valid, bottom halves are disabled, and there are `n` objects of its slab.
#[export]
unsafe extern "C" fn qmempool_free_bulk_softirq(
    pool: *mut bindings::qmempool,
    n: c_uint,
    objects: *mut *mut c_void,
) {
    // SAFETY: By the safety requirements.
    let (pool, cx) = unsafe { enter(pool) };
    // SAFETY: By the safety requirements. `NonNull` has the layout of a pointer.
    unsafe { pool.free_bulk(cx, objects.cast_const().cast(), n as usize) };
}

/// Writes statistics.
///
/// # Safety
///
/// `pool` is valid, `stats` can be written.
#[export]
unsafe extern "C" fn qmempool_stats(
    pool: *mut bindings::qmempool,
    stats: *mut bindings::qmempool_stats,
) {
    // SAFETY: By the safety requirements.
    unsafe { stats.write(Pool::from_raw(pool).stats()) };
}

/// Empties the store of a CPU that has stopped.
///
/// # Safety
///
/// `pool` is valid, and the CPU does not start again before this returns.
#[export]
unsafe extern "C" fn __qmempool_cpu_dead(pool: *mut bindings::qmempool, cpu: c_uint) {
    if let Some(cpu) = CpuId::from_u32(cpu) {
        // SAFETY: By the safety requirements.
        unsafe { Pool::from_raw(pool).cpu_dead(cpu) };
    }
}

/// Returns the number of objects in a pool.
///
/// # Safety
///
/// `pool` is valid.
#[export]
unsafe extern "C" fn __qmempool_count(pool: *mut bindings::qmempool) -> usize {
    // SAFETY: By the safety requirements.
    unsafe { Pool::from_raw(pool) }.count()
}

/// Returns the number of objects that a CPU holds.
///
/// # Safety
///
/// `pool` is valid.
#[export]
unsafe extern "C" fn __qmempool_held(pool: *mut bindings::qmempool, cpu: c_uint) -> usize {
    // SAFETY: By the safety requirements.
    CpuId::from_u32(cpu).map_or(0, |cpu| unsafe { Pool::from_raw(pool) }.held(cpu))
}

/// Empties the store of this CPU.
///
/// # Safety
///
/// `pool` is valid, and bottom halves are disabled.
#[export]
unsafe extern "C" fn __qmempool_drain(pool: *mut bindings::qmempool) {
    // SAFETY: By the safety requirements.
    let (pool, cx) = unsafe { enter(pool) };
    pool.drain(cx);
}

/// Frees unused objects to the slab.
///
/// # Safety
///
/// `pool` is valid.
#[export]
unsafe extern "C" fn __qmempool_shrink(pool: *mut bindings::qmempool, objects: usize) -> usize {
    // SAFETY: By the safety requirements.
    unsafe { Pool::from_raw(pool) }.shrink(objects)
}

/// Limits `cache` to `left` more objects for pools, one per allocation, until the next call.
///
/// # Safety
///
/// None; `cache` is only compared.
#[cfg(CONFIG_QMEMPOOL_KUNIT_TEST)]
#[export]
unsafe extern "C" fn __qmempool_shortage(cache: *mut bindings::kmem_cache, left: usize) {
    shortage::begin(cache, left);
}
