//@ error: none lifetime may not live long enough
// SPDX-License-Identifier: GPL-2.0

//! The proof that interrupts are disabled does not outlive the call.

#![forbid(unsafe_code)]

use kernel::sync::alf_queue::{
    with_interrupts_off,
    InterruptsOff, //
};

//~ pub fn keep() -> Option<usize> {
pub fn keep() -> Option<InterruptsOff<'static>> {
    //~ with_interrupts_off(|cx: InterruptsOff<'_>| core::mem::size_of_val(&cx))
    with_interrupts_off(|cx| cx)
}
