//@ error: E0515 cannot return value referencing local variable
// SPDX-License-Identifier: GPL-2.0

//! A frame waits for its port until the poll is over: that is the handler's, and not one of the
//! call.

#![forbid(unsafe_code)]

use kernel::{
    net::xdp::{
        Action,
        Handler,
        Port, //
    },
    sync::Arc, //
};

pub struct Forwarder(pub Arc<Port>);

impl Handler for Forwarder {
    fn handle<'a>(&'a self, _frame: &mut [u8]) -> Action<'a> {
        //~ let port = &self.0;
        let port = self.0.clone();
        //~ Action::Forward(port)
        Action::Forward(&port)
    }
}
