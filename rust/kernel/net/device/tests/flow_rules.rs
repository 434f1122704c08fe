// SPDX-License-Identifier: GPL-2.0

//! Tests of rules that direct packets.

use super::{
    super::{
        Feature,
        Features, //
    },
    fixture::Fixture, //
};

use crate::{
    bindings,
    prelude::*,
    sync::atomic::Relaxed, //
};

const RULES: Features = Features::NONE.with(Feature::Ntuple);
const ROOM: usize = 8;

/// A rule for UDP to port 9, which goes to a queue.
fn rule(location: u32, queue: u64) -> bindings::ethtool_rxnfc {
    let mut info = bindings::ethtool_rxnfc {
        cmd: bindings::ETHTOOL_SRXCLSRLINS,
        ..Default::default()
    };

    info.fs.flow_type = bindings::UDP_V4_FLOW;
    info.fs.h_u.udp_ip4_spec.pdst = 9u16.to_be();
    info.fs.m_u.udp_ip4_spec.pdst = u16::MAX;
    info.fs.location = location;
    info.fs.ring_cookie = queue;
    info
}

impl Fixture {
    fn with_rules() -> Result<Self> {
        let device = Self::new(2)?;

        if device.want(RULES) & RULES.0 == 0 {
            return Err(EOPNOTSUPP);
        }
        Ok(device)
    }

    fn set_rules(&self, info: &mut bindings::ethtool_rxnfc) -> c_int {
        self.locked(|dev| {
            let set = self.ethtool_ops().set_rxnfc?;
            // SAFETY: The device is registered and RTNL is held.
            Some(unsafe { set(dev, info) })
        })
        .unwrap_or(0)
    }

    fn get_rules(&self, info: &mut bindings::ethtool_rxnfc, locations: &mut [u32]) -> c_int {
        self.locked(|dev| {
            let get = self.ethtool_ops().get_rxnfc?;
            // SAFETY: As above. There is room for as many locations as `info` says.
            Some(unsafe { get(dev, info, locations.as_mut_ptr()) })
        })
        .unwrap_or(0)
    }

    fn insert(&self, location: u32, queue: u64) -> Result<u32, c_int> {
        let mut info = rule(location, queue);

        match self.set_rules(&mut info) {
            0 => Ok(info.fs.location),
            error => Err(error),
        }
    }

    fn delete(&self, location: u32) -> c_int {
        let mut info = rule(location, 0);

        info.cmd = bindings::ETHTOOL_SRXCLSRLDEL;
        self.set_rules(&mut info)
    }

    /// The queue of a rule.
    fn queue_of_rule(&self, location: u32) -> Result<u64, c_int> {
        let mut info = rule(location, 99);

        info.cmd = bindings::ETHTOOL_GRXCLSRULE;
        match self.get_rules(&mut info, &mut []) {
            0 => Ok(info.fs.ring_cookie),
            error => Err(error),
        }
    }

    /// The locations of the rules, as many as there are.
    fn locations(&self) -> Result<([u32; ROOM], u32), c_int> {
        let mut info = rule(0, 0);
        let mut locations = [99; ROOM];

        info.cmd = bindings::ETHTOOL_GRXCLSRLALL;
        info.__bindgen_anon_1.rule_cnt = ROOM as u32;
        match self.get_rules(&mut info, &mut locations) {
            // SAFETY: It was filled in.
            0 => Ok((locations, unsafe { info.__bindgen_anon_1.rule_cnt })),
            error => Err(error),
        }
    }
}

#[macros::kunit_tests(rust_net_flow_rules)]
mod cases {
    use super::*;

    #[test]
    fn rules_are_listed_in_their_order() -> Result {
        let device = Fixture::with_rules()?;

        for (location, queue) in [(5, 1), (0, 0), (7, u64::MAX)] {
            assert_eq!(device.insert(location, queue), Ok(location));
        }
        let (locations, count) = device.locations().map_err(|_| EIO)?;
        assert_eq!(
            (locations[..3] == [0, 5, 7], locations[3], count),
            (true, 99, 3)
        );
        assert_eq!(device.queue_of_rule(5), Ok(1));
        assert_eq!(device.queue_of_rule(7), Ok(u64::MAX));
        assert_eq!(device.queue_of_rule(6), Err(ENOENT.to_errno()));
        assert_eq!(device.log.rules.load(Relaxed), 1 << 0 | 1 << 5 | 1 << 7);

        // There is not room for all of them.
        let mut info = rule(0, 0);
        info.cmd = bindings::ETHTOOL_GRXCLSRLALL;
        info.__bindgen_anon_1.rule_cnt = 2;
        assert_eq!(
            device.get_rules(&mut info, &mut [0; 2]),
            EMSGSIZE.to_errno()
        );

        assert_eq!(device.delete(5), 0);
        assert_eq!(device.delete(5), ENOENT.to_errno());
        assert_eq!(device.log.rules.load(Relaxed), 1 << 0 | 1 << 7);
        Ok(())
    }

    #[test]
    fn a_rule_takes_the_place_of_another() -> Result {
        let device = Fixture::with_rules()?;

        assert_eq!(device.insert(3, 0), Ok(3));
        assert_eq!(device.insert(3, 1), Ok(3));
        assert_eq!(
            (device.queue_of_rule(3), device.log.rules.load(Relaxed)),
            (Ok(1), 1 << 3)
        );

        // One that the driver refuses does not.
        device.log.refuse.store(1, Relaxed);
        assert_eq!(device.insert(3, 0), Err(EBUSY.to_errno()));
        assert_eq!(
            (device.queue_of_rule(3), device.log.rules.load(Relaxed)),
            (Ok(1), 1 << 3)
        );
        assert_eq!(device.insert(4, 0), Err(EBUSY.to_errno()));
        assert_eq!(device.log.rules.load(Relaxed), 1 << 3);
        Ok(())
    }

    #[test]
    fn a_location_is_found_if_there_is_one() -> Result {
        let device = Fixture::with_rules()?;

        assert_eq!(device.insert(7, 0), Ok(7));
        for location in (0..7).rev() {
            assert_eq!(device.insert(bindings::RX_CLS_LOC_ANY, 0), Ok(location));
        }
        let full = Err(ENOSPC.to_errno());
        assert_eq!(device.insert(bindings::RX_CLS_LOC_ANY, 0), full);
        assert_eq!(device.delete(2), 0);
        assert_eq!(device.insert(bindings::RX_CLS_LOC_ANY, 0), Ok(2));
        Ok(())
    }

    #[test]
    fn what_is_not_there_is_refused() -> Result {
        let device = Fixture::with_rules()?;
        let refused = Err(EINVAL.to_errno());

        assert_eq!(device.insert(8, 0), refused);
        assert_eq!(device.insert(bindings::RX_CLS_LOC_FIRST, 0), refused);
        // Queues, and one of a virtual function.
        assert_eq!(device.insert(0, 2), refused);
        assert_eq!(device.insert(0, 1 << 32), refused);
        // To wake the machine.
        assert_eq!(device.insert(0, u64::MAX - 1), Err(EOPNOTSUPP.to_errno()));
        assert_eq!(device.log.rules.load(Relaxed), 0);

        // Without the feature, none is inserted, and those that there are can go.
        assert_eq!(device.insert(0, 0), Ok(0));
        assert_eq!(device.want(Features::NONE) & RULES.0, 0);
        assert_eq!(device.insert(1, 0), Err(EOPNOTSUPP.to_errno()));
        assert_eq!((device.queue_of_rule(0), device.delete(0)), (Ok(0), 0));
        Ok(())
    }
}
