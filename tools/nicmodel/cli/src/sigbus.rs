// SPDX-License-Identifier: GPL-2.0
//! Guest memory that goes away while it is mapped: a client has shortened its file, or the file
//! is a sparse one in a full /dev/shm. An access then raises SIGBUS, which ends the process.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Of an x86-64 processor.
const PAGE: usize = 4096;
const TOLD: &[u8] =
    b"nicmodel: memory of the guest is gone (its file was shortened, or /dev/shm is full): it \
    reads as zeros, and each page counts as a DMA error\n";

static LOST: AtomicU64 = AtomicU64::new(0);
static IS_TOLD: AtomicBool = AtomicBool::new(false);

/// Puts zeros in the place of pages that are gone, from now on.
pub fn survive() {
    // SAFETY: the structure is valid when zeroed, the handler has the signature that SA_SIGINFO
    // asks for, and calls only what a handler may.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = replace as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &raw const action, null_mut());
    }
}

/// How many pages have been lost since the last call.
pub fn take_lost() -> u64 {
    LOST.swap(0, Ordering::Relaxed)
}

extern "C" fn replace(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid structure. BUS_ADRERR says that its address lies in the
    // mapping of a file, but beyond the file's end: the page holds nothing that could be lost.
    unsafe {
        let page = (*info).si_addr().map_addr(|address| address & !(PAGE - 1));
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        if (*info).si_code != libc::BUS_ADRERR
            || libc::mmap(page, PAGE, protection, flags, -1, 0) == libc::MAP_FAILED
        {
            // The access is repeated, and ends the process.
            libc::signal(libc::SIGBUS, libc::SIG_DFL);
            return;
        }
        LOST.fetch_add(1, Ordering::Relaxed);
        if !IS_TOLD.swap(true, Ordering::Relaxed) {
            libc::write(libc::STDERR_FILENO, TOLD.as_ptr().cast(), TOLD.len());
        }
    }
}
