//@ error: E0004 non-exhaustive patterns
// SPDX-License-Identifier: GPL-2.0

//! A driver has to do something about each verdict: the NIC is told of frames that leave by it.

#![forbid(unsafe_code)]

use kernel::net::{
    rx_list::{
        Protocol,
        RxList,
        RxOffloads, //
    },
    xdp::{
        Verdict,
        XdpFormat, //
    }, //
};

pub fn finish<F: XdpFormat>(verdict: Verdict<'_, F>, list: &mut RxList<'_>) {
    match verdict {
        Verdict::Pass(buff) => {
            list.push_xdp(buff, Protocol::Other, false, RxOffloads::default());
        }
        Verdict::Dropped | Verdict::Aborted => (),
        //~ Verdict::Redirected | Verdict::Transmitted(_) => (),
        Verdict::Redirected => (),
    }
}
