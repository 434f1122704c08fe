// SPDX-License-Identifier: GPL-2.0
//! The state of a port between accesses, and the facts that rules look at.

use super::chance::{Chance, Delay};
use super::queue::{Direction, ENABLE, Place, Queue, RingRegister, Stage};
use super::tables::Tables;
use crate::descriptor::{SIZE, TxData, TxType};
use crate::device::Device;
use crate::regs::bits::{
    Causes, Ctrl, CtrlExt, DcaRxctrl, Dtxmxszrq, Eec, Eerd, Eitr, Esdp, Fdircmd, Fdirctrl, GcrExt,
    Gpie, Gssr, Hlreg0, Ivar, Mrqc, Rdlen, Rdrxctl, Register, Rfctl, Rscctl, Rxctrl, Rxdctl,
    Rxpbsize, Secrxctrl, Secrxstat, Srrctl, Status, Swsm,
};
use crate::regs::file::RegisterFile;
use crate::regs::{Access, Entry, offset};

/// Owner bits of software in SW_FW_SYNC, and how far those of firmware lie above them.
const SOFTWARE_OWNERS: u32 = 0x1f;
const FIRMWARE_SHIFT: u32 = 5;
/// Nanoseconds that a laser takes to light up: 100 ms, less what clocks of host and guest differ.
const LASER_TIME: u64 = 95_000_000;
/// Nanoseconds after which a reset is over, whether a driver looks or not.
const RESET_TIME: u64 = 10_000_000;
/// Descriptors of the longest ring that the data sheet vouches for.
const MAX_DESCRIPTORS: u32 = 8192;

/// A port apart from its queues.
#[derive(Debug, Default)]
pub(crate) struct Port {
    /// A reset was started, and CTRL not yet read without it.
    pub(crate) resetting: bool,
    /// STATUS.GIO was set when it was read last under CTRL.GIO_DIS.
    pub(crate) master_stuck: bool,
    /// STATUS was read under CTRL.GIO_DIS.
    pub(crate) master_polled: bool,
    /// Transmit was flushed by loopback and Buffers_Clear.
    pub(crate) flushed: bool,
    /// The last reset has to be repeated.
    pub(crate) owes_reset: bool,
    /// A queue or the receiver was enabled since the last reset.
    pub(crate) active: bool,
    pub(crate) auto_read_seen: bool,
    pub(crate) dma_init_seen: bool,
    /// SECRX_RDY was read as 1 under RX_DIS.
    pub(crate) secrx_polled: bool,
    /// SWSM.SMBI was read as 0, which takes it.
    smbi: bool,
    /// SWSM.SWESMBI was set and read back as 1.
    swesmbi: bool,
    reset_left: Delay,
    reset_at: u64,
    master_left: Delay,
    auto_read_left: Delay,
    dma_init_left: Delay,
    secrx_left: Delay,
    /// The next reset that is seen comes from CTRL.
    asked_for: bool,
    /// When the laser was turned on.
    laser_since: Option<u64>,
    /// A word of the EEPROM was asked for, and EERD not read since then.
    word_asked: bool,
    /// FDIRCTRL.INIT_DONE was read as 1 since the table was set up.
    pub(crate) table_seen: bool,
    /// A command was written to offset::FDIRCMD, and not seen done.
    pub(crate) commanded: bool,
    table_left: Delay,
    command_left: Delay,
}

impl Port {
    /// As a reset leaves it. One by CTRL takes its time and may have to be repeated.
    pub(crate) fn reset(&mut self, chance: &mut Chance, now: u64) {
        let asked_for = std::mem::take(&mut self.asked_for);
        *self = Self {
            resetting: asked_for,
            // The second of two resets need not be repeated.
            owes_reset: asked_for && self.master_stuck,
            reset_at: now,
            auto_read_left: chance.delay(20),
            dma_init_left: chance.delay(20),
            reset_left: if asked_for {
                chance.delay(7)
            } else {
                Delay::default()
            },
            ..Self::default()
        };
    }

    /// Follows a write of ESDP, which may turn the laser on or off.
    pub(crate) fn write_laser(&mut self, value: u32, regs: &RegisterFile, now: u64) {
        let dark = Esdp::from_raw(value).sdp3_data();
        if dark {
            self.laser_since = None;
        } else if regs.get::<Esdp>().sdp3_data() {
            self.laser_since = Some(now);
        }
    }

    pub(crate) fn owns_semaphores(&self) -> bool {
        self.smbi && self.swesmbi
    }

    /// Whether a write of SW_FW_SYNC takes a resource that the firmware has.
    pub(crate) fn takes_taken(&self, regs: &RegisterFile, value: u32) -> bool {
        let was = regs.load(offset::GSSR);
        let taken = value & !was & SOFTWARE_OWNERS;
        taken & (was >> FIRMWARE_SHIFT) != 0
    }

    /// Follows a write, after the rules were asked.
    pub(crate) fn write(&mut self, at: u32, value: u32, regs: &RegisterFile, chance: &mut Chance) {
        match at {
            offset::CTRL => {
                let ctrl = Ctrl::from_raw(value);
                if ctrl.rst() || ctrl.lnk_rst() {
                    self.asked_for = true;
                } else if ctrl.gio_dis() && !regs.get::<Ctrl>().gio_dis() {
                    self.master_polled = false;
                    // A card that never accessed memory has nothing outstanding.
                    self.master_left = if self.active && chance.once_in(8) {
                        Delay::NEVER
                    } else {
                        chance.delay(60)
                    };
                }
            }
            offset::GCR_EXT => {
                let clears = GcrExt::from_raw(value).buffers_clear();
                self.flushed |= clears && regs.get::<Hlreg0>().lpbk();
            }
            offset::SECRXCTRL => {
                if Secrxctrl::from_raw(value).rx_dis() {
                    self.secrx_left = chance.delay(20);
                }
                self.secrx_polled = false;
            }
            offset::EERD => self.word_asked = Eerd::from_raw(value).start(),
            offset::RXCTRL => self.active |= Rxctrl::from_raw(value).rxen(),
            offset::FDIRCTRL => {
                self.table_seen = false;
                self.table_left = chance.delay(6);
            }
            offset::FDIRCMD if Fdircmd::from_raw(value).command() != Fdircmd::NONE => {
                self.commanded = true;
                self.command_left = chance.delay(6);
            }
            offset::SWSM => {
                let swsm = Swsm::from_raw(value);
                self.smbi &= swsm.smbi();
                self.swesmbi &= swsm.swesmbi();
            }
            _ => {}
        }
    }

    /// Follows a read of `value`; returns the value that the driver gets.
    pub(crate) fn read(&mut self, at: u32, value: u32, regs: &RegisterFile, now: u64) -> u32 {
        match at {
            offset::CTRL if self.resetting => {
                let is_due = now.saturating_sub(self.reset_at) >= RESET_TIME;
                if !is_due && !self.reset_left.is_over(now) {
                    return Ctrl::from_raw(value).with_rst(true).raw();
                }
                self.resetting = false;
            }
            offset::STATUS if regs.get::<Ctrl>().gio_dis() => {
                self.master_polled = true;
                self.master_stuck = !self.master_left.is_over(now);
                return Status::from_raw(value).with_gio(self.master_stuck).raw();
            }
            offset::EEC => {
                if !self.auto_read_left.is_over(now) {
                    return Eec::from_raw(value).with_auto_rd(false).raw();
                }
                self.auto_read_seen = true;
            }
            offset::RDRXCTL => {
                if !self.dma_init_left.is_over(now) {
                    return Rdrxctl::from_raw(value).with_dmaidone(false).raw();
                }
                self.dma_init_seen = true;
            }
            offset::SECRXSTAT => {
                if !self.secrx_left.is_over(now) {
                    return Secrxstat::from_raw(value).with_secrx_rdy(false).raw();
                }
                self.secrx_polled = regs.get::<Secrxctrl>().rx_dis();
            }
            offset::FDIRCTRL => {
                if !self.table_left.is_over(now) {
                    return Fdirctrl::from_raw(value).with_init_done(false).raw();
                }
                self.table_seen |= Fdirctrl::from_raw(value).init_done();
            }
            offset::FDIRCMD if self.commanded => {
                if !self.command_left.is_over(now) {
                    return Fdircmd::from_raw(value)
                        .with_command(Fdircmd::ADD)
                        .with_filter_valid(false)
                        .raw();
                }
                self.commanded = false;
            }
            offset::EERD => self.word_asked = false,
            offset::SWSM => {
                let swsm = Swsm::from_raw(value);
                self.smbi |= !swsm.smbi();
                self.swesmbi = swsm.swesmbi();
            }
            _ => {}
        }
        value
    }
}

/// All that a rule may look at.
pub(crate) struct Facts<'a> {
    pub(crate) device: &'a Device,
    pub(crate) regs: &'a RegisterFile,
    pub(crate) at: u32,
    /// The value that is written.
    pub(crate) value: u32,
    pub(crate) entry: Option<&'static Entry>,
    pub(crate) port: &'a Port,
    pub(crate) queue: Option<(Place, Queue)>,
    pub(crate) tables: &'a Tables,
    /// The function is bus master.
    pub(crate) master: bool,
    /// CTRL.GIO_DIS is set.
    pub(crate) gio_dis: bool,
}

impl Facts<'_> {
    pub(crate) fn is_read_only(&self) -> bool {
        matches!(self.at, offset::STATUS | offset::LINKS)
            || self
                .entry
                .is_some_and(|entry| entry.access == Access::ReadOnly)
    }

    /// Whether the software owns the bus of a module.
    pub(crate) fn owns_bus(&self) -> bool {
        self.regs.get::<Gssr>().sw_phy().value() != 0
    }

    /// Whether the software owns the registers of the MAC.
    pub(crate) fn owns_mac(&self) -> bool {
        self.regs.get::<Gssr>().sw_mac()
    }

    /// Whether the write turns the laser off.
    pub(crate) fn darkens(&self) -> bool {
        self.at == offset::ESDP
            && Esdp::from_raw(self.value).sdp3_data()
            && !self.regs.get::<Esdp>().sdp3_data()
    }

    /// Whether the laser was turned on so short a time ago that it is not lit yet.
    pub(crate) fn lights_up(&self) -> bool {
        let since = |then| self.device.clock.now().saturating_sub(then);
        self.port
            .laser_since
            .is_some_and(|then| since(then) < LASER_TIME)
    }

    /// Whether the write resets a link that is up and held by firmware.
    pub(crate) fn resets_held_link(&self) -> bool {
        Ctrl::from_raw(self.value).lnk_rst() && self.device.link() && self.device.faults.veto()
    }

    /// Whether the write asks for a word of the EEPROM while another one may be on its way.
    pub(crate) fn asks_twice(&self) -> bool {
        self.at == offset::EERD && self.port.word_asked && Eerd::from_raw(self.value).start()
    }

    /// Whether the access configures the card, as opposed to resetting it.
    pub(crate) fn is_configuration(&self) -> bool {
        self.queue.is_some() || matches!(self.at, offset::RXCTRL | offset::DMATXCTL)
    }

    pub(crate) fn stage(&self) -> Stage {
        self.queue.map_or(Stage::Reset, |(_, queue)| queue.stage)
    }

    pub(crate) fn is_transmit(&self) -> bool {
        self.queue
            .is_some_and(|(place, _)| place.direction == Direction::Transmit)
    }

    /// Whether the card may send from this queue at any rate.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.queue
            .is_some_and(|(place, _)| self.tables.is_unlimited(place.queue))
    }

    fn ring(&self, register: u32) -> u32 {
        self.queue
            .map_or(0, |(place, _)| self.regs.load(place.base() + register))
    }

    /// Whether the written tail is another one than the head.
    pub(crate) fn moves_tail(&self) -> bool {
        self.value != self.ring(0x10)
    }

    /// Whether the descriptor before the written tail is of a packet that goes on, or of none.
    pub(crate) fn splits_packet(&self) -> bool {
        let descriptors = self.ring_descriptors();
        if !self.is_transmit() || !self.moves_tail() || self.value >= descriptors {
            return false;
        }
        let last = self.value.checked_sub(1).unwrap_or(descriptors - 1);
        let base = u64::from(self.ring(4)) << 32 | u64::from(self.ring_base());
        let at = base + u64::from(last * SIZE) + 8;
        // One that cannot be read has a rule of its own.
        self.device.memory.view().load64(at).is_ok_and(|raw| {
            let last = TxData::new_with_raw_value(raw);
            let is_context = last.dext() && last.dtyp() == Ok(TxType::Context);
            !last.eop() || is_context
        })
    }

    /// Whether ENABLE was written.
    pub(crate) fn was_asked_to_run(&self) -> bool {
        matches!(
            self.stage(),
            Stage::Enabling | Stage::Enabled | Stage::Draining
        )
    }

    pub(crate) fn ring_base(&self) -> u32 {
        self.ring(0)
    }

    pub(crate) fn ring_descriptors(&self) -> u32 {
        Rdlen::from_raw(self.ring(8)).descriptors()
    }

    pub(crate) fn ring_length_is_good(&self) -> bool {
        let length = self.ring(8);
        let held = Rdlen::ZERO.with_len(Rdlen::from_raw(length).len());
        (1..=MAX_DESCRIPTORS).contains(&held.descriptors()) && held.raw() == length
    }

    /// Whether the transmitter asks for as much at a time as it can, or has to share.
    pub(crate) fn requests_are_long(&self) -> bool {
        let is_shared = self.regs.load(offset::MTQC) != 0;
        is_shared || self.regs.get::<Dtxmxszrq>().max_bytes_num_req().value() == 0xfff
    }

    /// Whether the bit is set that a reset sets, and a driver has to clear.
    pub(crate) fn has_dca_bit(&self) -> bool {
        self.queue.is_some_and(|(place, _)| {
            let at = match place.queue {
                queue @ 0..16 => offset::DCA_RXCTRL + 4 * queue,
                queue => offset::DCA_RXCTRL_HIGH + offset::QUEUE * queue,
            };
            DcaRxctrl::from_raw(self.regs.load(at)).must_be_0()
        })
    }

    pub(crate) fn buffer_sizes_are_good(&self) -> bool {
        let Some((place, _)) = self.queue else {
            return true;
        };
        let srrctl = self.regs.nth::<Srrctl>(place.queue);
        let is_whole = [Srrctl::LEGACY, Srrctl::ADVANCED].contains(&srrctl.desctype());
        is_whole && (1..=16).contains(&srrctl.bsizepacket().value())
    }

    /// Whether the queue coalesces.
    pub(crate) fn coalesces(&self) -> bool {
        self.queue.is_some_and(|(place, _)| {
            place.direction == Direction::Receive && self.is_coalescing(place.queue)
        })
    }

    fn is_coalescing(&self, queue: u32) -> bool {
        queue < crate::port::QUEUES
            && self.regs.nth::<Rscctl>(queue).rscen()
            && !self.regs.get::<Rfctl>().rsc_dis()
    }

    /// Whether buffers and their number are good for a queue that coalesces.
    pub(crate) fn joined_packets_fit(&self) -> bool {
        let queue = self.queue.map_or(0, |(place, _)| place.queue);
        let srrctl = self.regs.nth::<Srrctl>(queue);
        let size = u32::from(srrctl.bsizepacket().value()) * 1024;
        srrctl.desctype() == Srrctl::ADVANCED
            && srrctl.bsizeheader().value() >= 2
            && srrctl.bsizepacket().value() >= 2
            && self.regs.nth::<Rscctl>(queue).descriptors() * size < 1 << 16
    }

    /// Whether a running queue coalesces whose vector has no interval, or one that is too short.
    pub(crate) fn coalesces_without_interval(&self) -> bool {
        let delay = 4 * (u16::from(self.regs.get::<Gpie>().rsc_delay().value()) + 1);
        (0..crate::port::QUEUES).any(|queue| {
            let entry = self
                .regs
                .nth::<Ivar>(queue / 2)
                .entry(2 * (queue as usize & 1));
            self.is_coalescing(queue)
                && self.regs.nth::<Rxdctl>(queue).enable()
                && entry.int_alloc_val()
                && self
                    .regs
                    .nth::<Eitr>(entry.int_alloc().value().into())
                    .itr_interval()
                    .value()
                    * 2
                    <= delay
        })
    }

    /// Whether a ring register changes that must not while its queue is enabled. DROP_EN may: the
    /// C driver sets it when flow control is negotiated.
    pub(crate) fn changes_ring(&self) -> bool {
        let drop = Srrctl::ZERO.with_drop_en(true).raw();
        match self.queue {
            Some((place, _)) if place.register == RingRegister::BufferSizes => {
                (self.regs.load(self.at) ^ self.value) & !drop != 0
            }
            _ => true,
        }
    }

    /// Whether the sizes of the packet buffers exceed their memories.
    pub(crate) fn packet_buffers_overlap(&self) -> bool {
        let sum = |first: u32| {
            (0..8)
                .map(|i| {
                    u32::from(
                        Rxpbsize::from_raw(self.regs.load(first + 4 * i))
                            .size()
                            .value(),
                    )
                })
                .sum::<u32>()
        };
        let filters = match self.regs.get::<Fdirctrl>().pballoc().value() {
            0 => 0,
            size => 32 << size,
        };
        sum(offset::RXPBSIZE0) + filters > 512 || sum(offset::TXPBSIZE0) > 160
    }

    /// Whether filters are perfect ones.
    fn matches_perfectly(&self) -> bool {
        self.regs.get::<Fdirctrl>().perfect_match()
    }

    /// Whether the write sets up the table of the flow director in another way.
    pub(crate) fn sets_up_table(&self) -> bool {
        // A driver may set up the same table again, to empty it.
        let done = Fdirctrl::ZERO.with_init_done(true).raw();
        self.at == offset::FDIRCTRL && (self.regs.load(self.at) ^ self.value) & !done != 0
    }

    /// Whether the write is a command to the flow director.
    pub(crate) fn commands(&self) -> bool {
        self.at == offset::FDIRCMD && Fdircmd::from_raw(self.value).command() != Fdircmd::NONE
    }

    /// Whether the write is one of the next command, or of its filter, while the last one may not
    /// be done. Signature filters have no answer.
    pub(crate) fn commands_twice(&self) -> bool {
        let is_filter = (offset::FDIRIP..offset::FDIRCMD).contains(&self.at);
        self.port.commanded && self.matches_perfectly() && (is_filter || self.commands())
    }

    /// Whether the write changes the masks of filters that there are.
    pub(crate) fn masks_filters(&self) -> bool {
        let masks = matches!(
            self.at,
            offset::FDIRDIP4M..=offset::FDIRUDPM | offset::FDIRM
        );
        masks
            && self.regs.load(self.at) != self.value
            && self.matches_perfectly()
            && !self.device.filters.are_none()
    }

    /// Whether the write tells the firmware that the driver goes.
    pub(crate) fn unloads(&self) -> bool {
        self.at == offset::CTRL_EXT
            && self.regs.get::<CtrlExt>().drv_load()
            && !CtrlExt::from_raw(self.value).drv_load()
    }

    /// Whether a message masks its queue vector, but leaves its cause.
    pub(crate) fn masks_without_clearing(&self) -> bool {
        let queues = |at| Causes::new_with_raw_value(self.regs.load(at)).rtxq();
        queues(offset::EIAM_EX) & !queues(offset::EIAC) != 0
    }

    /// Whether a message clears causes that share their vector.
    pub(crate) fn clears_others(&self) -> bool {
        let eiac = Causes::new_with_raw_value(self.regs.load(offset::EIAC));
        eiac.other().value() != 0
    }

    /// Whether a table in use has words that were not written since the last reset.
    pub(crate) fn unwritten_table(&self) -> bool {
        let rss = self.regs.get::<Mrqc>().mrqe().value() != 0;
        self.tables.first_unwritten(rss).is_some()
    }
}

/// Whether the word has ENABLE set.
pub(crate) fn enables(value: u32) -> bool {
    value & ENABLE != 0
}
