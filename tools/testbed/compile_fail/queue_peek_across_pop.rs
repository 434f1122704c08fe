//@ error: E0502 cannot borrow `*rx` as mutable
// SPDX-License-Identifier: GPL-2.0

//! A peeked element stays in the queue as long as it is borrowed.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::alf_queue::Consumer, //
};

pub fn peek(rx: &mut Consumer<KBox<u32>>) -> u32 {
    let value = rx.peek();
    //~
    drop(rx.pop());
    value.map_or(0, |value| **value)
}
