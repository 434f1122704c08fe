//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A node is part of its element; a pointer to a node is not a node.

#![forbid(unsafe_code)]

use kernel::{
    impl_has_llist_node,
    prelude::*,
    sync::llist::{
        LockLessList,
        Node, //
    }, //
};

pub struct Element {
    //~ node: Node,
    node: KBox<Node>,
}

impl_has_llist_node! {
    impl HasNode for Element { self.node }
}

pub fn add(list: &LockLessList<KBox<Element>>, element: KBox<Element>) -> bool {
    list.push(element)
}
