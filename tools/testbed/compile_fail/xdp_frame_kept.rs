//@ error: none lifetime may not live long enough
// SPDX-License-Identifier: GPL-2.0

//! A frame that passes goes to the stack in the poll function that received it, or back.

#![forbid(unsafe_code)]

use kernel::net::{
    napi::Poll,
    xdp::{
        Attachment,
        Verdict,
        XdpBuff,
        XdpFormat,
        XdpRing, //
    }, //
};

pub struct Poller<'a, F: XdpFormat> {
    ring: XdpRing<F>,
    passed: Option<XdpBuff<'a, F>>,
}

pub fn poll<F: XdpFormat>(poller: &mut Poller<'_, F>, program: &Attachment, cx: &Poll<'_>) {
    let Some(program) = program.program(cx) else {
        return;
    };
    let Ok(mut ring) = poller.ring.poll(cx) else {
        return;
    };
    let buff = ring.next().and_then(|done| done.buff);
    if let Some(Verdict::Pass(buff)) = buff.map(|buff| ring.run(program, buff, [0; 2])) {
        //~ let _ = (&poller.passed, buff);
        poller.passed = Some(buff);
    }
}
