// SPDX-License-Identifier: GPL-2.0

//! Receive side scaling (datasheet 7.1.2.8): frames are spread over the queues by a hash, so that
//! those of a flow stay together.

use kernel::{
    io::{
        register::Array,
        Io, //
    },
    net::device::{
        self,
        Flow,
        FlowHash, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use crate::{
    hw::Bar0,
    regs::*, //
};

/// Number of entries of the redirection table.
const ENTRIES: usize = 128;

/// Number of bytes of the key.
const KEY_LEN: usize = 40;

/// [`MRQC`]'s value for RSS without anything else.
const MRQE_RSS: u32 = 1;

/// What of a frame is hashed.
///
/// Ports of TCP are, those of UDP are not, unless the user wants it: only the first fragment of a
/// datagram has ports, so that its fragments may be received out of order.
pub(crate) struct Hashing {
    udp_ipv4_ports: Atomic<bool>,
    udp_ipv6_ports: Atomic<bool>,
}

impl Hashing {
    /// What everybody can live with.
    pub(crate) fn new() -> Self {
        Self {
            udp_ipv4_ports: Atomic::new(false),
            udp_ipv6_ports: Atomic::new(false),
        }
    }

    /// Whether the ports of UDP are hashed, if `flow` is that.
    fn ports_of(&self, flow: Flow) -> Option<&Atomic<bool>> {
        match flow {
            Flow::UdpIpv4 => Some(&self.udp_ipv4_ports),
            Flow::UdpIpv6 => Some(&self.udp_ipv6_ports),
            Flow::TcpIpv4 | Flow::TcpIpv6 | Flow::OtherIpv4 | Flow::OtherIpv6 => None,
        }
    }

    /// What is hashed of the packets of `flow`.
    pub(crate) fn get(&self, flow: Flow) -> FlowHash {
        let ports = match (self.ports_of(flow), flow) {
            (Some(ports), _) => ports.load(Relaxed),
            (None, flow) => matches!(flow, Flow::TcpIpv4 | Flow::TcpIpv6),
        };

        if ports {
            FlowHash::AddressesAndPorts
        } else {
            FlowHash::Addresses
        }
    }

    /// Changes what is hashed. The card has to be told.
    pub(crate) fn set(&self, flow: Flow, hash: FlowHash) -> Result {
        match self.ports_of(flow) {
            Some(ports) => ports.store(hash == FlowHash::AddressesAndPorts, Relaxed),
            None if hash == self.get(flow) => (),
            None => return Err(EINVAL),
        }
        Ok(())
    }

    /// The command for that many queue pairs. One receives everything as it is.
    fn command(&self, pairs: u16) -> MRQC {
        if pairs < 2 {
            return MRQC::zeroed();
        }
        MRQC::zeroed()
            .with_const_mrqe::<MRQE_RSS>()
            .with_ipv4(true)
            .with_ipv4_tcp(true)
            .with_ipv4_udp(self.udp_ipv4_ports.load(Relaxed))
            .with_ipv6(true)
            .with_ipv6_tcp(true)
            .with_ipv6_udp(self.udp_ipv6_ports.load(Relaxed))
    }

    /// Tells the card what to hash.
    pub(crate) fn apply(&self, bar: &Bar0<'_>, pairs: u16) {
        bar.write_reg(self.command(pairs));
    }
}

/// The queue pair of entry `index` of the redirection table.
///
/// 16 is the limit of what an entry can hold.
fn entry(index: usize, pairs: u16) -> u8 {
    // CAST: The remainder is less than 16.
    (index % usize::from(pairs.clamp(1, 16))) as u8
}

/// Four entries of the redirection table, the first of which is `4 * register`.
fn entries(register: usize, pairs: u16) -> RETA {
    u32::from_le_bytes([0, 1, 2, 3].map(|byte| entry(4 * register + byte, pairs))).into()
}

/// Spreads frames over that many queue pairs.
pub(crate) fn configure(bar: &Bar0<'_>, hashing: &Hashing, pairs: u16) {
    let key: [u8; KEY_LEN] = device::rss_key();
    let (words, _) = key.as_chunks::<4>();
    for (index, word) in words.iter().enumerate() {
        if let Some(rssrk) = RSSRK::try_at(index) {
            bar.write(rssrk, u32::from_le_bytes(*word).into());
        }
    }

    for register in 0..ENTRIES / 4 {
        if let Some(reta) = RETA::try_at(register) {
            bar.write(reta, entries(register, pairs));
        }
    }
    hashing.apply(bar, pairs);
}

#[kunit_tests(ixgbe_rust_rss)]
mod tests {
    use super::*;

    /// How many entries of the table lead to `pair`.
    fn share(pair: u8, pairs: u16) -> usize {
        (0..ENTRIES)
            .filter(|index| entry(*index, pairs) == pair)
            .count()
    }

    #[test]
    fn queues_have_equal_shares() {
        assert_eq!(share(0, 1), 128);
        for pairs in 1..=16 {
            let shares = (0..pairs).map(|pair| share(pair as u8, pairs));
            assert_eq!(shares.clone().sum::<usize>(), ENTRIES);
            assert!(shares.clone().max() <= shares.min().map(|least| least + 1));
        }
        // Whatever somebody asks for, there is a queue.
        assert_eq!(share(0, 0), 128);
        assert!((0..ENTRIES).all(|index| entry(index, u16::MAX) < 16));
    }

    #[test]
    fn the_table_is_in_the_order_of_bytes() {
        assert_eq!(entries(0, 16).into_raw(), 0x0302_0100);
        assert_eq!(entries(3, 16).into_raw(), 0x0f0e_0d0c);
        assert_eq!(entries(31, 2).into_raw(), 0x0100_0100);
        assert_eq!(entries(1, 3).into_raw(), 0x0100_0201);
    }

    #[test]
    fn what_is_hashed() {
        let hashing = Hashing::new();
        let ports = FlowHash::AddressesAndPorts;

        assert_eq!(hashing.command(1).into_raw(), 0);
        assert_eq!(hashing.command(2).into_raw(), 0x0033_0001);
        assert_eq!(hashing.set(Flow::UdpIpv4, ports), Ok(()));
        assert_eq!(hashing.command(2).into_raw(), 0x0073_0001);
        assert_eq!(hashing.set(Flow::UdpIpv6, ports), Ok(()));
        assert_eq!(hashing.command(16).into_raw(), 0x00f3_0001);
        assert_eq!(hashing.set(Flow::UdpIpv4, FlowHash::Addresses), Ok(()));
        assert_eq!(hashing.command(16).into_raw(), 0x00b3_0001);

        // The ports of TCP cannot be left out.
        assert_eq!(hashing.get(Flow::TcpIpv4), ports);
        assert_eq!(hashing.set(Flow::TcpIpv4, ports), Ok(()));
        assert_eq!(hashing.set(Flow::TcpIpv4, FlowHash::Addresses), Err(EINVAL));
        assert_eq!(hashing.set(Flow::OtherIpv4, ports), Err(EINVAL));
    }
}
