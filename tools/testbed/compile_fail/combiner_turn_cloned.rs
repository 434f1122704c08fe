//@ error: E0599 no method named `clone` found
// SPDX-License-Identifier: GPL-2.0

//! There is one combiner at a time.

#![forbid(unsafe_code)]

use kernel::{
    net::combiner::Turn,
    sync::llist::Link, //
};

pub fn two<P: Link>(turn: Turn<'_, P>) -> usize {
    //~ let mut second = turn;
    let mut second = turn.clone();
    second.take().map_or(0, |batch| batch.len())
}
