// SPDX-License-Identifier: GPL-2.0

//! Rules by which users direct received packets to queues, or drop them.

use super::super::{
    inner::Inner,
    ops_lock::OpsCell,
    prelude::*,
    Feature, //
};

use core::slice;

mod packets;

pub use self::packets::{
    FlowMatch,
    FlowPackets,
    FlowTransport,
    Masked,
    PortProtocol, //
};

/// Values of the field for the action that are not a queue.
const DROP: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;

/// The fate of the packets of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowAction {
    /// They are dropped.
    Drop,
    /// They go to this queue.
    Queue(u16),
}

impl FlowAction {
    /// The action of a request, for a device with so many queues.
    fn of(raw: u64, queues: u16) -> Result<Self> {
        match raw {
            DROP => Ok(Self::Drop),
            WAKE => Err(EOPNOTSUPP),
            // A virtual function would be in the bits above the queue.
            queue => match u16::try_from(queue) {
                Ok(queue) if queue < queues => Ok(Self::Queue(queue)),
                _ => Err(EINVAL),
            },
        }
    }
}

/// A rule: packets that match, and their fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRule {
    /// The number of the rule. Of all rules that a packet matches, the one with the least number
    /// counts.
    pub location: u32,
    /// The packets.
    pub packets: FlowMatch,
    /// Their fate.
    pub action: FlowAction,
}

/// A rule with the request that it was made of.
struct StoredRule {
    rule: FlowRule,
    spec: bindings::ethtool_rx_flow_spec,
}

/// The rules of a device, which its driver has among its data, see [`RxnfcOps::flow_rules`].
///
/// They stay when the device goes down.
pub struct FlowRules<'bound> {
    /// In the order of their locations.
    stored: OpsCell<'bound, KVVec<StoredRule>>,
}

impl<'bound> FlowRules<'bound> {
    /// None.
    pub const fn new() -> Self {
        Self {
            stored: OpsCell::new(KVVec::new()),
        }
    }

    /// The rules, the one with the least location first.
    ///
    /// In [`RxnfcOps::insert_flow_rule`], neither the new one nor one that it replaces is there.
    pub fn iter<'a>(&'a self, lock: &'a OpsLocked<'bound>) -> impl Iterator<Item = &'a FlowRule> {
        self.stored.get(lock).iter().map(|stored| &stored.rule)
    }

    /// The place of the rule with this location, or the one where it would be.
    fn find(&self, location: u32, lock: &OpsLocked<'bound>) -> Result<usize, usize> {
        self.stored
            .get(lock)
            .binary_search_by_key(&location, |stored| stored.rule.location)
    }

    /// The greatest location that is free: that of a rule which comes after all others.
    fn last_free(&self, count: u32, lock: &OpsLocked<'bound>) -> Result<u32> {
        (0..count)
            .rev()
            .find(|location| self.find(*location, lock).is_err())
            .ok_or(ENOSPC)
    }

    /// Takes a rule out.
    fn take(&self, place: usize, lock: &mut OpsLocked<'bound>) -> Result<StoredRule> {
        self.stored.get_mut(lock).remove(place).map_err(|_| ENOENT)
    }

    /// Puts a rule in, for which there is room.
    fn put(&self, stored: StoredRule, lock: &mut OpsLocked<'bound>) -> Result {
        let (Ok(place) | Err(place)) = self.find(stored.rule.location, lock);

        self.stored
            .get_mut(lock)
            .insert_within_capacity(place, stored)
            .map_err(|_| ENOMEM)
    }
}

impl Default for FlowRules<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// Inserts a rule. Returns its location.
fn insert<T: RxnfcOps>(
    inner: &Inner<T>,
    mut spec: bindings::ethtool_rx_flow_spec,
    queues: u16,
    lock: &mut OpsLocked<'static>,
) -> Result<u32> {
    let (data, dev) = (inner.data(), inner.dev());
    let rules = T::flow_rules(data.get_ref());

    if !dev.features().contains(Feature::Ntuple) {
        return Err(dev.refuse(EOPNOTSUPP, "flow rules are off: see ntuple"));
    }
    let action = FlowAction::of(spec.ring_cookie, queues)
        .map_err(|error| dev.refuse(error, "flow rule: neither drops packets nor has a queue"))?;
    let packets =
        FlowMatch::of(&spec).map_err(|error| dev.refuse(error, "flow rule: no such flow type"))?;
    if spec.location == bindings::RX_CLS_LOC_ANY {
        spec.location = rules.last_free(T::FLOW_RULES, lock)?;
    }
    let location = spec.location;
    if location >= T::FLOW_RULES {
        return Err(dev.refuse(EINVAL, "flow rule: no such location"));
    }
    let rule = FlowRule {
        location,
        packets,
        action,
    };
    // From here on, there is nothing to allocate.
    rules.stored.get_mut(lock).reserve(1, GFP_KERNEL)?;

    let old = match rules.find(location, lock) {
        Ok(place) => {
            let old = rules.take(place, lock)?;
            if let Err(error) = T::remove_flow_rule(data, dev, &old.rule, lock) {
                rules.put(old, lock)?;
                return Err(error);
            }
            Some(old)
        }
        Err(_) => None,
    };
    match T::insert_flow_rule(data, dev, &rule, lock) {
        Ok(()) => {
            rules.put(StoredRule { rule, spec }, lock)?;
            Ok(location)
        }
        Err(error) => {
            if let Some(old) = old {
                match T::insert_flow_rule(data, dev, &old.rule, lock) {
                    Ok(()) => rules.put(old, lock)?,
                    Err(error) => {
                        crate::netdev_err!(dev, "failed to restore rule {location}: {error:?}\n");
                    }
                }
            }
            Err(error)
        }
    }
}

/// Removes a rule.
fn remove<T: RxnfcOps>(inner: &Inner<T>, location: u32, lock: &mut OpsLocked<'static>) -> Result {
    let rules = T::flow_rules(inner.data().get_ref());
    let place = rules.find(location, lock).map_err(|_| ENOENT)?;
    let old = rules.take(place, lock)?;

    T::remove_flow_rule(inner.data(), inner.dev(), &old.rule, lock).or_else(|error| {
        rules.put(old, lock)?;
        Err(error)
    })
}

/// A driver of a NIC that directs received packets by rules, see [`OptionalOps::rxnfc`].
pub trait RxnfcOps: Driver {
    /// Number of rules by which the NIC directs received packets. Their locations are less than
    /// that.
    const FLOW_RULES: u32;

    /// The rules, for `ethtool -n` and `-N`. They are kept here, and the driver has a place for
    /// them among its data.
    ///
    /// A driver with this has [`Feature::Ntuple`], with which users switch the rules off and on:
    /// they cannot insert any while it is off, and those that there are have no effect. If it is
    /// on, [`Driver::start`] passes all of them to the NIC.
    fn flow_rules<'a, 'bound: 'a>(data: &'a Self::Data<'bound>) -> &'a FlowRules<'bound>;

    /// Inserts a rule, if the NIC can have it together with the others. If the device is up, it
    /// takes effect at once.
    ///
    /// The queue of the rule exists, and users cannot take it away while it has a rule. There is no
    /// `extack` for this: the log may tell the reason of a refusal, see [`Device::refuse`].
    fn insert_flow_rule<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        rule: &FlowRule,
        lock: &mut OpsLocked<'bound>,
    ) -> Result;

    /// Removes a rule, which is not among the others any more.
    fn remove_flow_rule<'bound>(
        data: Pin<&Self::Data<'bound>>,
        dev: &Device,
        rule: &FlowRule,
        lock: &mut OpsLocked<'bound>,
    ) -> Result;
}

impl<T: RxnfcOps> OptionalOps<T> {
    /// Adds the callbacks of [`RxnfcOps`].
    pub const fn rxnfc(mut self) -> Self {
        self.ethtool.get_rxnfc = Some(Self::get_rxnfc);
        self.ethtool.set_rxnfc = Some(Self::set_rxnfc);
        self
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `info`. If that
    /// asks for the locations of rules, `locations` must have room for as many as it says.
    unsafe extern "C" fn get_rxnfc(
        dev: *mut bindings::net_device,
        info: *mut bindings::ethtool_rxnfc,
        locations: *mut u32,
    ) -> c_int {
        from_result(|| {
            // SAFETY: The core calls us for a registered device, with a valid `info`, and holds
            // its lock.
            let (inner, lock) = unsafe { ops::locked::<T>(dev) };
            // SAFETY: As above.
            let info = unsafe { &mut *info };
            let rules = T::flow_rules(inner.data().get_ref());
            let stored = rules.stored.get(&lock);

            info.data = T::FLOW_RULES.into();
            match info.cmd {
                bindings::ETHTOOL_GRXCLSRLCNT => {
                    // Users need not choose a location.
                    info.data |= u64::from(bindings::RX_CLS_LOC_SPECIAL);
                    info.__bindgen_anon_1.rule_cnt = u32::try_from(stored.len())?;
                }
                bindings::ETHTOOL_GRXCLSRULE => {
                    let place = rules.find(info.fs.location, &lock).map_err(|_| ENOENT)?;
                    info.fs = stored.get(place).ok_or(ENOENT)?.spec;
                }
                bindings::ETHTOOL_GRXCLSRLALL => {
                    // SAFETY: For this command, it is the number of rules for which there is room.
                    let room = unsafe { info.__bindgen_anon_1.rule_cnt } as usize;
                    if stored.len() > room {
                        return Err(EMSGSIZE);
                    }
                    if !stored.is_empty() {
                        // SAFETY: The core has allocated that many locations, zeroed. There are
                        // some, so `locations` is not null.
                        let locations = unsafe { slice::from_raw_parts_mut(locations, room) };
                        for (location, stored) in locations.iter_mut().zip(stored.iter()) {
                            *location = stored.rule.location;
                        }
                    }
                    info.__bindgen_anon_1.rule_cnt = u32::try_from(stored.len())?;
                }
                _ => return Err(EOPNOTSUPP),
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Must only be called by the core, for a device of driver `T`, with a valid `info`.
    unsafe extern "C" fn set_rxnfc(
        dev: *mut bindings::net_device,
        info: *mut bindings::ethtool_rxnfc,
    ) -> c_int {
        // SAFETY: The core calls us for a registered device, with a valid `info`, and holds
        // its lock.
        let (inner, mut lock) = unsafe { ops::locked::<T>(dev) };
        // SAFETY: As above.
        let info = unsafe { &mut *info };

        inner.if_reachable(|| {
            match info.cmd {
                bindings::ETHTOOL_SRXCLSRLINS => {
                    let queues = inner.config.get(&lock).channels;
                    info.fs.location = insert(inner, info.fs, queues, &mut lock)?;
                }
                bindings::ETHTOOL_SRXCLSRLDEL => remove(inner, info.fs.location, &mut lock)?,
                _ => return Err(EOPNOTSUPP),
            }
            Ok(())
        })
    }
}
