// SPDX-License-Identifier: GPL-2.0

//! Firmware version, registers, EEPROM and module EEPROM.

use kernel::{
    net::device::{
        ethtool::{
            drvinfo::{
                DrvinfoOps,
                FirmwareVersion, //
            },
            eeprom::EepromOps,
            module_eeprom::{
                EepromPage,
                ModuleEepromOps, //
            },
            regs::RegsOps, //
        },
        ExtAck,
        OpsLocked, //
    },
    prelude::*, //
};

use crate::{
    dump,
    eeprom,
    i2c::Page,
    port::{
        Port,
        PortDriver, //
    }, //
};

impl DrvinfoOps for PortDriver {
    fn firmware<'bound>(port: Pin<&Port<'bound>>, version: &mut FirmwareVersion<'_>) {
        // The serial number of the whole EEPROM image, as `ixgbe` shows it.
        if let Ok(number) = port.with_eeprom(eeprom::track_id) {
            version.set(fmt!("0x{:08x}", number));
        }
    }
}

impl EepromOps for PortDriver {
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
}

impl ModuleEepromOps for PortDriver {
    fn module_eeprom<'bound>(
        port: Pin<&Port<'bound>>,
        page: EepromPage,
        bytes: &mut [u8],
        _lock: &mut OpsLocked<'bound>,
        extack: &ExtAck<'_>,
    ) -> Result {
        let of_bus = match (page.address, page.page) {
            (0x50, 0) => Page::Id,
            (0x51, 0) => Page::Diagnostics,
            _ => return Err(extack.refuse(EINVAL, c"no such page of the module EEPROM")),
        };
        port.read_module(of_bus, page.offset, bytes)
            .map_err(|error| {
                if error == ENXIO {
                    extack.refuse(error, c"module does not respond")
                } else {
                    error
                }
            })
    }
}

impl RegsOps for PortDriver {
    const REGS: usize = dump::LEN;
    const REGS_VERSION: u32 = dump::VERSION;

    fn regs<'bound>(port: Pin<&Port<'bound>>, values: &mut [u32], _lock: &mut OpsLocked<'bound>) {
        dump::fill(&port.bar, values);
    }
}
