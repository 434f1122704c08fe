// SPDX-License-Identifier: GPL-2.0

//! Settings of a port and views of it, beyond the callbacks of every network device.

use kernel::{
    io::Io,
    net::device::{
        controls::{
            Connector,
            Controls,
            ExtAck,
            FirmwareVersion,
            FlowRule,
            FlowRules,
            LengthRanges,
            LengthStats,
            LinkMode,
            LinkRequest,
            LinkSettings,
            MacStats,
            Messages,
            Moderation,
            ModulePlace,
            Pause,
            PauseStats,
            RssChange,
            RxQueueStats,
            SelfTest,
            TxQueueStats,
            WakePackets, //
        },
        Device,
        Feature,
        Locks,
        OpsLocked, //
    },
    prelude::*,
    sync::atomic::Relaxed, //
};

use crate::{
    dump,
    eeprom,
    flow,
    flow_director::{
        self,
        Filter,
        Mode, //
    },
    i2c::Page,
    link::{
        self,
        Link, //
    },
    media::Media,
    moderation,
    port::{
        Port,
        PortDriver,
        NO_LIGHTS, //
    },
    regs::*,
    rss,
    rx,
    self_test,
    sfp::{
        Kind,
        Module, //
    },
    stats, //
};

/// Returns whether the flow director has rules.
fn directs(dev: &Device) -> bool {
    dev.is_running() && dev.features().contains(Feature::Ntuple)
}

/// The abilities of a cage without a module that can be used.
const CAGE: &[LinkMode] = &[LinkMode::Fibre, LinkMode::Pause];

/// Those of a module, the use of pause frames last.
fn abilities(module: &Module) -> &'static [LinkMode] {
    use LinkMode::*;

    match module.kind {
        Kind::PassiveCable | Kind::ActiveCable | Kind::OtherActiveCable => {
            &[Base10000Cr, Fibre, Pause]
        }
        Kind::Sr if module.is_dual => &[Base10000Sr, Base1000X, Autoneg, Fibre, Pause],
        Kind::Lr if module.is_dual => &[Base10000Lr, Base1000X, Autoneg, Fibre, Pause],
        Kind::Sr => &[Base10000Sr, Fibre, Pause],
        Kind::Er => &[Base10000Er, Fibre, Pause],
        // The kernel has no mode for one fibre.
        Kind::Lr | Kind::Bx10G => &[Base10000Lr, Fibre, Pause],
        Kind::T => &[Base1000T, Autoneg, TwistedPair, Pause],
        Kind::Sx | Kind::Lx | Kind::Bx => &[Base1000X, Autoneg, Fibre, Pause],
    }
}

/// Its connector.
fn connector(module: &Module) -> Connector {
    match module.kind {
        Kind::PassiveCable | Kind::ActiveCable | Kind::OtherActiveCable => Connector::DirectAttach,
        Kind::T => Connector::TwistedPair,
        _ => Connector::Fibre,
    }
}

/// Those of a backplane. The EEPROM has chosen among them.
const BACKPLANE: &[LinkMode] = &[
    LinkMode::Base10000Kx4,
    LinkMode::Base10000Kr,
    LinkMode::Base1000Kx,
    LinkMode::Autoneg,
    LinkMode::Backplane,
];

#[vtable]
impl Controls for PortDriver {
    fn firmware<'bound>(port: Pin<&Port<'bound>>, version: &mut FirmwareVersion<'_>) {
        // The serial number of the whole EEPROM image, as `ixgbe` shows it.
        if let Ok(number) = port.with_eeprom(eeprom::track_id) {
            version.set(fmt!("0x{:08x}", number));
        }
    }

    const REGISTERS: usize = dump::LEN;
    const REGISTERS_VERSION: u32 = dump::VERSION;

    fn registers<'bound>(
        port: Pin<&Port<'bound>>,
        values: &mut [u32],
        _lock: &mut OpsLocked<'bound>,
    ) {
        dump::fill(&port.bar, values);
    }

    fn eeprom_len<'bound>(port: Pin<&Port<'bound>>) -> usize {
        eeprom::len(&port.bar)
    }

    fn read_eeprom<'bound>(
        port: Pin<&Port<'bound>>,
        offset: usize,
        bytes: &mut [u8],
        _lock: &mut OpsLocked<'bound>,
    ) -> Result {
        port.with_eeprom(|bar| eeprom::read_bytes(bar, offset, bytes))
    }

    fn module_eeprom<'bound>(
        port: Pin<&Port<'bound>>,
        place: ModulePlace,
        bytes: &mut [u8],
        _lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result {
        let page = match (place.address, place.page) {
            (0x50, 0) => Page::Id,
            (0x51, 0) => Page::Diagnostics,
            _ => return Err(extack.refuse(EOPNOTSUPP, c"the bus has no such module or page")),
        };
        port.read_module(page, place.offset, bytes)
            .map_err(|error| {
                if error == ENXIO {
                    extack.refuse(error, c"no module answers")
                } else {
                    error
                }
            })
    }

    fn identify<'bound>(port: Pin<&Port<'bound>>, on: Option<bool>) -> Result {
        let lights = port.lights.load(Relaxed);
        let Some(on) = on else {
            port.bar.write_reg(LEDCTL::from(lights));
            port.lights.store(NO_LIGHTS, Relaxed);
            return Ok(());
        };
        if lights == NO_LIGHTS {
            // The EEPROM has chosen their modes.
            port.lights.store(port.bar.read(LEDCTL).into_raw(), Relaxed);
        }

        // LED 2, the one of the link, as `ixgbe` does by default.
        let mode = if on { led::ON } else { led::OFF };
        port.bar.update(LEDCTL, |r| {
            r.with_led2_blink(false)
                .try_with_led2_mode(mode)
                .unwrap_or(r)
        });
        Ok(())
    }

    const SELF_TESTS: &'static [SelfTest<Self>] = self_test::TESTS;

    fn link<'bound>(
        port: Pin<&Port<'bound>>,
        dev: &Device,
        lock: &mut OpsLocked<'bound>,
    ) -> LinkSettings {
        let pause = port.pause.get(lock);
        let (supported, connector) = match (port.media, port.module()) {
            (Media::SfpPlus, Some(module)) => (abilities(&module), connector(&module)),
            (Media::SfpPlus, None) => (CAGE, Connector::None),
            (Media::Backplane, _) => (BACKPLANE, Connector::None),
        };
        let advertised = match supported.split_last() {
            Some((LinkMode::Pause, others)) if !(pause.rx && pause.tx) => others,
            _ => supported,
        };

        LinkSettings {
            speed: match link::state(&port.bar) {
                Link::Up(speed) if dev.is_carrier_ok() => Some(speed),
                Link::Up(_) | Link::Down => None,
            },
            connector,
            autoneg: supported.contains(&LinkMode::Autoneg),
            supported,
            advertised,
        }
    }

    fn set_link<'bound>(
        port: Pin<&Port<'bound>>,
        dev: &Device,
        request: LinkRequest<'_>,
        lock: &mut OpsLocked<'bound>,
    ) -> Result {
        let link = Self::link(port, dev, lock);
        let speed = if link.autoneg {
            // A result.
            link.speed
        } else {
            port.module().map(|module| module.speed().mbps())
        };

        // The medium decides on the mode, and the port advertises all of its abilities: it goes on
        // with that.
        if request.autoneg != link.autoneg
            || !request.full_duplex
            || request.speed.is_some() && request.speed != speed
            || !request.advertises(link.advertised)
        {
            return Err(EINVAL);
        }
        Ok(())
    }

    fn messages<'a>(port: &'a Port<'_>) -> &'a Messages {
        &port.messages
    }

    fn arm_wake_up<'bound>(
        port: Pin<&Port<'bound>>,
        dev: &Device,
        packets: WakePackets,
        _locks: &mut Locks<'bound>,
    ) {
        port.arm_wake_up(dev, packets);
    }

    fn moderation<'bound>(port: Pin<&Port<'bound>>, _lock: &mut OpsLocked<'bound>) -> Moderation {
        port.moderation.get()
    }

    fn set_moderation<'bound>(
        port: Pin<&Port<'bound>>,
        dev: &Device,
        wanted: Moderation,
        lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result {
        if wanted.usecs > moderation::MAX_USECS {
            return Err(extack.refuse(ERANGE, c"the card waits for 1022 us at most"));
        }
        let joins = dev.features().contains(Feature::Lro);
        if joins && !wanted.adaptive && wanted.usecs <= moderation::MIN_JOINING_USECS - 2 {
            return Err(extack.refuse(EINVAL, c"lro needs interrupts that are 8 us apart"));
        }
        port.moderation.set(wanted);
        // If the device is down, `start()` passes it to the card.
        if dev.is_running() {
            port.moderation.apply(&port.bar, port.pairs(lock));
        }
        Ok(())
    }

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
            return Err(EOPNOTSUPP);
        }
        let old = core::mem::replace(port.pause.get_mut(lock), pause);
        // If the device is down, `start()` passes it to the card.
        if dev.is_running() {
            let pairs = port.pairs(lock);

            flow::apply(&port.bar, pause, Mode::of(dev, pairs));
            rx::set_drop(&port.bar, pairs, flow::drops(pause, pairs));
            if pause != old {
                port.negotiate_anew(dev);
            }
        }
        Ok(())
    }

    fn mac_stats<'bound>(port: Pin<&Port<'bound>>, _lock: &mut OpsLocked<'bound>) -> MacStats {
        let (hw, mac) = port.stats.mac(&port.bar);
        mac.mac(hw)
    }

    fn pause_stats<'bound>(port: Pin<&Port<'bound>>, _lock: &mut OpsLocked<'bound>) -> PauseStats {
        port.stats.mac(&port.bar).1.pauses()
    }

    const LENGTH_RANGES: LengthRanges = stats::LENGTH_RANGES;

    fn length_stats<'bound>(
        port: Pin<&Port<'bound>>,
        _lock: &mut OpsLocked<'bound>,
    ) -> LengthStats {
        let (hw, mac) = port.stats.mac(&port.bar);
        mac.lengths(hw)
    }

    const RSS_ENTRIES: usize = rss::ENTRIES;
    const RSS_KEY_LEN: usize = rss::KEY_LEN;

    fn rss<'bound>(
        port: Pin<&Port<'bound>>,
        table: Option<&mut [u32]>,
        key: Option<&mut [u8]>,
        lock: &mut OpsLocked<'bound>,
    ) {
        let spread = port.spread.get(lock);

        if let Some(table) = table {
            for (to, from) in table.iter_mut().zip(spread.table()) {
                *to = u32::from(*from);
            }
        }
        if let Some(key) = key {
            for (to, from) in key.iter_mut().zip(spread.key()) {
                *to = *from;
            }
        }
    }

    fn set_rss<'bound>(
        port: Pin<&Port<'bound>>,
        dev: &Device,
        change: RssChange<'_>,
        lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result {
        let spread = port.spread.get_mut(lock);

        if let Some(table) = change.table {
            spread
                .set_table(table)
                .map_err(|error| extack.refuse(error, c"an entry selects one of 16 queues"))?;
        }
        if let Some(key) = change.key {
            spread.set_key(key);
        }
        // If the device is down, `start()` passes it to the card.
        if dev.is_running() {
            spread.apply(&port.bar);
            let pairs = port.pairs(lock);
            port.filters
                .spread_is_even
                .store(port.spread.get(lock).is_even(pairs), Relaxed);
        }
        Ok(())
    }

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
            dev_notice!(dev, "rule {}: {}\n", rule.location, reason);
            EINVAL
        };
        let filter = Filter::new(&rule.packets).map_err(refuse)?;
        let mut is_first = true;

        for other in port.flow_rules.iter(lock) {
            let other = Filter::new(&other.packets).map_err(refuse)?;
            filter.goes_with(&other).map_err(refuse)?;
            is_first = false;
        }
        // If the device is down, `start()` passes it to the card.
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

    fn rx_queue_stats<'bound>(
        port: Pin<&Port<'bound>>,
        queue: u16,
        _lock: &mut OpsLocked<'bound>,
    ) -> RxQueueStats {
        port.stats.rx_queue(queue)
    }

    fn tx_queue_stats<'bound>(
        port: Pin<&Port<'bound>>,
        queue: u16,
        _lock: &mut OpsLocked<'bound>,
    ) -> TxQueueStats {
        port.stats.tx_queue(queue)
    }
}
