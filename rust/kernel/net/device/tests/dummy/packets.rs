// SPDX-License-Identifier: GPL-2.0

//! Packets in the poll function of the test driver.

use super::{
    super::{
        super::ops,
        fixture, //
    },
    log::{
        Event,
        Log,
        Reception, //
    },
    Dummy, //
};

use crate::{
    bindings,
    interrupt::local_interrupt_disable,
    net::{
        device::Device,
        napi::Poll,
        skbuff::{
            SkBuff,
            UniqueSkBuff, //
        }, //
    },
    prelude::*,
    sync::atomic::Relaxed, //
};

#[cfg(CONFIG_PAGE_POOL)]
use crate::net::rx_list::{
    Protocol,
    RxList, //
};

/// Receives a packet that was transmitted.
pub(super) fn receive(log: &Log, cx: &Poll<'_>, skb: SkBuff) {
    let how = log.reception.load(Relaxed);

    let Ok(skb) = skb.into_unique(GFP_ATOMIC) else {
        return;
    };
    if how == Reception::One as u32 || how == Reception::List as u32 {
        return receive_as(how == Reception::List as u32, true, cx, skb);
    }

    let off = local_interrupt_disable();
    // Past GRO.
    receive_as(how == Reception::ListMasked as u32, false, cx, skb);
    // SAFETY: There are no requirements.
    if !unsafe { bindings::irqs_disabled() } {
        log.unmasked.fetch_add(1, Relaxed);
    }
    drop(off);
}

/// Receives it on a list, or by itself.
fn receive_as(list: bool, merged: bool, cx: &Poll<'_>, skb: UniqueSkBuff) {
    #[cfg(CONFIG_PAGE_POOL)]
    if list {
        let protocol = if merged {
            Protocol::Other
        } else {
            Protocol::Udp
        };
        return RxList::new(cx).push(skb, protocol);
    }
    #[cfg(not(CONFIG_PAGE_POOL))]
    let _ = (list, merged);
    cx.receive(skb);
}

/// Transmits packets from within a poll function, as the stack of a router does.
pub(super) fn forward(log: &Log, dev: &Device) {
    for _ in 0..log.forward.xchg(0, Relaxed) {
        if let Ok(skb) = fixture::packet(GFP_ATOMIC) {
            fixture::transmit(skb, dev.as_raw());
        }
    }
    if log.take_queue.xchg(0, Relaxed) != 0 {
        // SAFETY: The device is registered.
        let inner = unsafe { ops::inner::<Dummy>(dev.as_raw()) };
        let mut tx = None;
        inner.exchange_tx(0, &mut tx);
        log.add(Event::QueueTaken);
        // And gives it back.
        inner.exchange_tx(0, &mut tx);
    }
}
