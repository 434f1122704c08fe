//@ error: E0277 cannot be sent between threads safely
// SPDX-License-Identifier: GPL-2.0

//! An object is `Send` only if its value is.

#![forbid(unsafe_code)]

use kernel::{
    slab::Object,
    types::NotThreadSafe, //
};

fn send<T: Send>(_: T) {}

pub fn elsewhere(object: Object<'_, NotThreadSafe>) {
    //~ drop(object);
    send(object);
}
