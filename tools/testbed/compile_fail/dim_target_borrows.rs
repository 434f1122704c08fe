//@ error: E0310 may not live long enough
// SPDX-License-Identifier: GPL-2.0

//! A decision is applied even if the moderation was forgotten, so its target borrows nothing.

#![forbid(unsafe_code)]

use kernel::net::dim::{
    Moderate,
    Moderation, //
};

pub struct Target<F>(F);

//~ impl<F: Fn(Moderation) + Send + Sync + 'static> Moderate for Target<F> {
impl<F: Fn(Moderation) + Send + Sync> Moderate for Target<F> {
    fn moderate(&self, moderation: Moderation) {
        (self.0)(moderation);
    }
}
