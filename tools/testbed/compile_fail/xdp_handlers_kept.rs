//@ error: E0521 borrowed data escapes outside of associated function
// SPDX-License-Identifier: GPL-2.0

//! The handlers of a module belong to it: nobody can keep or forget them, so they are detached when
//! it is unloaded.

#![forbid(unsafe_code)]

use kernel::{
    net::device::xdp::{
        HandlerModule,
        Handlers, //
    },
    prelude::*, //
};

kernel::module_xdp_handlers! {
    type: Keeper,
    name: "keeper",
    license: "GPL",
}

struct Keeper;

fn keep(handlers: &'static mut Handlers) {
    core::mem::forget(handlers);
}

impl HandlerModule for Keeper {
    fn init(handlers: &mut Handlers) -> Result {
        let _ = keep;
        //~ let _ = handlers;
        keep(handlers);
        Ok(())
    }
}
