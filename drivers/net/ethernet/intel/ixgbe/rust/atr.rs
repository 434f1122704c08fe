// SPDX-License-Identifier: GPL-2.0

//! Application targeted routing (ATR): packets of a TCP connection are received by the queue pair
//! that sends for it, so that they come to the CPU of the application.
//!
//! The transmit path looks at some packets of each connection, and has the flow director direct
//! those of the opposite direction (datasheet 7.1.2.7, signature filters). A filter is nothing but
//! two hashes over the fields of a packet. It is never taken away: a connection that has moved to
//! another queue changes it, and a table that is nearly full is emptied as a whole.

use kernel::{
    device::{
        self,
        Bound, //
    },
    net::skbuff::{
        ChecksumKind,
        SkBuff, //
    },
    num::Bounded,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        rcu,
        SpinLock, //
    },
    time::Delta, //
};

use crate::{
    director_hash::{
        hash,
        BUCKET_KEY,
        SIGNATURE_KEY, //
    },
    flow_director,
    mmio::{
        self,
        Bar0, //
    },
    regs::{
        director::*,
        queue::Pair, //
    }, //
};

/// Of the TCP packets of a queue, each of this number is sampled.
const RATE: u32 = 20;

/// The table is emptied when fewer filters than this are free.
const FEW: u32 = 64;

/// The transport protocol.
const TCP: u8 = 6;
/// Where its checksum is, and its flags.
const TCP_CHECKSUM: u16 = 16;
const TCP_FLAGS: usize = 13;
const FIN: u8 = 1 << 0;
const SYN: u8 = 1 << 1;

/// Values of [`FDIRCMD`].
const ADD: u32 = 1;
const L4_TCP: u32 = 2;

/// The type of a packet in the hash: TCP over IPv4, and the bit for IPv6 in its place.
const TYPE_TCP: u32 = 2 << 16;
const TYPE_IPV6: u32 = 4 << 16;

const ETH_TYPE: usize = 12;
const ETH_TAG: usize = 14;
const VLAN: u16 = 0x8100;
const MPLS: [u16; 2] = [0x8847, 0x8848];

/// Chooses the packets of a transmit queue that are sampled.
pub(crate) struct Sampler {
    /// The packets up to the next one.
    left: u32,
}

impl Sampler {
    pub(crate) fn new() -> Self {
        Self { left: RATE }
    }

    /// Whether a TCP packet with these flags is sampled: each that opens a connection, and of the
    /// others each [`RATE`]th. One that closes it is not.
    fn takes(&mut self, flags: u8) -> bool {
        if flags & FIN != 0 {
            return false;
        }
        self.left = self.left.saturating_sub(1);
        if flags & SYN == 0 && self.left != 0 {
            return false;
        }
        self.left = RATE;
        true
    }

    /// Returns the flow of a packet that is to be sent, if it is sampled.
    ///
    /// Only packets whose checksum the NIC inserts are, as all are that a socket of this host
    /// sends; but none in a tunnel, of which the NIC sees the outer headers.
    pub(crate) fn sample(&mut self, skb: &SkBuff) -> Option<Flow> {
        let checksum = skb.partial_checksum()?;
        if checksum.offset != TCP_CHECKSUM
            || checksum.kind != ChecksumKind::Internet
            || skb.is_encapsulated()
        {
            return None;
        }

        let data = skb.data();
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        let tcp = data.get(checksum.start as usize..)?;
        if !self.takes(*tcp.get(TCP_FLAGS)?) {
            return None;
        }
        let network = data.get(skb.network_offset() as usize..checksum.start as usize)?;
        Flow::answering(data, network, tcp, skb.vlan_tag())
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The sum without carry of `count` words.
fn words(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let (words, _) = bytes.get(at..at + 4 * count)?.as_chunks::<4>();
    Some(
        words
            .iter()
            .fold(0, |sum, word| sum ^ u32::from_be_bytes(*word)),
    )
}

/// The fields of the packets of a flow that the NIC hashes, see [`hash`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    head: u32,
    body: u32,
}

impl Flow {
    /// The opposite direction of a packet that is sent: what is its source here is a destination
    /// there. The order of the addresses does not count.
    ///
    /// `tag` is the one that the NIC will insert, if any.
    fn answering(data: &[u8], network: &[u8], tcp: &[u8], tag: Option<u16>) -> Option<Self> {
        let (kind, addresses) = match *network.first()? >> 4 {
            4 if *network.get(9)? == TCP => (TYPE_TCP, words(network, 12, 2)?),
            // With extension headers, the transport header would be further on.
            6 if *network.get(6)? == TCP && network.len() == 40 => {
                (TYPE_TCP | TYPE_IPV6, words(network, 8, 8)?)
            }
            _ => return None,
        };
        // The flexible bytes are those of the type, where a tag has its own.
        let (flexible, tag) = match (tag, half(data, ETH_TYPE)?) {
            (_, labels) if MPLS.contains(&labels) => return None,
            (Some(tag), _) => (VLAN, tag),
            (None, VLAN) => (VLAN, half(data, ETH_TAG)?),
            (None, other) => (other, 0),
        };
        let upper = half(tcp, 2)? ^ flexible;

        Some(Self {
            head: kind | u32::from(tag),
            body: addresses ^ u32::from(upper) << 16 ^ u32::from(half(tcp, 0)?),
        })
    }

    /// The hashes: for the bucket, and the signature.
    fn hashes(self) -> (u32, u32) {
        (
            hash::<BUCKET_KEY>(self.head, self.body) & 0x7fff,
            hash::<SIGNATURE_KEY>(self.head, self.body) & 0x7fff,
        )
    }

    /// Directs the packets of the flow to a queue.
    ///
    /// It takes two writes, with which those of other queues must not mix: `lock` is for that. A
    /// queue that does not get it at once leaves it: a filter that is not added costs some packets
    /// the way to their CPU, as does one that gets lost. There is no answer.
    pub(crate) fn direct_to(self, bar: &Bar0<'_>, lock: &SpinLock<()>, table: &Table, pair: Pair) {
        // Users who set the redirection table want packets where that has them.
        if !table.spread_is_even.load(Relaxed) {
            return;
        }
        let Some(_guard) = lock.try_lock() else {
            return;
        };
        let (bucket, signature) = self.hashes();
        table.is_used.store(true, Relaxed);

        bar.write_reg(
            FDIRHASH::zeroed()
                .with_hash(Bounded::<u32, 15>::from_expr(bucket & 0x7fff))
                .with_soft_index(Bounded::<u32, 15>::from_expr(signature & 0x7fff)),
        );
        bar.write_reg(
            FDIRCMD::zeroed()
                .with_const_cmd::<ADD>()
                .with_filter_update(true)
                .with_const_l4type::<L4_TCP>()
                .with_ipv6(self.head & TYPE_IPV6 != 0)
                .with_last(true)
                .with_queue_en(true)
                // CAST: It is the number of a queue, less than 128.
                .with_rx_queue(Bounded::<u32, 7>::from_expr(pair.at() as u32 & 0x7f)),
        );
    }
}

/// The table of filters.
pub(crate) struct Table {
    /// Transmit functions may add filters.
    pub(crate) is_open: Atomic<bool>,
    /// One has been added since it was emptied.
    is_used: Atomic<bool>,
    /// Users have not set a redirection table of their own.
    pub(crate) spread_is_even: Atomic<bool>,
}

impl Table {
    /// That of a port which is down.
    pub(crate) fn new() -> Self {
        Self {
            is_open: Atomic::new(false),
            is_used: Atomic::new(false),
            spread_is_even: Atomic::new(true),
        }
    }

    /// Whether it has to be emptied.
    fn is_spent(&self, free: impl FnOnce() -> u32) -> bool {
        self.is_open.load(Relaxed)
            && (free() < FEW || !self.spread_is_even.load(Relaxed) && self.is_used.load(Relaxed))
    }
}

/// Empties the table if it is nearly full, or if users want packets elsewhere.
///
/// Called by the watchdog: in process context, and not while the port starts or stops.
pub(crate) fn empty_if_spent(dev: &device::Device<Bound>, bar: &Bar0<'_>, table: &Table) -> Result {
    if !table.is_spent(|| bar.read(FDIRFREE).free().get()) {
        return Ok(());
    }

    // Transmit functions run as readers of RCU. After this, none adds a filter.
    table.is_open.store(false, Relaxed);
    rcu::synchronize_rcu();
    table.is_used.store(false, Relaxed);
    mmio::poll(
        || bar.try_read(FDIRCMD),
        |r| r.cmd().get() == 0,
        Delta::from_micros(10),
        Delta::from_millis(1),
    )?;
    // The NIC begins anew only if the table is cleared by these steps before.
    bar.write_reg(FDIRFREE::zeroed());
    mmio::flush(bar);
    bar.write_reg(FDIRCMD::zeroed().with_clear(true));
    mmio::flush(bar);
    bar.write_reg(FDIRCMD::zeroed());
    mmio::flush(bar);
    bar.write_reg(FDIRHASH::zeroed());
    mmio::flush(bar);
    bar.write_reg(flow_director::table(false));
    flow_director::wait_for_table(dev, bar)?;
    table.is_open.store(true, Relaxed);
    Ok(())
}

#[kunit_tests(ixgbe_rust_atr)]
mod tests {
    use super::*;

    const ETH: usize = 14;

    /// A packet from 10.0.1.2 port 80 to 10.0.0.2 port 1234.
    fn ipv4() -> [u8; ETH + 40] {
        let mut data = [0; ETH + 40];
        data[ETH_TYPE] = 8;
        data[ETH] = 0x45;
        data[ETH + 9] = TCP;
        data[ETH + 12..ETH + 24].copy_from_slice(&[10, 0, 1, 2, 10, 0, 0, 2, 0, 80, 4, 210]);
        data
    }

    fn answering(data: &[u8], at: usize, len: usize, tag: Option<u16>) -> Option<Flow> {
        let (headers, tcp) = data.split_at_checked(at + len)?;
        Flow::answering(data, headers.get(at..)?, tcp, tag)
    }

    #[test]
    fn the_flow_is_that_of_the_answers() {
        // As the function of `ixgbe` computes the hashes of a packet of the opposite direction.
        let flow = answering(&ipv4(), ETH, 20, None);
        assert_eq!(flow.map(Flow::hashes), Some((0x4f23, 0x41e4)));
        assert_eq!(flow.map(|flow| flow.head), Some(TYPE_TCP));

        // From 2001:db8:9::2 port 50000 to 2001:db8:9::1 port 443.
        let mut data = [0; ETH + 60];
        data[ETH_TYPE..ETH + 1].copy_from_slice(&[0x86, 0xdd, 0x60]);
        data[ETH + 6] = TCP;
        for (at, last) in [(ETH + 8, 2), (ETH + 24, 1)] {
            data[at..at + 6].copy_from_slice(&[0x20, 1, 0x0d, 0xb8, 0, 9]);
            data[at + 15] = last;
        }
        data[ETH + 40..ETH + 44].copy_from_slice(&[0xc3, 0x50, 1, 0xbb]);
        let flow = answering(&data, ETH, 40, None);
        assert_eq!(flow.map(Flow::hashes), Some((0x4735, 0x7f80)));
        // An extension header.
        assert_eq!(answering(&data, ETH, 48, None), None);
    }

    #[test]
    fn a_tag_counts_wherever_it_is() {
        let data = ipv4();
        let mut tagged = [0; ETH + 44];
        tagged[ETH_TYPE..ETH + 2].copy_from_slice(&[0x81, 0, 0x60, 5]);
        tagged[ETH + 2..].copy_from_slice(&data[ETH_TYPE..]);
        let inserted = answering(&data, ETH, 20, Some(0x6005));

        assert!(inserted.is_some_and(|flow| flow.head == TYPE_TCP | 0x6005));
        assert_eq!(answering(&tagged, ETH + 4, 20, None), inserted);
        assert!(inserted != answering(&data, ETH, 20, None));
    }

    #[test]
    fn others_than_tcp_and_what_is_cut_off_are_no_flow() {
        let mut data = ipv4();
        for len in ETH..ETH + 24 {
            let network = (len - ETH).min(20);
            assert_eq!(answering(&data[..len], ETH, network, None), None);
        }
        data[ETH + 9] = 17;
        assert_eq!(answering(&data, ETH, 20, None), None);
        data[ETH + 9] = TCP;
        data[ETH] = 0x55;
        assert_eq!(answering(&data, ETH, 20, None), None);
        // A label that looks like the first word of an IP header.
        data[ETH] = 0x45;
        data[ETH_TYPE..ETH].copy_from_slice(&[0x88, 0x47]);
        for tag in [None, Some(5)] {
            assert_eq!(answering(&data, ETH, 20, tag), None);
        }
    }

    #[test]
    fn a_table_is_emptied_when_full_or_unwanted() {
        let table = Table::new();
        assert!(!table.is_spent(|| 0));

        table.is_open.store(true, Relaxed);
        assert!(table.is_spent(|| FEW - 1));
        assert!(!table.is_spent(|| FEW));
        table.is_used.store(true, Relaxed);
        assert!(!table.is_spent(|| FEW));
        table.spread_is_even.store(false, Relaxed);
        assert!(table.is_spent(|| FEW));
        // There is nothing in it.
        table.is_used.store(false, Relaxed);
        assert!(!table.is_spent(|| FEW));
    }

    #[test]
    fn openings_and_each_twentieth_packet_are_sampled() {
        const ACK: u8 = 1 << 4;
        let between = |sampler: &mut Sampler| (1..100).find(|_| sampler.takes(ACK));
        let mut sampler = Sampler::new();

        assert_eq!(between(&mut sampler), Some(20));
        assert_eq!(between(&mut sampler), Some(20));
        for _ in 0..7 {
            assert!(!sampler.takes(ACK));
        }
        // The count begins anew.
        assert!(sampler.takes(SYN));
        assert!(sampler.takes(SYN | ACK));
        assert_eq!(between(&mut sampler), Some(20));
        assert!(!sampler.takes(FIN | ACK));
        assert!(!sampler.takes(FIN | SYN));
        assert_eq!(between(&mut sampler), Some(20));
    }
}
