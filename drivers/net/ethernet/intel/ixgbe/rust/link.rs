// SPDX-License-Identifier: GPL-2.0

//! Link setup and state (datasheet 3.7, MAC and link).

use kernel::{
    prelude::*,
    time::{
        delay::sleep_at_least,
        Delta, //
    }, //
};

use crate::{
    firmware::{
        self,
        Firmware, //
    },
    media::SFI,
    mmio::{
        self,
        Bar0, //
    },
    regs::{
        medium::*,
        *, //
    },
    sfp::Speed, //
};

/// State of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// The link is down.
    Down,
    /// The link is up at this speed, in Mb/s.
    Up(u32),
}

/// Bits of [`AUTOC2`]'s switch for the link: off while the NIC sleeps (D3).
const OFF_IN_D3: u32 = 0b101;

/// Time in which a laser gets dark, and lit.
const LASER_OFF: Delta = Delta::from_micros(100);
const LASER_ON: Delta = Delta::from_millis(100);

/// Time in which a module changes its speed.
const RATE_CHANGE: Delta = Delta::from_millis(40);

/// Time after which a link that was mistaken for one is away again.
const NOISE: Delta = Delta::from_millis(5);

/// Starts the link of a backplane, with KR or without it if that is to change. The NIC raises an
/// interrupt when the link is up.
pub(crate) fn start_backplane(bar: &Bar0<'_>, firmware: &Firmware, kr: Option<bool>) -> Result {
    enable(bar)?;
    // The link mode and all else come from the EEPROM.
    restart(bar, firmware, |r| match kr {
        Some(kr) => r.with_kr_supp(kr),
        None => r,
    })
}

/// Turns on the laser of a module, and starts the link over it at this speed. `selects`: the module
/// has a pin that selects it.
pub(crate) fn start_serial(
    bar: &Bar0<'_>,
    firmware: &Firmware,
    speed: Speed,
    selects: bool,
) -> Result {
    laser_on(bar)?;
    if selects {
        bar.update(ESDP, |r| {
            r.with_sdp5_dir(true).with_sdp5_data(speed == Speed::Ten)
        })?;
        mmio::flush(bar);
        sleep_at_least(RATE_CHANGE);
    }

    enable(bar)?;
    bar.update(AUTOC2, |r| r.with_const_pma_pmd_10g_serial::<SFI>())?;
    restart(bar, firmware, |r| match speed {
        Speed::Ten => r.with_const_lms::<{ link_mode::SERIAL_10G }>(),
        Speed::One => r
            .with_const_lms::<{ link_mode::NEGOTIATED_1G }>()
            .with_const_pma_pmd_1g::<0>(),
    })
}

/// Enables the link, which the EEPROM may have disabled to save power.
fn enable(bar: &Bar0<'_>) -> Result {
    bar.update(AUTOC2, |r| r.with_const_link_disable::<0>())?;
    mmio::flush(bar);
    Ok(())
}

/// Lets the link go off when the NIC sleeps (D3), unless the firmware may use it then. The next
/// start of the link takes that back.
pub(crate) fn turn_off_in_d3(bar: &Bar0<'_>) {
    if !firmware::passes_packets(bar) && !firmware::forbids_changes(bar) {
        // A link that stays on only takes power.
        let _ = bar.update(AUTOC2, |r| {
            r.try_with_link_disable(r.link_disable().get() | OFF_IN_D3)
                .unwrap_or(r)
        });
    }
}

/// Changes the mode of the link and starts it, unless the firmware forbids that.
///
/// The other half of all modes is in effect for a moment, without which not all of the pipeline
/// would be reset. [`ETIMEDOUT`] if negotiation has not begun in it; the mode has changed even so.
fn restart(bar: &Bar0<'_>, firmware: &Firmware, change: impl FnOnce(AUTOC) -> AUTOC) -> Result {
    const OTHER_HALF: u32 = 1 << 2;

    if firmware::forbids_changes(bar) {
        return Ok(());
    }
    let _held = firmware.hold_link(bar)?;

    let wanted = change(bar.try_read(AUTOC)?).with_restart_an(true);
    let other = wanted
        .try_with_lms(wanted.lms().get() ^ OTHER_HALF)
        .unwrap_or(wanted);
    bar.write_reg(other);
    mmio::flush(bar);
    let left = mmio::poll(
        || bar.try_read(ANLP1),
        |r| r.an_state().get() != 0,
        Delta::from_millis(4),
        Delta::from_millis(80),
    );
    bar.write_reg(wanted);
    mmio::flush(bar);
    left.map(|_| ())
}

/// Puts the MAC into loopback, where it needs no link, or takes it out again.
///
/// While the firmware forbids changes of the link, there has to be one ([`ETIMEDOUT`]), and one
/// that was forced stays ([`EPERM`]).
pub(crate) fn loop_back(bar: &Bar0<'_>, firmware: &Firmware, on: bool) -> Result {
    /// Time in which the NIC notices the link.
    const SETTLES: Delta = Delta::from_millis(100);

    bar.update(HLREG0, |r| r.with_lpbk(on))?;
    if !firmware::forbids_changes(bar) {
        let _held = firmware.hold_link(bar)?;

        bar.update(AUTOC, |r| r.with_flu(on))?;
    } else if !on && bar.read(AUTOC).flu() {
        return Err(EPERM);
    }
    mmio::flush(bar);
    if on {
        mmio::poll(
            || Ok(state(bar)),
            |state| *state != Link::Down,
            Delta::from_millis(10),
            SETTLES,
        )?;
    }
    Ok(())
}

/// Returns whether the MAC is in loopback, and has a link or needs none.
pub(crate) fn loops(bar: &Bar0<'_>) -> bool {
    bar.read(HLREG0).lpbk() && state(bar) != Link::Down
}

/// Turns on the laser of a module, and waits until it is lit.
fn laser_on(bar: &Bar0<'_>) -> Result {
    // A reset turns it on, too, some time ago.
    if bar.try_read(ESDP)?.sdp3_data() {
        bar.update(ESDP, |r| r.with_sdp3_data(false))?;
        mmio::flush(bar);
        sleep_at_least(LASER_ON);
    }
    Ok(())
}

/// Turns off the laser of a module, unless the firmware uses it.
pub(crate) fn laser_off(bar: &Bar0<'_>) {
    if firmware::uses_port(bar) || firmware::forbids_changes(bar) {
        return;
    }
    // A NIC that does not answer may stay lit.
    let _ = bar.update(ESDP, |r| r.with_sdp3_data(true));
    mmio::flush(bar);
    sleep_at_least(LASER_OFF);
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

/// Reads the state of the link once more after it has come up: noise and the signals of another
/// port look like a link for a moment.
pub(crate) fn confirm(bar: &Bar0<'_>) -> Link {
    sleep_at_least(NOISE);
    state(bar)
}
