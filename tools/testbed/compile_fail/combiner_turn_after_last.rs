//@ error: E0382 borrow of moved value: `turn`
// SPDX-License-Identifier: GPL-2.0

//! A combiner that has taken the last batch has handed the role over.

#![forbid(unsafe_code)]

use kernel::{
    net::combiner::Turn,
    sync::llist::Link, //
};

pub fn work<P: Link>(mut turn: Turn<'_, P>) -> usize {
    //~ let _ = turn.take();
    let _ = turn.take_last();
    turn.take().map_or(0, |batch| batch.len())
}
