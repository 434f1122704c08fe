//@ error: E0382 use of moved value: `element`
// SPDX-License-Identifier: GPL-2.0

//! An element belongs to the list that it was added to.

#![forbid(unsafe_code)]

use kernel::{
    prelude::*,
    sync::llist::{
        HasNode,
        LockLessList, //
    }, //
};

pub fn twice<T: HasNode>(list: &LockLessList<KBox<T>>, element: KBox<T>) -> bool {
    //~ let _ = list;
    list.push(element);
    list.push(element)
}
