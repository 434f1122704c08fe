//@ error: E0599 the method `as_ref` exists for reference
// SPDX-License-Identifier: GPL-2.0

//! A network device that is renamed frees its name, which nobody can keep, then.

#![forbid(unsafe_code)]

use kernel::{
    device,
    net,
    prelude::*, //
};

pub fn name<'a>(dev: &'a net::device::Device, parent: &'a device::Device) -> &'a CStr {
    let _ = (dev, parent);
    //~ parent.name()
    dev.as_ref().name()
}
