//@ error: E0621 explicit lifetime required in the type of `pdev`
// SPDX-License-Identifier: GPL-2.0

//! Permission to register a network device ends with the callback of the bus.

#![forbid(unsafe_code)]

use core::marker::PhantomData;
use kernel::{
    device::{
        Bound,
        Core, //
    },
    pci, //
};

pub struct Data<'bound> {
    //~ pub pdev: &'bound pci::Device<Bound>,
    pub pdev: &'bound pci::Device<Core<'bound>>,
    pub bound: PhantomData<Bound>,
}

pub fn probe<'bound>(pdev: &'bound pci::Device<Core<'_>>) -> Data<'bound> {
    Data {
        pdev,
        bound: PhantomData,
    }
}
