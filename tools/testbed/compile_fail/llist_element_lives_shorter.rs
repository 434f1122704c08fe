//@ error: none lifetime may not live long enough
// SPDX-License-Identifier: GPL-2.0

//! An element that borrows cannot be added to a list of elements with a longer lifetime.

#![forbid(unsafe_code)]

use kernel::{
    impl_has_llist_node,
    prelude::*,
    sync::llist::{
        LockLessList,
        Node, //
    }, //
};

pub struct Borrows<'a> {
    pub number: &'a u32,
    node: Node,
}

impl_has_llist_node! {
    impl{'a} HasNode for Borrows<'a> { self.node }
}

pub fn add<'a>(list: &LockLessList<KBox<Borrows<'static>>>, element: KBox<Borrows<'a>>) -> bool {
    //~ let _ = (list, element); let list = &LockLessList::<KBox<Borrows<'a>>>::new();
    let list: &LockLessList<KBox<Borrows<'a>>> = list;
    //~ list.is_empty()
    list.push(element)
}
