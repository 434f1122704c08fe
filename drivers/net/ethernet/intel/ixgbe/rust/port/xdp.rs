// SPDX-License-Identifier: GPL-2.0

//! Programs that see received frames, and frames that others redirect to the port.

use kernel::{
    io::register::Array,
    net::{
        device::xdp::{
            XdpOps,
            XdpXmitOps, //
        },
        xdp::{
            Attachment,
            XdpTxCounts, //
        }, //
    },
    prelude::*, //
};

use crate::{
    regs::queue::*,
    rx::{
        Xdp,
        MAX_XDP_MTU, //
    }, //
};

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

impl XdpXmitOps for PortDriver {
    type Format = Xdp;

    #[inline]
    fn xdp_doorbell<'bound>(port: Pin<&Port<'bound>>, vector: u16, tail: usize) {
        let Some(pair) = Pair::new(vector) else {
            return;
        };

        if let Some(counters) = port.stats.xdp(vector) {
            counters.tx_xdp_doorbells.add(1);
        }
        // The register write is ordered after the writes to the descriptors.
        port.bar
            .write(TDT::at(pair.xdp_xmit().at()), (tail as u32).into());
    }

    #[inline]
    fn xdp_count<'bound>(port: Pin<&Port<'bound>>, vector: u16, counts: XdpTxCounts) {
        if let Some(counters) = port.stats.xdp(vector) {
            counters.tx_xdp_packets.add(counts.packets);
            counters.tx_xdp_bytes.add(counts.bytes);
            counters.tx_xdp_refused.add(counts.refused);
            counters.tx_xdp_lost.add(counts.lost);
        }
    }
}
