// SPDX-License-Identifier: GPL-2.0

//! Offloads of a transmitted packet (datasheet 7.2.3.2.3 and 7.2.4): the context and the fields of
//! the data descriptors that they need.

use kernel::{
    net::{
        device::{
            Feature,
            Features, //
        },
        skbuff::{
            DropReason,
            Segmentation,
            SkBuff, //
        }, //
    },
    prelude::*, //
};

use crate::desc::{
    TxContext,
    TxTemplate, //
};

/// Length of a VLAN tag.
const VLAN_LEN: u32 = 4;

/// The offloads of a packet.
pub(crate) struct Offload {
    /// The context descriptor, if one is needed.
    pub(crate) context: Option<TxContext>,
    /// The fields that all data descriptors have.
    pub(crate) template: TxTemplate,
    /// Packets on the wire and their bytes that come in addition, if the packet is split.
    pub(crate) more: Option<More>,
}

/// The difference between a packet that is split and the packets on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct More {
    /// Bytes in the packet that is split.
    pub(crate) len: u32,
    pub(crate) packets: u32,
    pub(crate) bytes: u32,
}

impl More {
    /// For a packet of `len` bytes.
    fn of(len: u32, segmentation: &Segmentation) -> Self {
        let data = len.saturating_sub(segmentation.headers);
        let packets = data.div_ceil(u32::from(segmentation.size).max(1));
        let packets = packets.saturating_sub(1);

        Self {
            len,
            packets,
            bytes: packets.saturating_mul(segmentation.headers),
        }
    }
}

impl Offload {
    /// Prepares a packet for its offloads.
    ///
    /// # Errors
    ///
    /// The packet has been dropped: there is no memory, or the NIC cannot do what is asked for.
    /// [`features`] keeps the stack from that.
    pub(crate) fn prepare(skb: SkBuff) -> Result<(SkBuff, Self)> {
        let (skb, offload) = if skb.gso_size().is_some() {
            let (skb, segmentation) = skb.seed_segments()?;
            let offload = Self::segmented(skb.len(), &segmentation);

            (skb, offload)
        } else {
            let offload = Self::whole(&skb);

            (skb, offload)
        };

        match offload.and_then(|offload| offload.with_vlan_of(&skb)) {
            Some(offload) => Ok((skb, offload)),
            None => refuse(skb),
        }
    }

    /// Adds the VLAN tag that is to be inserted, if any.
    fn with_vlan_of(mut self, skb: &SkBuff) -> Option<Self> {
        if let Some(tag) = skb.vlan_tag() {
            let context = match self.context {
                Some(context) => context,
                None => TxContext::untouched(skb.network_offset())?,
            };
            self.context = Some(context.with_vlan(tag));
            self.template = self.template.with_vlan();
            if let Some(more) = &mut self.more {
                more.bytes = more
                    .bytes
                    .saturating_add(more.packets.saturating_mul(VLAN_LEN));
            }
        }
        Some(self)
    }

    fn segmented(len: u32, segmentation: &Segmentation) -> Option<Self> {
        Some(Self {
            context: Some(TxContext::segmented(segmentation)?),
            template: TxTemplate::segmented(len, segmentation)?,
            more: Some(More::of(len, segmentation)),
        })
    }

    fn whole(skb: &SkBuff) -> Option<Self> {
        let context = match skb.partial_checksum() {
            Some(checksum) => Some(TxContext::new(checksum, skb.network_offset())?),
            None => None,
        };

        Some(Self {
            context,
            template: TxTemplate::new(skb.len(), context.is_some())?,
            more: None,
        })
    }
}

#[cold]
fn refuse(skb: SkBuff) -> Result<(SkBuff, Offload)> {
    skb.drop_with(DropReason::NotSpecified);
    Err(EOPNOTSUPP)
}

/// Returns those of `features` that the NIC has for a packet.
#[inline(always)]
pub(crate) fn features(skb: &SkBuff, features: Features) -> Features {
    // Each packet comes here; a forwarded one asks for nothing. One that is to be split asks for a
    // checksum, too.
    if skb.partial_checksum().is_none() && skb.vlan_tag().is_none() {
        return features;
    }
    features_asked(skb, features)
}

/// [`features`] of a packet that asks for something.
#[inline(never)]
fn features_asked(skb: &SkBuff, features: Features) -> Features {
    let Some(checksum) = skb.partial_checksum() else {
        if skb.vlan_tag().is_some() && TxContext::untouched(skb.network_offset()).is_none() {
            return features.without(Feature::VlanInsert);
        }
        return features;
    };

    if TxContext::new(checksum, skb.network_offset()).is_none() {
        return features
            .without(Feature::ChecksumAny)
            .without(Feature::ChecksumSctp)
            .without(Feature::VlanInsert)
            .without_segmentation();
    }
    if skb.gso_size().is_some() && !is_segmentable(skb) {
        return features.without_segmentation();
    }
    features
}

fn is_segmentable(skb: &SkBuff) -> bool {
    skb.segmentation()
        .is_some_and(|segmentation| Offload::segmented(skb.len(), &segmentation).is_some())
}

#[kunit_tests(ixgbe_rust_offload)]
mod tests {
    use super::*;
    use kernel::net::skbuff::SegmentedProtocol;

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
        let more = |data: u32| {
            let More { packets, bytes, .. } = More::of(54 + data, &segmentation);
            (packets, bytes)
        };

        assert_eq!(more(0), (0, 0));
        assert_eq!(more(1), (0, 0));
        assert_eq!(more(1000), (0, 0));
        assert_eq!(more(1001), (1, 54));
        assert_eq!(more(64_000), (63, 63 * 54));
    }
}
