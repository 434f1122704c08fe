//@ error: E0277 Link` is not satisfied
// SPDX-License-Identifier: GPL-2.0

//! A packet that may have other owners cannot be put on a list: it has one place for a link.

#![forbid(unsafe_code)]

use kernel::net::{
    combiner::Combiner,
    skbuff, //
};

//~ pub fn list() -> Combiner<skbuff::UnsharedSkBuff> {
pub fn list() -> Combiner<skbuff::SkBuff> {
    Combiner::new()
}
