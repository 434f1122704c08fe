// SPDX-License-Identifier: GPL-2.0

//! The NIC's firmware: whether it takes part in the management of the link.

use kernel::{
    device::{
        self,
        Bound, //
    },
    prelude::*, //
};

use crate::{
    eeprom::Reader,
    media::Media,
    mmio::Bar0,
    regs::medium::*,
    semaphore::{
        self,
        Owned,
        Resource, //
    }, //
};

/// The word of the EEPROM that points to the block of the firmware.
const BLOCK: u16 = 0x0f;

/// Words of that block which point to further ones.
const LESM_POINTER: u16 = 2;
const PATCH_POINTER: u16 = 4;

/// Word of the block of LESM, the link establishment state machine, and whether it is on.
const LESM_STATE: u16 = 1;
const LESM_ENABLED: u16 = 1 << 15;

/// Word of the block of the patch that has its version, and the first good one.
const PATCH_VERSION: u16 = 7;
const GOOD_VERSION: u16 = 6;

/// The word of the EEPROM about abilities of the NIC, and two of its bits: modules of any maker may
/// be used; on this NIC, neither a neighbouring port's signal nor noise is taken for a link.
const CAPABILITIES: u16 = 0x2c;
const ANY_MODULE: u16 = 1 << 0;
const NO_CROSSTALK: u16 = 1 << 7;

/// The second word of the EEPROM about the NIC's operation, and one of its bits: the clock of the
/// core stops while the NIC sleeps (D3).
const CONTROL_2: u16 = 0x01;
const CLOCK_STOPS: u16 = 1 << 1;

/// Value of [`FWSM`]'s mode: packets are passed to a management controller.
const PASS_THROUGH: u32 = 2;

/// The firmware, as the EEPROM describes it.
#[derive(Clone, Copy)]
pub(crate) struct Firmware {
    /// It runs LESM, which writes [`AUTOC`] as the driver does.
    pub(crate) lesm: bool,
    /// A link is one only if the cage is full, and if it is still there a moment later.
    pub(crate) doubts_link: bool,
    /// Modules of any maker may be used.
    pub(crate) any_module: bool,
    /// The NIC can turn its link off while it sleeps (D3).
    pub(crate) link_sleeps: bool,
}

/// Follows a pointer in the EEPROM; [`None`] if there is nothing at its end.
fn follow(eeprom: &Reader<'_, '_>, pointer: u16) -> Option<u16> {
    eeprom
        .word(pointer)
        .ok()
        .filter(|&target| target != 0 && target != u16::MAX)
}

/// Reads a word behind two pointers.
fn word(eeprom: &Reader<'_, '_>, pointer: u16, offset: u16) -> Option<u16> {
    let block = follow(eeprom, BLOCK)?;
    let inner = follow(eeprom, block.checked_add(pointer)?)?;

    eeprom.word(inner.checked_add(offset)?).ok()
}

impl Firmware {
    /// Reads the EEPROM. Complains about firmware that is too old for this kind of port.
    pub(crate) fn read(dev: &device::Device<Bound>, bar: &Bar0<'_>, media: Media) -> Self {
        let cage = media == Media::SfpPlus;
        let eeprom = &Reader::new(bar);

        if cage && word(eeprom, PATCH_POINTER, PATCH_VERSION).is_none_or(|v| v < GOOD_VERSION) {
            dev_warn!(dev, "firmware too old for SFP+; update the EEPROM image\n");
        }
        let capabilities = eeprom.word(CAPABILITIES).unwrap_or(0);
        let control = eeprom.word(CONTROL_2).unwrap_or(0);
        Self {
            lesm: word(eeprom, LESM_POINTER, LESM_STATE).is_some_and(|w| w & LESM_ENABLED != 0),
            doubts_link: cage && capabilities & NO_CROSSTALK == 0,
            any_module: capabilities & ANY_MODULE != 0,
            link_sleeps: control & CLOCK_STOPS != 0,
        }
    }

    /// Keeps LESM from writing [`AUTOC`], until the result is dropped.
    pub(crate) fn hold_link<'a, 'bound>(
        &self,
        bar: &'a Bar0<'bound>,
    ) -> Result<Option<Owned<'a, 'bound>>> {
        if !self.lesm {
            return Ok(None);
        }
        semaphore::take(bar, Resource::Mac).map(Some)
    }
}

/// Returns whether the firmware forbids changes of the link now: a management controller uses it.
pub(crate) fn forbids_changes(bar: &Bar0<'_>) -> bool {
    bar.read(MMNGC).mng_veto()
}

/// Returns whether the firmware passes packets to a management controller, of one of the ports.
pub(crate) fn passes_packets(bar: &Bar0<'_>) -> bool {
    bar.read(FWSM).fw_mode().get() == PASS_THROUGH
}

/// Returns whether a management controller receives packets from the port, so that the laser has
/// to stay on.
pub(crate) fn uses_port(bar: &Bar0<'_>) -> bool {
    passes_packets(bar) && bar.read(MANC).rcv_tco_en() && !bar.read(FACTPS).mngcg()
}

/// Returns whether a port is the first function of the NIC, wherever a hypervisor shows it.
pub(crate) fn is_first(bar: &Bar0<'_>, number: u32) -> bool {
    (number == 0) != bar.read(FACTPS).lfs()
}
