// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::net::rx_list`.

/// The transport protocol of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Udp,
    Other,
}
