//@ error: E0515 cannot return value referencing local variable `guard`
// SPDX-License-Identifier: GPL-2.0

//! A CPU's part of a pool is inaccessible once the context may migrate.

#![forbid(unsafe_code)]

use kernel::{
    mm::qmempool::{
        Local,
        QMemPool, //
    },
    prelude::*,
    softirq::BhGuard, //
};

//~ pub fn keep<'a>(pool: &'a QMemPool<u64>, guard: &'a BhGuard) -> Result<Local<'a, 'a, u64>> {
pub fn keep<'a>(pool: &'a QMemPool<u64>) -> Result<Local<'a, 'a, u64>> {
    //~
    let guard = BhGuard::new().ok_or(EINVAL)?;
    Ok(pool.local(guard.softirq()))
}
