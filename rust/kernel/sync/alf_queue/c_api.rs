// SPDX-License-Identifier: GPL-2.0

//! The queue for C code, which passes pointers that it owns in its own way.
//!
//! What C code promises is written in `include/linux/alf_queue.h`.

use super::{
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

/// An element: what C code makes of it is its own business.
#[repr(transparent)]
struct Pointer(*mut c_void);

// SAFETY: C code hands pointers on to where it can use them.
unsafe impl Send for Pointer {}

/// Returns the ring that C code knows as a queue.
///
/// # Safety
///
/// `queue` is from [`alf_queue_alloc`] and is not freed during `'a`.
#[inline(always)]
unsafe fn ring<'a>(queue: *mut bindings::alf_queue) -> &'a Ring<Pointer> {
    // SAFETY: By the safety requirements, it is the ring that was made there.
    unsafe { &*queue.cast() }
}

/// Puts all of `n` pointers in, or none.
///
/// # Safety
///
/// As the header says for the kind of producers.
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
/// As the header says for the kind of consumers.
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

/// Makes a queue, see the header.
///
/// # Safety
///
/// Sleeping is allowed if `gfp` says so.
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
/// `queue` is null or from [`alf_queue_alloc`], and nobody uses it any more.
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
    // SAFETY: By the safety requirements, no other producer runs on this CPU in between.
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
    // SAFETY: By the safety requirements, no other consumer runs on this CPU in between.
    unsafe { dequeue(queue, pointers, n, Users::Many) }
}

/// Tells whether a queue is empty, see the header.
///
/// # Safety
///
/// `queue` is from [`alf_queue_alloc`].
#[export]
pub(crate) unsafe extern "C" fn alf_queue_empty(queue: *mut bindings::alf_queue) -> bool {
    // SAFETY: By the safety requirements.
    unsafe { ring(queue).len() == 0 }
}

/// Returns how many pointers a queue has, see the header.
///
/// # Safety
///
/// `queue` is from [`alf_queue_alloc`].
#[export]
pub(crate) unsafe extern "C" fn alf_queue_count(queue: *mut bindings::alf_queue) -> c_int {
    // SAFETY: By the safety requirements. CAST: At most the capacity, which fits.
    unsafe { ring(queue).len() as c_int }
}

/// Returns how many pointers fit in yet, see the header.
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
