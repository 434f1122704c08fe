// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::net::xdp`.

/// The fields of a packet that were hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hashed {
    Ipv4,
    Ipv4Tcp,
    Ipv4Udp,
    Ipv6,
    Ipv6Tcp,
    Ipv6Udp,
}
