// SPDX-License-Identifier: GPL-2.0

//! Receive side scaling (datasheet 7.1.2.8): a hash spreads frames over the queues, and keeps those
//! of a flow on one queue.

use core::num::NonZero;

use kernel::{
    io::register::Array,
    net::device::{
        self,
        ethtool::rxfh::{
            FlowType,
            RxfhFields, //
        }, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use crate::{
    mmio::Bar0,
    regs::*, //
};

/// Number of entries of the redirection table.
pub(crate) const ENTRIES: usize = 128;

/// Number of bytes of the key.
pub(crate) const KEY_LEN: usize = 40;

/// Value of `mrqe` in [`MRQC`] for RSS only.
const MRQE_RSS: u32 = 1;

/// The fields of a frame that are hashed.
///
/// The addresses always are. The ports of UDP are not by default: only the first fragment of a
/// datagram has ports, so fragments of one flow could arrive on different queues, out of order.
pub(crate) struct Hashing {
    tcp_ipv4_ports: Atomic<bool>,
    tcp_ipv6_ports: Atomic<bool>,
    udp_ipv4_ports: Atomic<bool>,
    udp_ipv6_ports: Atomic<bool>,
}

impl Hashing {
    /// The default: the ports of TCP are hashed, those of UDP are not.
    pub(crate) fn new() -> Self {
        Self {
            tcp_ipv4_ports: Atomic::new(true),
            tcp_ipv6_ports: Atomic::new(true),
            udp_ipv4_ports: Atomic::new(false),
            udp_ipv6_ports: Atomic::new(false),
        }
    }

    /// Returns the setting for the ports of `flow`, if it has any.
    fn ports_of(&self, flow: FlowType) -> Option<&Atomic<bool>> {
        match flow {
            FlowType::TcpIpv4 => Some(&self.tcp_ipv4_ports),
            FlowType::TcpIpv6 => Some(&self.tcp_ipv6_ports),
            FlowType::UdpIpv4 => Some(&self.udp_ipv4_ports),
            FlowType::UdpIpv6 => Some(&self.udp_ipv6_ports),
            FlowType::OtherIpv4 | FlowType::OtherIpv6 => None,
        }
    }

    /// Returns the fields that are hashed in packets of `flow`.
    pub(crate) fn get(&self, flow: FlowType) -> RxfhFields {
        if self.ports_of(flow).is_some_and(|ports| ports.load(Relaxed)) {
            RxfhFields::AddressesAndPorts
        } else {
            RxfhFields::Addresses
        }
    }

    /// Changes the fields that are hashed. [`Self::apply`] passes this to the NIC.
    pub(crate) fn set(&self, flow: FlowType, fields: RxfhFields) -> Result {
        match self.ports_of(flow) {
            Some(ports) => ports.store(fields == RxfhFields::AddressesAndPorts, Relaxed),
            None if fields == self.get(flow) => (),
            None => return Err(EINVAL),
        }
        Ok(())
    }

    /// Returns the command for this many queue pairs. A single pair needs no RSS.
    fn command(&self, pairs: u16) -> MRQC {
        if pairs < 2 {
            return MRQC::zeroed();
        }
        MRQC::zeroed()
            .with_const_mrqe::<MRQE_RSS>()
            .with_ipv4(true)
            .with_ipv4_tcp(self.tcp_ipv4_ports.load(Relaxed))
            .with_ipv4_udp(self.udp_ipv4_ports.load(Relaxed))
            .with_ipv6(true)
            .with_ipv6_tcp(self.tcp_ipv6_ports.load(Relaxed))
            .with_ipv6_udp(self.udp_ipv6_ports.load(Relaxed))
    }

    /// Passes the setting to the NIC.
    pub(crate) fn apply(&self, bar: &Bar0<'_>, pairs: u16) {
        bar.write_reg(self.command(pairs));
    }
}

/// Whether only some fragments of a datagram are hashed by what is hashed of `flow`.
pub(crate) fn separates_fragments(flow: FlowType, fields: RxfhFields) -> bool {
    matches!(flow, FlowType::UdpIpv4 | FlowType::UdpIpv6) && fields == RxfhFields::AddressesAndPorts
}

/// Returns the queue pair of entry `index` of the redirection table. An entry has 4 bits.
fn entry(index: usize, pairs: u16) -> u8 {
    let pairs = NonZero::new(usize::from(pairs.min(16))).unwrap_or(NonZero::<usize>::MIN);
    // CAST: The remainder is less than 16.
    (index % pairs) as u8
}

/// The redirection table and the key.
pub(crate) struct Spread {
    table: [u8; ENTRIES],
    key: [u8; KEY_LEN],
}

impl Spread {
    /// The default: all pairs have equal shares. The key is that of all devices.
    pub(crate) fn new() -> Self {
        Self {
            table: [0; ENTRIES],
            key: device::rss_key(),
        }
    }

    /// Gives each of this many pairs an equal share.
    pub(crate) fn even(&mut self, pairs: u16) {
        for (index, pair) in self.table.iter_mut().enumerate() {
            *pair = entry(index, pairs);
        }
    }

    /// Returns whether each of this many pairs has an equal share, as without users.
    pub(crate) fn is_even(&self, pairs: u16) -> bool {
        self.table
            .iter()
            .enumerate()
            .all(|(index, pair)| *pair == entry(index, pairs))
    }

    /// Returns the pair of each entry.
    pub(crate) fn table(&self) -> &[u8] {
        &self.table
    }

    /// Returns the key.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Sets the pair of each entry. An entry has 4 bits.
    pub(crate) fn set_table(&mut self, pairs: &[u32]) -> Result {
        if pairs.iter().any(|pair| *pair >= 16) {
            return Err(EINVAL);
        }
        for (to, from) in self.table.iter_mut().zip(pairs) {
            // CAST: It has just been checked.
            *to = *from as u8;
        }
        Ok(())
    }

    /// Sets the key.
    pub(crate) fn set_key(&mut self, key: &[u8]) {
        for (to, from) in self.key.iter_mut().zip(key) {
            *to = *from;
        }
    }

    /// Passes table and key to the NIC.
    pub(crate) fn apply(&self, bar: &Bar0<'_>) {
        let (words, _) = self.key.as_chunks::<4>();
        for (index, word) in words.iter().enumerate() {
            if let Some(rssrk) = RSSRK::try_at(index) {
                bar.write(rssrk, u32::from_le_bytes(*word).into());
            }
        }

        let (registers, _) = self.table.as_chunks::<4>();
        for (index, entries) in registers.iter().enumerate() {
            if let Some(reta) = RETA::try_at(index) {
                bar.write(reta, u32::from_le_bytes(*entries).into());
            }
        }
    }
}

#[kunit_tests(ixgbe_rust_rss)]
mod tests {
    use super::*;

    /// Returns the number of table entries that select `pair`.
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
        // Out-of-range numbers still select an existing queue.
        assert_eq!(share(0, 0), 128);
        assert!((0..ENTRIES).all(|index| entry(index, u16::MAX) < 16));
    }

    #[test]
    fn table_and_key_can_be_set() {
        let mut spread = Spread::new();

        spread.even(3);
        assert!(spread.table().starts_with(&[0, 1, 2, 0]));
        assert!(spread.is_even(3) && !spread.is_even(2));
        assert_eq!(spread.set_table(&[15; ENTRIES]), Ok(()));
        assert!(spread.table().iter().all(|pair| *pair == 15));
        // An entry that the NIC does not have changes nothing.
        assert_eq!(spread.set_table(&[0, 16]), Err(EINVAL));
        assert_eq!(spread.table()[0], 15);
        spread.set_key(&[7; KEY_LEN]);
        assert_eq!(spread.key(), [7; KEY_LEN]);
    }

    #[test]
    fn hashed_fields() {
        let hashing = Hashing::new();
        let ports = RxfhFields::AddressesAndPorts;

        assert_eq!(hashing.command(1).into_raw(), 0);
        assert_eq!(hashing.command(2).into_raw(), 0x0033_0001);
        assert_eq!(hashing.set(FlowType::UdpIpv4, ports), Ok(()));
        assert_eq!(hashing.command(2).into_raw(), 0x0073_0001);
        assert_eq!(hashing.set(FlowType::UdpIpv6, ports), Ok(()));
        assert_eq!(hashing.command(16).into_raw(), 0x00f3_0001);
        assert_eq!(
            hashing.set(FlowType::UdpIpv4, RxfhFields::Addresses),
            Ok(())
        );
        assert_eq!(hashing.command(16).into_raw(), 0x00b3_0001);

        assert_eq!(hashing.get(FlowType::TcpIpv4), ports);
        assert_eq!(
            hashing.set(FlowType::TcpIpv4, RxfhFields::Addresses),
            Ok(())
        );
        assert_eq!(hashing.command(16).into_raw(), 0x00b2_0001);
        assert_eq!(hashing.get(FlowType::TcpIpv4), RxfhFields::Addresses);
        assert_eq!(
            hashing.set(FlowType::TcpIpv6, RxfhFields::Addresses),
            Ok(())
        );
        assert_eq!(hashing.command(16).into_raw(), 0x0092_0001);
        assert!(separates_fragments(FlowType::UdpIpv6, ports));
        assert!(!separates_fragments(FlowType::TcpIpv4, ports));
        // Other packets have none that the NIC knows.
        assert_eq!(hashing.get(FlowType::OtherIpv4), RxfhFields::Addresses);
        assert_eq!(hashing.set(FlowType::OtherIpv4, ports), Err(EINVAL));
    }
}
