//@ error: E0277 cannot be sent between threads safely
// SPDX-License-Identifier: GPL-2.0

//! Another CPU processes the elements that a CPU adds, so they must be `Send`.

#![forbid(unsafe_code)]

use core::cell::Cell;
use kernel::{
    impl_has_llist_node,
    net::combiner::Combiner,
    prelude::*,
    sync::llist::Node, //
};

pub struct Local {
    pub number: *mut Cell<u32>,
    node: Node,
}

impl_has_llist_node! {
    impl HasNode for Local { self.node }
}

fn share<T: Sync>(_: &T) {}

pub fn list(list: &Combiner<KBox<Local>>) {
    //~ share(&list.is_busy());
    share(list);
}
