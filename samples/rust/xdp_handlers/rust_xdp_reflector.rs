// SPDX-License-Identifier: GPL-2.0

//! Rust sample: sends UDP frames to a port back to where they came from, before they become packets
//! of the stack. All others pass.
//!
//!     insmod rust_xdp_reflector.ko device=$(cat /sys/class/net/eth0/ifindex) port=7

#![forbid(unsafe_code)]

use kernel::{
    net::{
        device::xdp::{
            HandlerModule,
            Handlers, //
        },
        xdp::{
            Action,
            Handler, //
        }, //
    },
    prelude::*,
    sync::Arc, //
};

const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const UDP: u8 = 17;

/// The handler.
struct Reflector {
    /// As in a header.
    port: [u8; 2],
}

// [reflector]
impl Reflector {
    /// Swaps the addresses of a frame to the port. Returns [`None`] if it is another one.
    fn reflect(&self, frame: &mut [u8]) -> Option<()> {
        let (ethernet, packet) = frame.split_first_chunk_mut::<ETHERNET>()?;
        let (ip, rest) = packet.split_first_chunk_mut::<20>()?;
        let [to @ .., a, b, c, d, e, f, high, low] = ethernet;
        let from = [*a, *b, *c, *d, *e, *f];

        if [*high, *low] != IPV4 || ip[0] >> 4 != 4 || ip[9] != UDP {
            return None;
        }
        // A fragment may have no port.
        if u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff != 0 {
            return None;
        }
        let options = (usize::from(ip[0] & 15) * 4).checked_sub(ip.len())?;
        if rest.get(options + 2..options + 4)? != self.port {
            return None;
        }

        [*a, *b, *c, *d, *e, *f] = *to;
        *to = from;
        // Both checksums stay: the sums over the addresses are the same.
        let (_, addresses) = ip.split_last_chunk_mut::<8>()?;
        *addresses = u64::from_ne_bytes(*addresses).rotate_left(32).to_ne_bytes();
        Some(())
    }
}

impl Handler for Reflector {
    fn handle<'a>(&'a self, frame: &mut [u8]) -> Action<'a> {
        match self.reflect(frame) {
            Some(()) => Action::SendBack,
            None => Action::Pass,
        }
    }
}

impl HandlerModule for Reflector {
    fn init(handlers: &mut Handlers) -> Result {
        let device = handlers.port(module_parameters::device.value())?;
        let reflector = Self {
            port: module_parameters::port.value().to_be_bytes(),
        };

        handlers.attach(&device, Arc::new(reflector, GFP_KERNEL)?)
    }
}
// [/reflector]

kernel::module_xdp_handlers! {
    type: Reflector,
    name: "rust_xdp_reflector",
    authors: ["The skbulk authors"],
    description: "Rust sample that reflects UDP without a program",
    license: "GPL v2",
    params: {
        device: u32 {
            default: 0,
            description: "Index of the network device",
        },
        port: u16 {
            default: 7,
            description: "UDP port",
        },
    },
}
