// SPDX-License-Identifier: GPL-2.0
//! What registers with a behaviour of their own do. All of it runs in the transport's thread.

use crate::device::Device;
use crate::eeprom::Eeprom;
use crate::function::PciFunction;
use crate::regs::{Effect, offset};
use crate::sfp::Sfp;

const CTRL_GIO_DIS: u32 = 1 << 2;
const CTRL_LNK_RST: u32 = 1 << 3;
const CTRL_RST: u32 = 1 << 26;
const STATUS_GIO: u32 = 1 << 19;
const EERD_START: u32 = 1;
const EERD_DONE: u32 = 2;
const EEC_REQUEST: u32 = 1 << 6;
const EEC_GRANT: u32 = 1 << 7;
const SWSM_SMBI: u32 = 1;
const MSCA_COMMAND: u32 = 1 << 30;
const AUTOC_RESTART: u32 = 1 << 12;
const RXCTRL_RXEN: u32 = 1;
/// Link up, 10 Gb/s, signal detected.
const LINKS_UP: u32 = 0x7000_0080;

/// State that only the slow path uses.
#[derive(Debug)]
pub(crate) struct Slow {
    eeprom: Eeprom,
    sfp: Sfp,
}

impl Slow {
    pub(crate) fn new(eeprom: Eeprom) -> Self {
        Self {
            eeprom,
            sfp: Sfp::new(),
        }
    }

    pub(crate) fn reset(&mut self) {
        self.sfp = Sfp::new();
    }
}

impl Device {
    pub(crate) fn effect_read(&self, effect: Effect, i: u32, at: u32) -> u32 {
        match effect {
            Effect::Status => {
                let disabled = self.regs.load(offset::CTRL) & CTRL_GIO_DIS != 0;
                if disabled { 0 } else { STATUS_GIO }
            }
            Effect::I2cctl => self.slow().sfp.read(),
            Effect::Swsm => {
                let value = self.regs.load(at);
                self.regs.store(at, value | SWSM_SMBI);
                value
            }
            Effect::Links => {
                if self.link() {
                    LINKS_UP
                } else {
                    0
                }
            }
            Effect::Frtimer => (self.clock.now() / 1000) as u32,
            Effect::Systim => {
                let now = self.clock.now();
                if at == offset::SYSTIML {
                    now as u32
                } else {
                    (now >> 32) as u32
                }
            }
            Effect::Eicr => self.irq.read_eicr(),
            Effect::Eics => self.irq.causes(),
            Effect::Eims => self.irq.mask(),
            Effect::EimsEx => self.irq.mask_ex(i),
            Effect::Eimc | Effect::EicsEx | Effect::EimcEx => 0,
            Effect::Ctrl
            | Effect::Eec
            | Effect::Eerd
            | Effect::Msca
            | Effect::Autoc
            | Effect::Rxctrl
            | Effect::Eiac
            | Effect::Eiam
            | Effect::EiamEx
            | Effect::Gpie
            | Effect::Eitr => self.regs.load(at),
        }
    }

    pub(crate) fn effect_write(&self, effect: Effect, i: u32, at: u32, value: u32) {
        match effect {
            Effect::Ctrl => self.write_ctrl(value),
            Effect::Rxctrl => {
                let was = self.regs.swap(at, value);
                self.changed();
                if was & !value & RXCTRL_RXEN != 0 {
                    // Once the write is done nothing is written to the guest's buffers any more.
                    self.quiesce();
                }
                self.kick();
            }
            Effect::Eec => {
                let grant = if value & EEC_REQUEST != 0 {
                    EEC_GRANT
                } else {
                    0
                };
                let fixed = self.regs.load(at) & 0x7f00;
                self.regs
                    .store(at, value & !(0x7f00 | EEC_GRANT) | fixed | grant);
            }
            Effect::Eerd => {
                if value & EERD_START != 0 {
                    let word = self.slow().eeprom.word((value >> 2 & 0x3fff) as usize);
                    self.regs
                        .store(at, u32::from(word) << 16 | value & 0xfffc | EERD_DONE);
                }
            }
            Effect::I2cctl => self.slow().sfp.write(value),
            Effect::Swsm => self.regs.store(at, value),
            Effect::Msca => self.regs.store(at, value & !MSCA_COMMAND),
            Effect::Autoc => self.regs.store(at, value & !AUTOC_RESTART),
            Effect::Status | Effect::Links | Effect::Frtimer | Effect::Systim => {}
            Effect::Eicr => self.irq.write_eicr(value),
            Effect::Eics => self.interrupt(|| self.irq.write_eics(value)),
            Effect::Eims => self.interrupt(|| self.irq.write_eims(value)),
            Effect::Eimc => self.irq.write_eimc(value),
            Effect::EicsEx => self.interrupt(|| self.irq.write_eics_ex(i, value)),
            Effect::EimsEx => self.interrupt(|| self.irq.write_eims_ex(i, value)),
            Effect::EimcEx => self.irq.write_eimc_ex(i, value),
            Effect::Eiac => {
                self.regs.store(at, value);
                self.irq.write_eiac(value);
            }
            Effect::Eiam => {
                self.regs.store(at, value);
                self.irq.write_eiam(value);
            }
            Effect::EiamEx => {
                self.regs.store(at, value);
                self.irq.write_eiam_ex(i, value);
            }
            Effect::Gpie => {
                self.regs.store(at, value);
                self.irq.write_gpie(value);
            }
            Effect::Eitr => self.regs.store(at, value & 0x0fff_fff8),
        }
    }

    /// Changes causes or masks and sends what became due; the engine waits out the rest.
    fn interrupt(&self, change: impl FnOnce()) {
        change();
        self.deliver();
        self.kick();
    }

    fn write_ctrl(&self, value: u32) {
        if value & (CTRL_RST | CTRL_LNK_RST) != 0 {
            self.reset_registers();
            return;
        }
        self.regs.store(offset::CTRL, value);
        self.changed();
        if value & CTRL_GIO_DIS != 0 {
            self.quiesce();
        }
        self.kick();
    }
}
