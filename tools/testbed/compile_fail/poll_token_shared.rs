//@ error: E0277 cannot be shared between threads safely
// SPDX-License-Identifier: GPL-2.0

//! A reference to the token is valid on the same CPU only.

#![forbid(unsafe_code)]

use kernel::net::napi::Poll;

fn send<T: Send>(_: T) {}

pub fn poll(cx: &Poll<'_>) {
    //~ send(cx.interrupts());
    send(cx);
}
