// SPDX-License-Identifier: GPL-2.0

//! The C interface: queues of pointers, whose ownership is up to C code.
//!
//! `include/linux/alf_queue.h` documents the requirements for callers.

use super::{
    preemption::PreemptionOff,
    reserve::Wanted,
    ring::{
        Ring,
        Users, //
    }, //
};
use crate::{
    alloc::Flags,
    bindings,
    prelude::*, //
};

/// An element. Its meaning is up to C code.
#[repr(transparent)]
struct Pointer(*mut c_void);

// SAFETY: C code only passes pointers that the receiving context can use.
unsafe impl Send for Pointer {}

/// Returns the ring behind a C queue.
///
/// # Safety
///
/// `queue` is from [`alf_queue_alloc`] and is not freed during `'a`.
#[inline(always)]
unsafe fn ring<'a>(queue: *mut bindings::alf_queue) -> &'a Ring<Pointer> {
    // SAFETY: By the safety requirements, it is the ring that was allocated there.
    unsafe { &*queue.cast() }
}

/// Adds all of `n` pointers, or none.
///
/// # Safety
///
/// As documented in the header for this kind of producers.
#[inline(always)]
unsafe fn enqueue(
    queue: *mut bindings::alf_queue,
    pointers: *const *mut c_void,
    n: u32,
    users: Users,
) -> c_int {
    let wanted = Wanted {
        count: n,
        all: true,
    };
    // SAFETY: By the safety requirements. A pointer and its wrapper are the same in memory. CAST: A
    // count is at most the capacity, which fits.
    unsafe { ring(queue).enqueue(pointers.cast(), wanted, users) as c_int }
}

/// Takes up to `n` pointers out.
///
/// # Safety
///
/// As documented in the header for this kind of consumers.
#[inline(always)]
unsafe fn dequeue(
    queue: *mut bindings::alf_queue,
    pointers: *mut *mut c_void,
    n: u32,
    users: Users,
) -> c_int {
    // SAFETY: By the safety requirements. A pointer and its wrapper are the same in memory. CAST: A
    // count is at most the capacity, which fits.
    unsafe { ring(queue).dequeue(pointers.cast(), n, users) as c_int }
}

/// Allocates a queue, see the header.
///
/// # Safety
///
/// The context must be one that `gfp` allows.
#[export]
pub(crate) unsafe extern "C" fn alf_queue_alloc(
    size: u32,
    gfp: bindings::gfp_t,
) -> *mut bindings::alf_queue {
    let flags = Flags::from_raw(gfp);
    let queue =
        Ring::<Pointer>::new(size as usize, 0, flags).and_then(|ring| Ok(KBox::new(ring, flags)?));
    match queue {
        Ok(queue) => KBox::into_raw(queue).cast(),
        Err(error) => error.to_ptr(),
    }
}

/// Frees a queue, see the header.
///
/// # Safety
///
/// `queue` is null or from [`alf_queue_alloc`], and is not used any more.
#[export]
pub(crate) unsafe extern "C" fn alf_queue_free(queue: *mut bindings::alf_queue) {
    if !queue.is_null() {
        // SAFETY: By the safety requirements; it was a box there.
        drop(unsafe { KBox::<Ring<Pointer>>::from_raw(queue.cast()) });
    }
}

/// Puts pointers in, see the header.
///
/// # Safety
///
/// As the header says.
#[export]
pub(crate) unsafe extern "C" fn alf_sp_enqueue(
    queue: *mut bindings::alf_queue,
    pointers: *mut *mut c_void,
    n: u32,
) -> c_int {
    // SAFETY: By the safety requirements, there is no other producer at the moment.
    unsafe { enqueue(queue, pointers, n, Users::One) }
}

/// Puts pointers in, see the header.
///
/// # Safety
///
/// As the header says.
#[export]
pub(crate) unsafe extern "C" fn alf_mp_enqueue(
    queue: *mut bindings::alf_queue,
    pointers: *mut *mut c_void,
    n: u32,
) -> c_int {
    let _goes_on = PreemptionOff::new();
    // SAFETY: By the safety requirements, and without preemption, no other producer runs on this
    // CPU in between.
    unsafe { enqueue(queue, pointers, n, Users::Many) }
}

/// Takes pointers out, see the header.
///
/// # Safety
///
/// As the header says.
#[export]
pub(crate) unsafe extern "C" fn alf_sc_dequeue(
    queue: *mut bindings::alf_queue,
    pointers: *mut *mut c_void,
    n: u32,
) -> c_int {
    // SAFETY: By the safety requirements, there is no other consumer at the moment.
    unsafe { dequeue(queue, pointers, n, Users::One) }
}

/// Takes pointers out, see the header.
///
/// # Safety
///
/// As the header says.
#[export]
pub(crate) unsafe extern "C" fn alf_mc_dequeue(
    queue: *mut bindings::alf_queue,
    pointers: *mut *mut c_void,
    n: u32,
) -> c_int {
    let _goes_on = PreemptionOff::new();
    // SAFETY: By the safety requirements, and without preemption, no other consumer runs on this
    // CPU in between.
    unsafe { dequeue(queue, pointers, n, Users::Many) }
}

/// Returns whether a queue is empty, see the header.
///
/// # Safety
///
/// `queue` is from [`alf_queue_alloc`].
#[export]
pub(crate) unsafe extern "C" fn alf_queue_empty(queue: *mut bindings::alf_queue) -> bool {
    // SAFETY: By the safety requirements.
    unsafe { ring(queue).len() == 0 }
}

/// Returns the number of pointers in a queue, see the header.
///
/// # Safety
///
/// `queue` is from [`alf_queue_alloc`].
#[export]
pub(crate) unsafe extern "C" fn alf_queue_count(queue: *mut bindings::alf_queue) -> c_int {
    // SAFETY: By the safety requirements. CAST: At most the capacity, which fits.
    unsafe { ring(queue).len() as c_int }
}

/// Returns the number of pointers that still fit, see the header.
///
/// # Safety
///
/// `queue` is from [`alf_queue_alloc`].
#[export]
pub(crate) unsafe extern "C" fn alf_queue_avail_space(queue: *mut bindings::alf_queue) -> c_int {
    // SAFETY: By the safety requirements.
    let ring = unsafe { ring(queue) };
    // CAST: At most the capacity, which fits.
    (ring.slots().capacity() - ring.len()) as c_int
}
