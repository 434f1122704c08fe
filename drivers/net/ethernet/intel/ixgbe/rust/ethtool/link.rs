// SPDX-License-Identifier: GPL-2.0

//! The state and the abilities of the link.

use kernel::{
    net::device::{
        ethtool::link::{
            Connector,
            LinkMode,
            LinkOps,
            LinkRequest,
            LinkSettings, //
        },
        Device,
        OpsLocked, //
    },
    prelude::*, //
};

use crate::{
    link::{
        self,
        Link, //
    },
    media::Media,
    port::{
        Port,
        PortDriver, //
    },
    sfp::{
        Kind,
        Module, //
    }, //
};

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
impl LinkOps for PortDriver {
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
            return Err(dev.refuse(EINVAL, "link: the medium decides on its mode"));
        }
        Ok(())
    }
}
