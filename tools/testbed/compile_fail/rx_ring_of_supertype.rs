//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A function for any lifetime is one for a certain lifetime, too: a subtype. Formats for the two
//! can differ in the layout of buffers.

#![forbid(unsafe_code)]

use core::marker::PhantomData;
use kernel::net::page_pool::{
    Layout,
    RxFormat,
    RxRing, //
};

pub struct Format<F>(PhantomData<F>);

impl<F> RxFormat for Format<F> {
    const LAYOUT: Layout = match Layout::new(64, 2048) {
        Some(layout) => layout,
        None => panic!("the buffer does not fit into a page"),
    };
    const DONE: u64 = 1 << 0;

    fn len(status: u64) -> u16 {
        (status >> 32) as u16
    }
}

pub type Any = Format<for<'a> fn(&'a ())>;
pub type Certain = Format<fn(&'static ())>;

//~ pub fn change(ring: RxRing<Any>) -> RxRing<Any> {
pub fn change(ring: RxRing<Any>) -> RxRing<Certain> {
    ring
}
