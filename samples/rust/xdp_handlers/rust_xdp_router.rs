// SPDX-License-Identifier: GPL-2.0

//! Rust sample: routes IPv4 between two devices, from one's receive ring to the other's transmit
//! ring. What it has no route for goes to the stack.
//!
//!     insmod rust_xdp_router.ko first=2 second=3
//!     echo 10.0.1.0/24 1 02:00:00:00:01:02 > /sys/kernel/debug/rust_xdp_router/routes
//!
//! A line has a prefix, a device (0 or 1) and its neighbour; or a prefix and "-", for the stack.
//! They are written once, so no frame waits for a lock. Reading counts frames sent, and dropped.

#![forbid(unsafe_code)]

use kernel::{
    debugfs::{
        Dir,
        File,
        Reader,
        Writer, //
    },
    fmt,
    net::{
        device::xdp::{
            HandlerModule,
            Handlers, //
        },
        xdp::{
            Action,
            Handler,
            Port, //
        }, //
    },
    prelude::*,
    sync::{
        Arc,
        SetOnce, //
    },
    uaccess::UserSliceReader, //
};

use core::convert::Infallible;

/// A neighbour, and the device that it is reached by.
struct Hop {
    to: [u8; 6],
    from: [u8; 6],
    port: Arc<Port>,
}

/// A route, to a neighbour or to the stack.
struct Route {
    prefix: u32,
    mask: u32,
    hop: Option<Hop>,
}

/// The state that both handlers share.
struct Router {
    ports: [Arc<Port>; 2],
    /// The longest prefixes first.
    routes: SetOnce<KVec<Route>>,
}

// [route]
/// The handler of a device.
struct Leg {
    address: [u8; 6],
    router: Arc<File<Router>>,
}

impl Leg {
    /// Gets a frame ready for the next hop. Returns [`None`] if it is the stack's.
    fn route(&self, frame: &mut [u8]) -> Option<&Port> {
        let (ethernet, packet) = frame.split_first_chunk_mut::<14>()?;
        let ip = packet.first_chunk_mut::<20>()?;
        let [head, .., ttl, _, sum_high, sum_low, _, _, _, _, a, b, c, d] = ip;

        // Options are the stack's, and so are packets whose sender has to be told of their end.
        if ethernet[..6] != self.address || ethernet[12..] != [8, 0] || *head != 0x45 || *ttl < 2 {
            return None;
        }
        let address = u32::from_be_bytes([*a, *b, *c, *d]);
        let mut routes = self.router.routes.as_ref()?.iter();
        let route = routes.find(|one| (one.prefix ^ address) & one.mask == 0)?;
        let hop = route.hop.as_ref()?;

        // One less in the word with the TTL is one more in the checksum, which is not all ones.
        *ttl -= 1;
        let sum = u32::from(u16::from_be_bytes([*sum_high, *sum_low])) + 0x100;
        // CAST: The carry comes back in as 1.
        [*sum_high, *sum_low] = ((sum + u32::from(sum >= 0xffff)) as u16).to_be_bytes();
        let (to, rest) = ethernet.split_first_chunk_mut::<6>()?;
        *to = hop.to;
        *rest.first_chunk_mut::<6>()? = hop.from;
        Some(&hop.port)
    }
}

impl Handler for Leg {
    fn handle<'a>(&'a self, frame: &mut [u8]) -> Action<'a> {
        self.route(frame).map_or(Action::Pass, Action::Forward)
    }
}
// [/route]

/// Reads `N` numbers with something between them.
fn numbers<const N: usize>(text: &str, between: char, radix: u32) -> Result<[u8; N]> {
    let mut found = [0; N];
    let mut parts = text.split(between);

    for place in &mut found {
        let part = parts.next().ok_or(EINVAL)?;
        *place = u8::from_str_radix(part, radix).map_err(|_| EINVAL)?;
    }
    parts.next().map_or(Ok(found), |_| Err(EINVAL))
}

impl Router {
    fn parse(&self, line: &str) -> Result<Route> {
        let mut words = line.split_whitespace();
        let net = words.next().ok_or(EINVAL)?;
        let (prefix, len) = net.split_once('/').ok_or(EINVAL)?;
        let hop = match (words.next().ok_or(EINVAL)?, words.next()) {
            ("-", None) => None,
            (number, Some(to)) => {
                let number: usize = number.parse().map_err(|_| EINVAL)?;
                let port = self.ports.get(number).ok_or(ENODEV)?.clone();
                let (to, from) = (numbers(to, ':', 16)?, port.mac_address().ok_or(ENODEV)?);
                Some(Hop { to, from, port })
            }
            _ => return Err(EINVAL),
        };
        let len: u32 = len.parse().map_err(|_| EINVAL)?;
        let host_bits = 32u32.checked_sub(len).ok_or(EINVAL)?;
        // All of them, if the prefix is empty.
        let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
        let prefix = u32::from_be_bytes(numbers(prefix, '.', 10)?);

        Ok(Route { prefix, mask, hop })
    }
}

impl Reader for Router {
    fn read_from_slice(&self, reader: &mut UserSliceReader) -> Result {
        let (mut text, mut routes) = (KVec::new(), KVec::new());

        reader.clone_reader().read_all(&mut text, GFP_KERNEL)?;
        for line in core::str::from_utf8(&text).map_err(|_| EINVAL)?.lines() {
            routes.push(self.parse(line)?, GFP_KERNEL)?;
        }
        routes.sort_unstable_by_key(|route: &Route| !route.mask);
        self.routes.populate(routes).then_some(()).ok_or(EBUSY)
    }
}

impl Writer for Router {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, port) in self.ports.iter().enumerate() {
            writeln!(f, "{number} {} {}", port.forwarded(), port.dropped())?;
        }
        Ok(())
    }
}

impl HandlerModule for Router {
    fn init(handlers: &mut Handlers) -> Result {
        let ports = [
            handlers.port(module_parameters::first.value())?,
            handlers.port(module_parameters::second.value())?,
        ];
        let router = Router {
            ports: ports.clone(),
            routes: SetOnce::new(),
        };
        let dir = Dir::new(c"rust_xdp_router");
        let file = dir.read_write_file::<Router, Infallible>(c"routes", router);
        let router = Arc::pin_init(file, GFP_KERNEL)?;

        for port in &ports {
            let leg = Leg {
                address: port.mac_address().ok_or(ENODEV)?,
                router: router.clone(),
            };
            handlers.attach(port, Arc::new(leg, GFP_KERNEL)?)?;
        }
        Ok(())
    }
}

kernel::module_xdp_handlers! {
    type: Router,
    name: "rust_xdp_router",
    authors: ["The skbulk authors"],
    description: "Rust sample that routes IPv4 without a program",
    license: "GPL v2",
    params: {
        first: u32 { default: 0, description: "Index of device 0", },
        second: u32 { default: 0, description: "Index of device 1", },
    },
}
