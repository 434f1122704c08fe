// SPDX-License-Identifier: GPL-2.0

//! The light that identifies a port.

use kernel::{
    net::device::ethtool::phys_id::PhysIdOps,
    prelude::*,
    sync::atomic::Relaxed, //
};

use crate::{
    port::{
        Port,
        PortDriver,
        NO_LIGHTS, //
    },
    regs::*, //
};

/// Number of lights. Each has 8 bits of [`LEDCTL`].
const LIGHTS: u32 = 4;

/// The bits of a light: its mode, and that it blinks.
const MODE: u32 = 0xf;
const BLINK: u32 = 1 << 7;

/// Modes: it shows the link and its activity, is always lit, or never.
const LINK_ACTIVITY: u32 = 0x4;
const ON: u32 = 0xe;
const OFF: u32 = 0xf;

/// The light of the link on most boards.
const USUAL: u32 = 2;

/// Returns the register with the light of the link on or off, of the value that the EEPROM has
/// chosen. Boards differ in which light that is.
fn lit(chosen: u32, on: bool) -> u32 {
    let is_of_link = |light: &u32| chosen >> (8 * light) & MODE == LINK_ACTIVITY;
    let shift = 8 * (0..LIGHTS).find(is_of_link).unwrap_or(USUAL);
    let mode = if on { ON } else { OFF };

    chosen & !((MODE | BLINK) << shift) | mode << shift
}

impl PhysIdOps for PortDriver {
    fn set_phys_id<'bound>(port: Pin<&Port<'bound>>, on: Option<bool>) -> Result {
        let mut lights = port.lights.load(Relaxed);
        let Some(on) = on else {
            port.bar.write_reg(LEDCTL::from(lights));
            port.lights.store(NO_LIGHTS, Relaxed);
            return Ok(());
        };
        if lights == NO_LIGHTS {
            lights = port.bar.try_read(LEDCTL)?.into_raw();
            port.lights.store(lights, Relaxed);
        }

        port.bar.write_reg(LEDCTL::from(lit(lights, on)));
        Ok(())
    }
}

#[kunit_tests(ixgbe_rust_light)]
mod tests {
    use super::*;

    #[test]
    fn the_light_of_the_link_is_that_of_its_mode() {
        assert_eq!(lit(0x0004_0000, true), 0x000e_0000);
        assert_eq!(lit(0x0004_0000, false), 0x000f_0000);
        // That of another board, which blinks, besides one that shows the speed.
        assert_eq!(lit(0x0008_0384, true), 0x0008_030e);
        assert_eq!(lit(0x8400_0100, false), 0x0f00_0100);
    }

    #[test]
    fn without_such_a_mode_it_is_the_usual_one() {
        assert_eq!(lit(0x0101_0101, true), 0x010e_0101);
    }
}
