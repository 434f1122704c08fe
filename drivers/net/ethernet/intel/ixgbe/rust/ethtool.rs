// SPDX-License-Identifier: GPL-2.0

//! Settings of a port and views of it for users of `ethtool`.

use kernel::{
    net::device::{
        ethtool::{
            coalesce::{
                Coalesce,
                CoalesceOps, //
            },
            msglevel::{
                MsgLevel,
                MsgLevelOps, //
            },
            pause::{
                Pause,
                PauseOps,
                PauseStats, //
            },
            ringparam::RingparamOps,
            self_test::{
                SelfTest,
                SelfTestOps, //
            },
            wol::{
                WakePackets,
                WolOps, //
            }, //
        },
        Device,
        ExtAck,
        Feature,
        Locks,
        OpsLocked,
        RingRange, //
    },
    prelude::*, //
};

use crate::{
    desc,
    flow,
    flow_director::Mode,
    moderation,
    port::{
        Port,
        PortDriver, //
    },
    rx,
    self_test, //
};

mod counters;
mod light;
mod link;
mod nic;
mod rxfh;
mod rxnfc;

impl CoalesceOps for PortDriver {
    fn coalesce<'bound>(port: Pin<&Port<'bound>>, _lock: &mut OpsLocked<'bound>) -> Coalesce {
        port.moderation.get()
    }

    fn set_coalesce<'bound>(
        port: Pin<&Port<'bound>>,
        dev: &Device,
        wanted: Coalesce,
        lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result {
        if wanted.usecs > moderation::MAX_USECS {
            return Err(extack.refuse(ERANGE, c"rx-usecs must not exceed 1022"));
        }
        let lro = dev.features().contains(Feature::Lro);
        if lro && !wanted.adaptive && wanted.usecs <= moderation::MIN_LRO_USECS - 2 {
            return Err(extack.refuse(EINVAL, c"LRO requires rx-usecs of at least 8"));
        }
        port.moderation.set(wanted);
        // If the device is down, `start()` passes it to the NIC.
        if dev.is_running() {
            port.moderation.apply(&port.bar, port.pairs(lock));
        }
        Ok(())
    }
}

impl MsgLevelOps for PortDriver {
    fn msglevel<'a>(port: &'a Port<'_>) -> &'a MsgLevel {
        &port.msglevel
    }
}

impl PauseOps for PortDriver {
    fn pause<'bound>(port: Pin<&Port<'bound>>, lock: &mut OpsLocked<'bound>) -> Pause {
        *port.pause.get(lock)
    }

    fn set_pause<'bound>(
        port: Pin<&Port<'bound>>,
        dev: &Device,
        pause: Pause,
        lock: &mut OpsLocked<'bound>,
    ) -> Result {
        // Link partners at 10 Gb/s over a fibre do not negotiate it, and at 1 Gb/s the setting is
        // in effect whatever they say.
        if pause.autoneg {
            return Err(dev.refuse(EOPNOTSUPP, "pause frames are not negotiated"));
        }
        // If the device is down, `start()` passes it to the NIC.
        if dev.is_running() {
            let pairs = port.pairs(lock);

            flow::apply(&port.bar, pause, Mode::of(dev, pairs))?;
            rx::set_drop(&port.bar, pairs, flow::drops(pause, pairs))?;
        }
        let old = core::mem::replace(port.pause.get_mut(lock), pause);
        if dev.is_running() && pause != old {
            port.negotiate_anew(dev);
        }
        Ok(())
    }

    fn pause_stats<'bound>(port: Pin<&Port<'bound>>, _lock: &mut OpsLocked<'bound>) -> PauseStats {
        port.stats.mac(&port.bar).1.pauses()
    }
}

impl RingparamOps for PortDriver {
    const RINGS: RingRange = desc::RINGS;
}

impl SelfTestOps for PortDriver {
    const SELF_TESTS: &'static [SelfTest<Self>] = self_test::TESTS;
}

impl WolOps for PortDriver {
    fn arm_wake_up<'bound>(
        port: Pin<&Port<'bound>>,
        dev: &Device,
        packets: WakePackets,
        _locks: &mut Locks<'bound>,
    ) {
        port.arm_wake_up(dev, packets);
    }
}
