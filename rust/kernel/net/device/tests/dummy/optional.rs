// SPDX-License-Identifier: GPL-2.0

//! The optional operations of the test driver.

use super::{
    super::super::{
        ethtool::{
            rxfh::{
                FlowType,
                RxfhChange,
                RxfhFields,
                RxfhOps, //
            },
            rxnfc::{
                FlowAction,
                FlowRule,
                FlowRules,
                RxnfcOps, //
            },
            statistics::{
                Statistics,
                StatisticsOps, //
            },
            wol::{
                WakePackets,
                WolOps, //
            }, //
        },
        features::{
            FeaturesChange,
            FeaturesOps, //
        },
        features_check::FeaturesCheckOps,
        ExtAck,
        Feature,
        Features,
        Locks,
        OpsLocked, //
    },
    log::Event,
    Data,
    Dummy,
    WAKE, //
};

use crate::{
    bindings,
    net::{
        device::Device,
        skbuff::SkBuff, //
    },
    prelude::*,
    sync::atomic::Relaxed, //
};

impl FeaturesOps for Dummy {
    fn set_features<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        _features: Features,
        _locks: &mut Locks<'bound>,
    ) -> Result<FeaturesChange> {
        data.log.add(Event::Features);
        if data.log.restart_features.load(Relaxed) != 0 {
            Ok(FeaturesChange::Restart)
        } else {
            Ok(FeaturesChange::Live)
        }
    }

    fn fix_features<'bound>(
        _data: Pin<&Data<'bound>>,
        _dev: &Device,
        wanted: Features,
    ) -> Features {
        wanted
    }
}

impl FeaturesCheckOps for Dummy {
    fn features_check<'bound>(
        data: Pin<&Data<'bound>>,
        skb: &SkBuff,
        features: Features,
    ) -> Features {
        data.log.features_checks.fetch_add(1, Relaxed);
        // It cannot do anything for packets of this length, and claims another feature.
        if skb.len() == 64 {
            features.without(Feature::ChecksumAny).with(Feature::RxHash)
        } else {
            features
        }
    }
}

impl RxfhOps for Dummy {
    const RXFH_INDIR_SIZE: usize = 0;
    const RXFH_KEY_SIZE: usize = 0;

    fn rxfh<'bound>(
        _data: Pin<&Data<'bound>>,
        _table: Option<&mut [u32]>,
        _key: Option<&mut [u8]>,
        _lock: &mut OpsLocked<'bound>,
    ) {
    }

    fn set_rxfh<'bound>(
        _data: Pin<&Data<'bound>>,
        _dev: &Device,
        _change: RxfhChange<'_>,
        _lock: &mut OpsLocked<'bound>,
        _extack: &ExtAck<'_>,
    ) -> Result {
        Err(EOPNOTSUPP)
    }

    fn rxfh_fields<'bound>(
        data: Pin<&Data<'bound>>,
        flow: FlowType,
        _lock: &mut OpsLocked<'bound>,
    ) -> RxfhFields {
        if flow == FlowType::UdpIpv4 && data.log.udp_ports.load(Relaxed) != 0 {
            RxfhFields::AddressesAndPorts
        } else {
            RxfhFields::Addresses
        }
    }

    fn set_rxfh_fields<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        flow: FlowType,
        fields: RxfhFields,
        _lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result {
        if flow != FlowType::UdpIpv4 {
            return Err(extack.refuse(EBUSY, c"busy"));
        }
        let ports = u32::from(fields == RxfhFields::AddressesAndPorts);
        data.log.udp_ports.store(ports, Relaxed);
        Ok(())
    }
}

impl StatisticsOps for Dummy {
    fn statistics<'bound>(
        data: Pin<&Data<'bound>>,
        dev: &Device,
        statistics: &mut Statistics<'_>,
        _lock: &mut OpsLocked<'bound>,
    ) {
        // The core has begun to register it.
        //
        // SAFETY: The device is valid.
        let is_initialized = unsafe {
            bindings::kobject::state_initialized_raw(&raw const (*dev.as_raw()).dev.kobj)
        };
        if is_initialized == 0 {
            data.log.uninitialized.fetch_add(1, Relaxed);
        }

        for index in 0..data.log.statistics.load(Relaxed) {
            statistics.add(fmt!("statistic_{index}"), u64::from(index) + 1);
        }
    }
}

impl WolOps for Dummy {
    fn arm_wake_up<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        packets: WakePackets,
        _locks: &mut Locks<'bound>,
    ) {
        let armed = WAKE.iter().filter(|one| packets.contains(**one));

        data.log.add(Event::Armed);
        data.log
            .armed
            .store(armed.fold(0, |bits, one| bits | *one as u32), Relaxed);
    }
}

impl RxnfcOps for Dummy {
    const FLOW_RULES: u32 = 8;

    fn flow_rules<'a, 'bound: 'a>(data: &'a Data<'bound>) -> &'a FlowRules<'bound> {
        &data.rules
    }

    fn insert_flow_rule<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        rule: &FlowRule,
        lock: &mut OpsLocked<'bound>,
    ) -> Result {
        // The new one is not among them.
        if data
            .rules
            .iter(lock)
            .any(|other| other.location == rule.location)
        {
            return Err(EEXIST);
        }
        if data.log.refuse.load(Relaxed) == queue_of(rule.action) {
            return Err(EBUSY);
        }
        data.log.rules.fetch_add(1 << rule.location, Relaxed);
        Ok(())
    }

    fn remove_flow_rule<'bound>(
        data: Pin<&Data<'bound>>,
        _dev: &Device,
        rule: &FlowRule,
        _lock: &mut OpsLocked<'bound>,
    ) -> Result {
        data.log.rules.fetch_sub(1 << rule.location, Relaxed);
        Ok(())
    }
}

/// The queue of a rule, counted from one.
fn queue_of(action: FlowAction) -> u32 {
    match action {
        FlowAction::Drop => 0,
        FlowAction::Queue(queue) => u32::from(queue) + 1,
    }
}
