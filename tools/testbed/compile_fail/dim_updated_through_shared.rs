//@ error: E0596 cannot borrow `*dim` as mutable, as it is behind a `&` reference
// SPDX-License-Identifier: GPL-2.0

//! Only one poll function at a time may update the moderation.

#![forbid(unsafe_code)]

use kernel::net::{
    dim::{
        Dim,
        Moderate, //
    },
    napi::Poll, //
};

//~ pub fn account<T: Moderate>(dim: &mut Dim<T>, cx: &Poll<'_>) {
pub fn account<T: Moderate>(dim: &Dim<T>, cx: &Poll<'_>) {
    dim.update(cx.interrupts(), 1, 64);
}
