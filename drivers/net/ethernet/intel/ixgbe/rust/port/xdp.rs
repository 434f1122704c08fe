// SPDX-License-Identifier: GPL-2.0

//! Programs that see received frames.

use kernel::net::{
    device::xdp::XdpOps,
    xdp::Attachment, //
};

use crate::rx::MAX_XDP_MTU;

use super::{
    Port,
    PortDriver, //
};

impl XdpOps for PortDriver {
    const MAX_MTU: u32 = MAX_XDP_MTU;

    fn attachment<'a>(port: &'a Port<'_>) -> &'a Attachment {
        &port.program
    }
}
