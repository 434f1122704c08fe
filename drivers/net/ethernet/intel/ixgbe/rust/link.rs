// SPDX-License-Identifier: GPL-2.0

//! Link setup and state (datasheet 3.7, MAC and link).

use kernel::{
    io::Io,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use crate::{
    hw::{
        self,
        Bar0, //
    },
    regs::*, //
};

/// The medium of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    /// A cage for SFP+ modules, behind a serial interface at 10 Gb/s.
    SfpPlus,
    /// A backplane or on-board connection, configured by the EEPROM.
    Backplane,
}

/// State of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// The link is down.
    Down,
    /// The link is up at this speed, in Mb/s.
    Up(u32),
}

/// Starts link setup. The card raises an interrupt when the link is up.
pub(crate) fn start(bar: &Bar0<'_>, media: Media) {
    // The EEPROM may have disabled the link to save power.
    bar.update(AUTOC2, |r| r.with_const_link_disable::<0>());

    match media {
        Media::SfpPlus => {
            // Turn on the laser.
            bar.update(ESDP, |r| r.with_sdp3_data(false));
            hw::flush(bar);
            fsleep(Delta::from_millis(1));

            // SFI without autonegotiation.
            bar.update(AUTOC2, |r| r.with_const_pma_pmd_10g_serial::<2>());
            bar.update(AUTOC, |r| {
                r.with_const_lms::<{ link_mode::SERIAL_10G }>()
                    .with_restart_an(true)
            });
        }
        // The link mode and the abilities to advertise come from the EEPROM.
        Media::Backplane => bar.update(AUTOC, |r| r.with_restart_an(true)),
    }
    hw::flush(bar);
}

/// Turns off the laser that [`start`] has turned on.
pub(crate) fn stop(bar: &Bar0<'_>, media: Media) {
    if media == Media::SfpPlus {
        bar.update(ESDP, |r| r.with_sdp3_data(true));
    }
}

/// Reads the state of the link.
pub(crate) fn state(bar: &Bar0<'_>) -> Link {
    // The register latches link loss until it is read: only the second read is the current state.
    bar.read(LINKS);
    let links = bar.read(LINKS);

    if links.into_raw() == u32::MAX || !links.link_up() {
        return Link::Down;
    }

    match links.link_speed().get() {
        link_speed::SPEED_10000 => Link::Up(10_000),
        link_speed::SPEED_1000 => Link::Up(1_000),
        link_speed::SPEED_100 => Link::Up(100),
        _ => Link::Down,
    }
}
