//@ error: none lifetime may not live long enough
// SPDX-License-Identifier: GPL-2.0

//! Mappings end before the device is unbound.

#![forbid(unsafe_code)]

use kernel::{
    device::{
        Bound,
        Device, //
    },
    net::inflight::{
        self,
        Limits,
        TxConsumer,
        TxProducer, //
    },
    prelude::*, //
};

pub fn open(
    dev: &Device<Bound>,
    limits: Limits,
//~ ) -> Result<(TxProducer<'_>, TxConsumer<'_>)> {
) -> Result<(TxProducer<'static>, TxConsumer<'static>)> {
    inflight::pair(dev, 512, limits)
}
