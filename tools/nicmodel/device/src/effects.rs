// SPDX-License-Identifier: GPL-2.0
//! Registers with a behaviour of their own. All of it runs in the transport's thread.

use arbitrary_int::traits::Integer;
use arbitrary_int::u5;

use crate::device::Device;
use crate::eeprom::Eeprom;
use crate::fault::Kind;
use crate::function::PciFunction;
use crate::link::Speed;
use crate::module::{self, Module};
use crate::regs::bits::{
    Autoc, Ctrl, Eec, Eerd, Eitr, Esdp, Gssr, I2cctl, Links, Mmngc, Msca, Register, Rxctrl, Status,
    Swsm, Wuc, Wus,
};
use crate::regs::{Entry, offset};
use crate::sfp::Sfp;

/// State that only the slow path uses.
#[derive(Debug)]
pub(crate) struct Slow {
    pub(crate) eeprom: Eeprom,
    pub(crate) sfp: Sfp,
    /// The time of the first read of SWSM that wanted SMBI since it was given back.
    pub(crate) smbi_wanted: Option<u64>,
    /// The time at which a word of the EEPROM was asked for.
    word_asked: u64,
}

impl Slow {
    pub(crate) fn new(eeprom: Eeprom) -> Self {
        Self {
            eeprom,
            sfp: Sfp::new(Some(Module::new(module::Kind::Sr))),
            smbi_wanted: None,
            word_asked: 0,
        }
    }

    pub(crate) fn reset(&mut self) {
        self.sfp.release();
    }
}

impl Device {
    pub(crate) fn effect_read(&self, entry: &Entry, i: u32, at: u32) -> u32 {
        match entry.offset {
            offset::STATUS => {
                let disabled = self.regs.get::<Ctrl>().gio_dis();
                Status::ZERO.with_gio(!disabled).raw()
            }
            offset::EERD => {
                let value = self.regs.get::<Eerd>();
                value.with_done(value.done() && !self.word_is_late()).raw()
            }
            offset::I2CCTL => self.slow().sfp.read(self.clock.now()).raw(),
            offset::SWSM => {
                let value = self.regs.get::<Swsm>();
                if self.semaphore_is_late() {
                    return value.with_smbi(true).raw();
                }
                self.regs.set(value.with_smbi(true));
                value.raw()
            }
            offset::LINKS => {
                let changes = self.link_changes();
                let links = self.links();
                self.note_known(changes);
                links.raw()
            }
            offset::ESDP => {
                let full = self.slow().sfp.module().is_some();
                self.regs.get::<Esdp>().with_sdp2_data(full).raw()
            }
            offset::GSSR => {
                let gssr = self.regs.get::<Gssr>();
                if self.faults.take(Kind::FirmwareBusy).is_some() {
                    self.regs.set(gssr.with_firmware(u5::MAX));
                } else if gssr.firmware() == u5::MAX {
                    self.regs.set(gssr.with_firmware(u5::ZERO));
                }
                self.regs.load(at)
            }
            offset::MMNGC => Mmngc::ZERO.with_mng_veto(self.faults.veto()).raw(),
            offset::FRTIMER => (self.clock.now() / 1000) as u32,
            offset::SYSTIML | offset::SYSTIMH => self.read_systim(at),
            offset::RXSTMPH | offset::TXSTMPH => self.read_stamp(at),
            offset::WUC => self.wuc().raw(),
            offset::WUS => self.wake.status().raw(),
            offset::EICR => self.irq.read_eicr(),
            offset::EICS => self.irq.causes(),
            offset::EIMS => self.irq.mask(),
            offset::EIMS_EX => self.irq.mask_ex(i),
            offset::EIMC | offset::EICS_EX | offset::EIMC_EX => 0,
            _ => self.regs.load(at),
        }
    }

    pub(crate) fn effect_write(&self, entry: &Entry, i: u32, at: u32, value: u32) {
        match entry.offset {
            offset::CTRL => self.write_ctrl(value),
            offset::RXCTRL => {
                let was = Rxctrl::from_raw(self.regs.swap(at, value));
                self.changed();
                if was.rxen() && !Rxctrl::from_raw(value).rxen() {
                    // After the write the card no longer writes to the guest's buffers.
                    self.end_lives();
                    self.quiesce();
                }
                self.kick();
            }
            offset::ESDP => self.watch_link(|| self.regs.store(at, value)),
            offset::FDIRCMD => self.write_fdircmd(value),
            offset::FDIRCTRL => self.write_fdirctrl(value),
            offset::EEC => {
                let value = Eec::from_raw(value);
                let fixed = self.regs.get::<Eec>().fixed();
                self.regs
                    .set(value.with_fixed(fixed).with_ee_gnt(value.ee_req()));
            }
            offset::EERD => {
                let value = Eerd::from_raw(value);
                if value.start() {
                    let mut slow = self.slow();
                    slow.word_asked = self.clock.now();
                    let word = slow.eeprom.word(value.addr().as_usize());
                    self.regs.set(
                        Eerd::ZERO
                            .with_addr(value.addr())
                            .with_data(word)
                            .with_done(true),
                    );
                }
            }
            offset::I2CCTL => {
                let now = self.clock.now();
                self.slow().sfp.write(I2cctl::from_raw(value), now);
            }
            offset::SWSM => {
                if !Swsm::from_raw(value).smbi() {
                    self.slow().smbi_wanted = None;
                }
                self.regs.store(at, value);
            }
            offset::MSCA => self.regs.set(Msca::from_raw(value).with_mdicmd(false)),
            offset::AUTOC => {
                let value = Autoc::from_raw(value);
                self.watch_link(|| self.regs.set(value.with_restart_an(false)));
                if value.restart_an() {
                    self.note_start();
                }
            }
            offset::STATUS
            | offset::LINKS
            | offset::MMNGC
            | offset::FRTIMER
            | offset::RXSTMPH
            | offset::TXSTMPH => {}
            offset::SYSTIML | offset::SYSTIMH => self.write_systim(at, value),
            offset::TIMINCA => {
                self.settle_systim();
                self.regs.store(at, value);
            }
            offset::TSYNCRXCTL | offset::TSYNCTXCTL => self.write_stamping(at, value),
            offset::WUC => self.write_wuc(Wuc::from_raw(value)),
            offset::WUS => self.wake.clear(Wus::from_raw(value)),
            offset::EICR => self.irq.write_eicr(value),
            offset::EICS => self.interrupt(|| self.irq.write_eics(value)),
            offset::EIMS => self.interrupt(|| self.irq.write_eims(value)),
            offset::EIMC => self.irq.write_eimc(value),
            offset::EICS_EX => self.interrupt(|| self.irq.write_eics_ex(i, value)),
            offset::EIMS_EX => self.interrupt(|| self.irq.write_eims_ex(i, value)),
            offset::EIMC_EX => self.irq.write_eimc_ex(i, value),
            offset::EIAC => {
                self.regs.store(at, value);
                self.irq.write_eiac(value);
            }
            offset::EIAM => {
                self.regs.store(at, value);
                self.irq.write_eiam(value);
            }
            offset::EIAM_EX => {
                self.regs.store(at, value);
                self.irq.write_eiam_ex(i, value);
            }
            offset::GPIE => {
                self.regs.store(at, value);
                self.irq.write_gpie(value);
            }
            offset::EITR | offset::EITR_HIGH => self.regs.store(at, value & Eitr::WRITABLE),
            _ => self.regs.store(at, value),
        }
    }

    /// Whether SMBI, which is wanted now, cannot be taken yet.
    fn semaphore_is_late(&self) -> bool {
        let Some(late) = self.faults.lasting(Kind::LateSemaphore) else {
            return false;
        };
        let now = self.clock.now();
        let wanted = *self.slow().smbi_wanted.get_or_insert(now);
        now - wanted < u64::from(late) * 1_000_000
    }

    /// Whether the word of the EEPROM that was asked for is not there yet.
    fn word_is_late(&self) -> bool {
        self.faults.lasting(Kind::SlowEeprom).is_some_and(|late| {
            self.clock.now() - self.slow().word_asked < u64::from(late) * 1_000_000
        })
    }

    fn links(&self) -> Links {
        let forced = self.regs.get::<Autoc>().flu();
        let speed = self.speed().or_else(|| forced.then(|| self.forced_speed()));
        let speed = match speed {
            Some(Speed::Ten) => Links::SPEED_10G,
            Some(Speed::One) => Links::SPEED_1G,
            None if self.faults.take(Kind::FalseLink).is_some() => Links::SPEED_10G,
            None => return Links::ZERO,
        };
        Links::ZERO
            .with_link_up(true)
            .with_link_speed(speed)
            .with_link_status(true)
    }

    /// Changes causes or masks and sends due interrupts; the engine delays the others.
    pub(crate) fn interrupt(&self, change: impl FnOnce()) {
        change();
        self.deliver();
        self.kick();
    }

    fn write_ctrl(&self, value: u32) {
        let value = Ctrl::from_raw(value);
        if self.faults.stuck() {
            // The bit of a reset that never ends can be read.
            self.regs.set(value.with_gio_dis(false));
            return;
        }
        if value.rst() || value.lnk_rst() {
            self.reset_registers();
            return;
        }
        self.regs.set(value);
        self.changed();
        if value.gio_dis() {
            self.end_lives();
            self.quiesce();
        }
        self.kick();
    }
}
