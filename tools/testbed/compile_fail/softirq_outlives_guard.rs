//@ error: E0515 cannot return value referencing local variable `guard`
// SPDX-License-Identifier: GPL-2.0

//! A token ends with its guard.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    softirq::{
        BhGuard,
        Softirq, //
    }, //
};

//~ pub fn keep<'a>(guard: &'a BhGuard) -> Result<Softirq<'a>> {
pub fn keep<'a>() -> Result<Softirq<'a>> {
    //~
    let guard = BhGuard::new().ok_or(EINVAL)?;
    Ok(guard.softirq())
}
