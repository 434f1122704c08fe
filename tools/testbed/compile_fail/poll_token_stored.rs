//@ error: E0621 explicit lifetime required in the type of `cx`
// SPDX-License-Identifier: GPL-2.0

//! The token must not outlive the call that it proves.

#![forbid(unsafe_code)]

use kernel::net::napi::Poll;

pub struct Poller<'a> {
    cx: Option<&'a Poll<'a>>,
}

pub fn poll<'a>(poller: &mut Poller<'a>, cx: &Poll<'_>) {
    //~ poller.cx = None;
    poller.cx = Some(cx);
}
