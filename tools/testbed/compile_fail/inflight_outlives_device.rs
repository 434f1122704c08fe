//@ error: none lifetime may not live long enough
// SPDX-License-Identifier: GPL-2.0

//! Mappings end before the device is unbound.

#![forbid(unsafe_code)]

use kernel::{
    device::{
        Bound,
        Device, //
    },
    net::{
        inflight::{
            self,
            Limits,
            TxConsumer,
            TxProducer, //
        },
        napi::Napi,
        queue::RingSize, //
    },
    prelude::*, //
};

pub fn open<'a>(
    dev: &'a Device<Bound>,
    napi: &Napi,
    limits: Limits,
    //~ ) -> Result<(TxProducer<'a>, TxConsumer<'a>)> {
) -> Result<(TxProducer<'static>, TxConsumer<'static>)> {
    inflight::pair(dev, napi, RingSize::of::<512>(), limits)
}
