// SPDX-License-Identifier: GPL-2.0

//! Features that users switch, or that a packet cannot have, and the filter of VLANs.

use kernel::{
    net::{
        device::{
            features::{
                FeaturesChange,
                FeaturesOps, //
            },
            features_check::FeaturesCheckOps,
            vlan_filter::VlanFilterOps,
            Device,
            Feature,
            Features,
            Locks,
            Rtnl, //
        },
        skbuff::SkBuff, //
    },
    netdev_notice,
    prelude::*, //
};

use crate::{
    moderation,
    offload,
    vlan, //
};

use super::{
    Port,
    PortDriver, //
};

impl FeaturesOps for PortDriver {
    fn set_features<'bound>(
        port: Pin<&Port<'bound>>,
        netdev: &Device,
        features: Features,
        _locks: &mut Locks<'bound>,
    ) -> Result<FeaturesChange> {
        let before = netdev.features();
        let changes = |feature: Feature| before.contains(feature) != features.contains(feature);
        // Rings are of another sort; the flow director can be set up before reception only; frames
        // of the stack that are still to be sent would come back, and others would leave.
        if changes(Feature::Lro) || changes(Feature::Ntuple) || changes(Feature::Loopback) {
            return Ok(FeaturesChange::Restart);
        }
        vlan::filter(&port.bar, features.contains(Feature::VlanFilter))?;
        // A frame does not tell whether it had a tag, so the queues are told between two frames.
        if changes(Feature::VlanStrip) {
            return Ok(FeaturesChange::RestartRx);
        }
        // The others are read for each packet or poll.
        Ok(FeaturesChange::Live)
    }

    fn fix_features<'bound>(
        port: Pin<&Port<'bound>>,
        netdev: &Device,
        wanted: Features,
    ) -> Features {
        if !wanted.contains(Feature::Lro) || port.moderation.allows_lro() {
            return wanted;
        }
        netdev_notice!(
            netdev,
            "LRO requires rx-usecs of at least {}\n",
            moderation::MIN_LRO_USECS
        );
        wanted.without(Feature::Lro)
    }
}

impl FeaturesCheckOps for PortDriver {
    #[inline]
    fn features_check<'bound>(
        _port: Pin<&Port<'bound>>,
        skb: &SkBuff,
        features: Features,
    ) -> Features {
        offload::features(skb, features)
    }
}

impl VlanFilterOps for PortDriver {
    fn set_vlan<'bound>(
        port: Pin<&Port<'bound>>,
        id: u16,
        member: bool,
        live: bool,
        rtnl: &mut Rtnl,
    ) -> Result {
        port.vlans
            .get_mut(rtnl)
            .set(id, member, live.then_some(&port.bar))
    }
}
