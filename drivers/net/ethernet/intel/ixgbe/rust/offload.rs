// SPDX-License-Identifier: GPL-2.0

//! Offloads of a transmitted packet (datasheet 7.2.3.2.3 and 7.2.4): the context and the fields of
//! the data descriptors that they need.

use kernel::{
    net::{
        device::{
            Feature,
            Features, //
        },
        inflight::Split,
        skbuff::{
            DropReason,
            PartialChecksum,
            Segmentation,
            SkBuff, //
        }, //
    },
    prelude::*, //
};

use crate::desc::{
    TxContext,
    TxTemplate,
    TX_LIMITS, //
};

/// The most context descriptors of a packet.
const CONTEXTS: usize = 1;

/// The length of a VLAN tag.
const TAG_LEN: u32 = 4;

/// The offloads of a packet.
pub(crate) struct Offload {
    /// The context descriptor, if one is needed.
    pub(crate) context: Option<TxContext>,
    /// The fields that all data descriptors have.
    pub(crate) template: TxTemplate,
    /// The packets on the wire, if it is split.
    pub(crate) split: Option<Split>,
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
            Some(mut offload) => {
                if skb.has_fcs() {
                    offload.template = offload.template.without_fcs();
                }
                Ok((skb, offload))
            }
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
            self.split = self.split.map(Split::with_tag);
        }
        Some(self)
    }

    fn segmented(len: u32, segmentation: &Segmentation) -> Option<Self> {
        Some(Self {
            context: Some(TxContext::segmented(segmentation)?),
            template: TxTemplate::segmented(len, segmentation)?,
            split: Some(Split::new(len, segmentation)),
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
            split: None,
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
    if !TX_LIMITS.takes(skb, CONTEXTS) {
        // The stack makes others of it, whose data it copies.
        return features
            .without(Feature::ScatterGather)
            .without_segmentation();
    }
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
    // A tag that the NIC does not insert gets into the packet after this.
    let tag_len = if skb.vlan_tag().is_some() { TAG_LEN } else { 0 };
    let checksum = PartialChecksum {
        start: checksum.start.saturating_add(tag_len),
        ..checksum
    };

    if TxContext::new(checksum, skb.network_offset().saturating_add(tag_len)).is_none() {
        return features
            .without(Feature::ChecksumAny)
            .without(Feature::ChecksumSctp)
            .without(Feature::VlanInsert)
            .without_segmentation();
    }
    if skb.gso_size().is_some() && !is_segmentable(skb, tag_len) {
        return features.without_segmentation();
    }
    features
}

fn is_segmentable(skb: &SkBuff, tag_len: u32) -> bool {
    skb.segmentation().is_some_and(|segmentation| {
        let segmentation = behind(tag_len, segmentation);

        Offload::segmented(skb.len().saturating_add(tag_len), &segmentation).is_some()
    })
}

/// The segmentation of a packet with so many bytes more in front of its network header.
fn behind(len: u32, segmentation: Segmentation) -> Segmentation {
    Segmentation {
        network: segmentation.network.saturating_add(len),
        transport: segmentation.transport.saturating_add(len),
        headers: segmentation.headers.saturating_add(len),
        ..segmentation
    }
}

#[kunit_tests(ixgbe_rust_offload)]
mod tests {
    use super::*;

    use kernel::net::skbuff::SegmentedProtocol;

    #[test]
    fn there_is_room_for_a_tag() {
        let fits = |network, headers| {
            let segmentation = Segmentation {
                protocol: SegmentedProtocol::Tcp,
                ipv4: true,
                size: 1448,
                network,
                network_len: 20,
                transport: headers - 20,
                headers,
            };

            [0, TAG_LEN]
                .map(|len| Offload::segmented(65536 + len, &behind(len, segmentation)).is_some())
        };

        assert_eq!(fits(14, 54), [true; 2]);
        // Labels of MPLS.
        assert_eq!(fits(122, 162), [true; 2]);
        assert_eq!(fits(126, 166), [true, false]);
        assert_eq!(fits(130, 170), [false; 2]);
        // The headers of a tunnel.
        assert_eq!(fits(14, 232), [true; 2]);
        assert_eq!(fits(14, 236), [true, false]);
    }
}
