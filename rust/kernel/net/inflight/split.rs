// SPDX-License-Identifier: GPL-2.0

//! Packets that the NIC splits, for counters.

use crate::net::skbuff::Segmentation;

/// Length of the tag of a VLAN.
const VLAN_LEN: u16 = 4;

/// The packets on the wire that come of a packet which the NIC splits, besides the first one. See
/// [`TxProducer::submit_split`](super::TxProducer::submit_split).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Their number.
    pub(super) more: u16,
    /// Length of the headers that each of them has.
    pub(super) headers: u16,
}

impl Split {
    /// For a packet of `len` bytes.
    pub fn new(len: u32, segmentation: &Segmentation) -> Self {
        let data = len.saturating_sub(segmentation.headers);
        let segments = data.div_ceil(u32::from(segmentation.size).max(1));

        Self {
            more: segments.saturating_sub(1).try_into().unwrap_or(u16::MAX),
            headers: segmentation.headers.try_into().unwrap_or(u16::MAX),
        }
    }

    /// Each packet gets a tag, too.
    pub fn with_tag(self) -> Self {
        Self {
            headers: self.headers.saturating_add(VLAN_LEN),
            ..self
        }
    }
}

/// Packets that the NIC has split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SplitSum {
    /// Number of packets.
    pub packets: usize,
    /// Number of bytes in them.
    pub bytes: usize,
    /// Number of packets on the wire that have come of it, without the first one of each.
    pub more_packets: usize,
    /// Number of bytes in the headers of those.
    pub more_bytes: usize,
}

impl SplitSum {
    /// Adds a packet of `len` bytes.
    pub(super) fn add(&mut self, len: u32, split: Split) {
        let more = usize::from(split.more);

        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(len as usize);
        self.more_packets = self.more_packets.wrapping_add(more);
        self.more_bytes = self
            .more_bytes
            .wrapping_add(more.wrapping_mul(usize::from(split.headers)));
    }
}

#[macros::kunit_tests(rust_net_inflight_split)]
mod tests {
    use super::*;
    use crate::net::skbuff::SegmentedProtocol;

    #[test]
    fn packets_on_the_wire() {
        let segmentation = Segmentation {
            protocol: SegmentedProtocol::Tcp,
            ipv4: true,
            size: 1000,
            network: 14,
            network_len: 20,
            transport: 34,
            headers: 54,
        };
        let more = |data: u32| Split::new(54 + data, &segmentation).more;

        assert_eq!([0, 1, 1000, 1001, 64_000].map(more), [0, 0, 0, 1, 63]);
        assert_eq!(more(u32::MAX - 54), u16::MAX);

        let mut sum = SplitSum::default();
        sum.add(3054, Split::new(3054, &segmentation).with_tag());
        sum.add(1054, Split::new(1054, &segmentation));
        let expected = SplitSum {
            packets: 2,
            bytes: 4108,
            more_packets: 2,
            more_bytes: 2 * 58,
        };
        assert_eq!(sum, expected);
    }
}
