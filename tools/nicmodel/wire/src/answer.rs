// SPDX-License-Identifier: GPL-2.0
//! The fabric's answers to requests.

use serde::Serialize;

/// A run of the generator, when it has drained.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Frames sent into port `from`.
    pub sent: u32,
    /// Frames that left port `to` as they should.
    pub forwarded: u32,
    /// Frames that did not come back, by place.
    pub lost: Losses,
    /// Frames that came back more than once.
    pub duplicated: u64,
    /// Frames that came back changed.
    pub damaged: u64,
    /// The same by the first thing that was wrong.
    pub damage: Damages,
    /// Frames that left after a later one of the same flow.
    pub reordered: u64,
    /// Frames that are not the run's.
    pub other: u64,
    /// From the first frame sent to the last one back.
    pub seconds: f64,
    /// Forwarded frames per second.
    pub pps: f64,
    /// The run ended before all frames had been sent.
    pub timed_out: bool,
    /// Frames per second sent.
    pub offered_pps: f64,
    /// Frames per second sent while the port was full; null if it never was.
    pub taken_pps: Option<f64>,
    /// Times from port to port, if the request asked for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ns: Option<Latency>,
}

/// Where frames were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// The packet buffer was full because the ring had no descriptor.
    pub no_rx_descriptor: u32,
    /// Receiver or queue disabled.
    pub rx_disabled: u32,
    /// Refused by address, VLAN or length.
    pub filtered: u32,
    /// The link was down.
    pub link_down: u32,
    /// Received by the guest, and not seen again.
    pub in_guest: u32,
}

/// Damaged frames by their first difference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Damages {
    /// Time to live.
    pub ttl: u64,
    /// Checksum of the IPv4 header.
    pub ip_checksum: u64,
    /// An Ethernet address.
    pub mac: u64,
    /// Anything else.
    pub payload: u64,
    /// Length.
    pub length: u64,
}

/// Times in nanoseconds; null without any frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Latency {
    /// Half of the frames took at most this.
    pub median: Option<u64>,
    /// 99 of 100 took at most this.
    pub p99: Option<u64>,
}
