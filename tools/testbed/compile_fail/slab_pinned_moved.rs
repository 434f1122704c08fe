//@ error: E0277 cannot be unpinned
// SPDX-License-Identifier: GPL-2.0

//! A value cannot be moved out of a pinned object.

#![forbid(unsafe_code)]

use core::marker::PhantomPinned;
use kernel::{
    prelude::*,
    slab::{
        Object,
        PinnedBatch, //
    }, //
};

//~ pub fn moved<'c>(batch: &mut PinnedBatch<'c, PhantomPinned, 8>) -> Option<Pin<Object<'c, PhantomPinned>>> {
pub fn moved(batch: &mut PinnedBatch<'_, PhantomPinned, 8>) -> Option<PhantomPinned> {
    //~ batch.pop()
    batch.pop().map(|object| Object::into_inner(Pin::into_inner(object)))
}
