// SPDX-License-Identifier: GPL-2.0

//! Rules of users, which become filters of the flow director.

use kernel::{
    net::device::{
        ethtool::rxnfc::{
            FlowRule,
            FlowRules,
            RxnfcOps, //
        },
        Device,
        Feature,
        OpsLocked, //
    },
    netdev_notice,
    prelude::*, //
};

use crate::{
    flow_director::{
        self,
        Filter, //
    },
    port::{
        Port,
        PortDriver, //
    }, //
};

/// Returns whether the flow director has rules.
fn directs(dev: &Device) -> bool {
    dev.is_running() && dev.features().contains(Feature::Ntuple)
}

impl RxnfcOps for PortDriver {
    const FLOW_RULES: u32 = flow_director::FILTERS;

    fn flow_rules<'a, 'bound: 'a>(port: &'a Port<'bound>) -> &'a FlowRules<'bound> {
        &port.flow_rules
    }

    fn insert_flow_rule<'bound>(
        port: Pin<&Port<'bound>>,
        dev: &Device,
        rule: &FlowRule,
        lock: &mut OpsLocked<'bound>,
    ) -> Result {
        let refuse = |reason| {
            netdev_notice!(dev, "flow rule {}: {}\n", rule.location, reason);
            EINVAL
        };
        let filter = Filter::new(&rule.packets).map_err(refuse)?;
        let mut is_first = true;

        for other in port.flow_rules.iter(lock) {
            let other = Filter::new(&other.packets).map_err(refuse)?;
            filter.goes_with(&other).map_err(refuse)?;
            is_first = false;
        }
        // If the device is down, `start()` passes it to the NIC.
        if directs(dev) {
            if is_first {
                filter.set_mask(&port.bar);
            }
            filter.add(&port.bar, rule.location, rule.action)?;
        }
        Ok(())
    }

    fn remove_flow_rule<'bound>(
        port: Pin<&Port<'bound>>,
        dev: &Device,
        rule: &FlowRule,
        _lock: &mut OpsLocked<'bound>,
    ) -> Result {
        if directs(dev) {
            let filter = Filter::new(&rule.packets).map_err(|_| EINVAL)?;
            filter.remove(&port.bar, rule.location)?;
        }
        Ok(())
    }
}
