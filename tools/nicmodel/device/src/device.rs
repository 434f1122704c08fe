// SPDX-License-Identifier: GPL-2.0
//! One function of the card: everything that its two threads share.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arbitrary_int::u5;

use crate::clock::Clock;
use crate::config::{Config, MSIX_BAR, MSIX_BAR_SIZE};
use crate::counters::{Totals, WideCounters, bump};
use crate::eeprom::Eeprom;
use crate::effects::Slow;
use crate::fault::{Faults, Kind, is_polled};
use crate::fdir::Filters;
use crate::function::{Kick, Notifier, PciFunction};
use crate::irq::{CAUSE_ECC, Interrupts, VECTORS};
use crate::judge::{self, Judge};
use crate::link::Link;
use crate::memory::DmaMemory;
use crate::port::QUEUES;
use crate::ptp::Systim;
use crate::regs::bits::{Autoc, Gssr, Hlreg0, Rah, Register, Rxdctl};
use crate::regs::file::RegisterFile;
use crate::regs::{Access, Entry, Index, map, offset};
use crate::trace::Trace;
use crate::wake::Wake;
use crate::watch::{self, Watches};

/// The longest that a slow read takes.
const LONGEST_POLL: Duration = Duration::from_secs(1);

/// The properties by which one function differs from another.
#[derive(Debug, Clone)]
pub struct Identity {
    /// PCI device id.
    pub device_id: u16,
    /// MAC address in the EEPROM.
    pub mac: [u8; 6],
    /// Whether the guest has the ring pages mapped from the start.
    pub mapped: bool,
}

/// One function of the card.
pub struct Device {
    /// Device id and address.
    pub identity: Identity,
    /// The words behind BAR 0.
    pub regs: RegisterFile,
    /// Interrupts.
    pub irq: Interrupts,
    /// Guest memory.
    pub memory: DmaMemory,
    /// Totals for the control socket.
    pub totals: Totals,
    /// Wide counters behind registers.
    pub wide: WideCounters,
    /// Lies to tell.
    pub faults: Faults,
    /// The register accesses, on request.
    pub trace: Trace,
    /// The register accesses that requests wait for.
    pub watches: Watches,
    /// Filters that choose queues.
    pub filters: Filters,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) slow: Mutex<Slow>,
    pub(crate) config: Config,
    pub(crate) link: Link,
    pub(crate) wake: Wake,
    pub(crate) systim: Mutex<Systim>,
    /// When the turn of the engine began.
    pub(crate) turn: AtomicU64,
    kick: OnceLock<Arc<dyn Kick>>,
    /// Changes with every write that the engine's copy of the configuration may depend on.
    generation: AtomicU64,
    /// Changes with every reset.
    epoch: AtomicU64,
    /// Change whenever a receive queue is disabled.
    lives: [AtomicU32; QUEUES as usize],
    gate: Gate,
    /// The guest has ring pages mapped: no access to them is seen.
    mapped: AtomicBool,
    judge: Option<Judge>,
}

/// Lets the transport's thread keep the engine out of the device for a moment.
///
/// Neither waits for the guest, so that waiting for each other is bounded.
#[derive(Debug, Default)]
struct Gate {
    closed: AtomicBool,
    inside: AtomicBool,
}

impl Device {
    /// A device whose registers lie in `regs`.
    pub fn new(identity: Identity, regs: RegisterFile, clock: Arc<dyn Clock>) -> Self {
        let eeprom = Eeprom::new(identity.mac);
        let config = Config::new(identity.device_id);
        let device = Self {
            mapped: AtomicBool::new(identity.mapped),
            slow: Mutex::new(Slow::new(eeprom)),
            identity,
            regs,
            irq: Interrupts::default(),
            memory: DmaMemory::default(),
            totals: Totals::default(),
            wide: WideCounters::default(),
            faults: Faults::default(),
            trace: Trace::default(),
            watches: Watches::default(),
            filters: Filters::default(),
            clock,
            config,
            link: Link::default(),
            wake: Wake::default(),
            systim: Mutex::default(),
            turn: AtomicU64::default(),
            kick: OnceLock::new(),
            generation: AtomicU64::new(1),
            epoch: AtomicU64::new(1),
            lives: [const { AtomicU32::new(0) }; QUEUES as usize],
            gate: Gate::default(),
            judge: None,
        };
        device.load_defaults();
        device
    }

    /// The device under a judge.
    pub fn judged(mut self, judge: Judge) -> Self {
        self.judge = Some(judge);
        self.load_defaults();
        self
    }

    /// The judge, if there is one.
    pub fn judge(&self) -> Option<&Judge> {
        self.judge.as_ref()
    }

    pub(crate) fn is_bus_master(&self) -> bool {
        self.config.is_bus_master()
    }

    pub(crate) fn uses_msix(&self) -> bool {
        self.config.uses_msix()
    }

    pub(crate) fn power_state(&self) -> u8 {
        self.config.power_state()
    }

    /// Whether DMA is possible as configuration space is set. Without a judge it always is in D0.
    pub(crate) fn may_access_memory(&self) -> bool {
        let is_free = self.judge.is_none() && !self.faults.hides_registers();
        !self.config.is_asleep() && (is_free || self.is_bus_master())
    }

    /// Whether frames leave: a judged card stops its transmitter without a link.
    pub(crate) fn transmits(&self) -> bool {
        self.judge.is_none() || self.mac_link() || self.loopback()
    }

    /// Whether sent frames loop back to the port instead of leaving.
    pub(crate) fn loopback(&self) -> bool {
        self.regs.get::<Hlreg0>().lpbk()
    }

    /// A queue starts or stops some time after it was told to.
    pub(crate) fn queue_changes(&self, at: u32, value: u32) {
        self.end_life(at, value);
        self.regs.store(at, value);
        self.quiesce();
        self.kick();
    }

    /// Number of the current life of a receive queue: it changes whenever the queue is disabled.
    pub(crate) fn life(&self, queue: u32) -> u32 {
        let life = self.lives.get(queue as usize);
        life.map_or(0, |life| life.load(Ordering::Acquire))
    }

    /// All receive queues are disabled.
    pub(crate) fn end_lives(&self) {
        for life in &self.lives {
            life.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Follows a write that may disable a receive queue.
    fn end_life(&self, at: u32, value: u32) {
        let (queue, register) = (
            at.wrapping_sub(offset::RDBAL) / offset::QUEUE,
            at % offset::QUEUE,
        );
        if register == offset::RXDCTL % offset::QUEUE
            && !Rxdctl::from_raw(value).enable()
            && let Some(life) = self.lives.get(queue as usize)
        {
            life.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Sets the engine's waker. Only the first call counts.
    pub fn set_kick(&self, kick: Arc<dyn Kick>) {
        let _ = self.kick.set(kick);
    }

    pub(crate) fn kick(&self) {
        if let Some(kick) = self.kick.get() {
            kick.kick();
        }
    }

    /// Generation of the configuration.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn changed(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Number of the current life: it changes with every reset.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Whether the guest has ring pages mapped, so that no access to them is seen.
    pub fn ring_pages_mapped(&self) -> bool {
        self.mapped.load(Ordering::Relaxed)
    }

    /// Sends the interrupts that are due now.
    pub(crate) fn deliver(&self) {
        self.irq.deliver(&self.regs, self.clock.now());
        bump(&self.totals.interrupts, self.irq.take_sent());
    }

    /// The engine comes in, as soon as it may: the frames of its turn would be lost outside.
    pub(crate) fn enter(&self) {
        loop {
            self.gate.inside.store(true, Ordering::SeqCst);
            if !self.gate.closed.load(Ordering::SeqCst) {
                return;
            }
            self.gate.inside.store(false, Ordering::SeqCst);
            std::thread::yield_now();
        }
    }

    /// The engine goes out.
    pub(crate) fn leave(&self) {
        self.gate.inside.store(false, Ordering::SeqCst);
    }

    /// Runs `work` while the engine is outside.
    fn alone<T>(&self, work: impl FnOnce() -> T) -> T {
        // A second closer (disconnect during a reset) waits for the first.
        while self.gate.closed.swap(true, Ordering::SeqCst) {
            std::thread::yield_now();
        }
        while self.gate.inside.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let result = work();
        self.gate.closed.store(false, Ordering::SeqCst);
        result
    }

    fn load_defaults(&self) {
        for entry in map::REGISTERS {
            for i in 0..entry.count {
                let at = entry.offset + i * entry.stride;
                // Most are as they were. In a process that was forked, a store copies a page.
                if self.regs.load(at) != entry.reset {
                    self.regs.store(at, entry.reset);
                }
            }
        }
        let mac = self.identity.mac;
        self.regs.store(
            offset::RAL,
            u32::from_le_bytes([mac[0], mac[1], mac[2], mac[3]]),
        );
        self.regs.set(
            Rah::ZERO
                .with_rah(u16::from_le_bytes([mac[4], mac[5]]))
                .with_av(true),
        );
        if !self.has_cage() {
            let autoc = self.regs.get::<Autoc>();
            self.regs.set(self.backplane(autoc));
        }
        if let Some(judge) = &self.judge {
            judge.was_reset(&self.regs, self.clock.now());
        }
    }

    /// Reset by CTRL, which leaves configuration space alone.
    pub(crate) fn reset_registers(&self) {
        self.alone(|| {
            self.irq.reset();
            self.wide.clear();
            self.slow().reset();
            self.filters.clear();
            self.load_defaults();
            self.reset_systim();
            self.epoch.fetch_add(1, Ordering::AcqRel);
            self.changed();
        });
        // The laser may be on again, and the mode another one.
        self.watch_link(|| ());
        bump(&self.totals.resets, 1);
        self.kick();
    }

    /// Makes the card misbehave, or behave again.
    pub fn fault(&self, kind: Kind, count: u32, value: u32) {
        self.settle_systim();
        self.faults.arm(kind, count, value);
        match kind {
            Kind::Clear => self.mend(),
            Kind::Remove => self.alone(|| {
                // The guest reads the ring pages without us; they must say the same.
                for page in [offset::RDBAL, offset::TDBAL] {
                    for word in 0..1024 {
                        self.regs.store(page + word * 4, u32::MAX);
                    }
                }
                self.epoch.fetch_add(1, Ordering::AcqRel);
            }),
            Kind::Interrupt => self.interrupt(|| {
                self.irq.write_eics_ex(0, self.irq.mask_ex(0));
                self.irq.write_eics_ex(1, self.irq.mask_ex(1));
            }),
            Kind::MemoryError => self.interrupt(|| self.irq.raise_until_reset(CAUSE_ECC)),
            Kind::Counters => {
                for entry in map::REGISTERS {
                    if entry.access == Access::Counter {
                        for i in 0..entry.count {
                            self.regs.store(entry.offset + i * entry.stride, u32::MAX);
                        }
                    }
                }
            }
            Kind::NoNegotiation => self.regs.store(offset::ANLP1, 0),
            Kind::FirmwareDead => self.set_firmware_owns(0x1e),
            Kind::OldFirmware => self.slow().eeprom.set_old(),
            Kind::NoCrosstalk => self.slow().eeprom.set_sure(),
            Kind::AnyModule => self.slow().eeprom.set_any_module(),
            Kind::DamagedEeprom => self.slow().eeprom.set_damaged(),
            Kind::Lesm => self.slow().eeprom.set_lesm(),
            Kind::LostInterrupts => self.irq.lose(),
            _ => {}
        }
    }

    fn mend(&self) {
        let was_lost = self.faults.hides_registers() || self.faults.stuck();
        self.faults.clear();
        self.slow().eeprom = Eeprom::new(self.identity.mac);
        self.irq.mend();
        self.regs.store(offset::ANLP1, map::NEGOTIATION_BEGUN);
        self.set_firmware_owns(0);
        if was_lost {
            self.reset_registers();
        }
    }

    fn set_firmware_owns(&self, resources: u8) {
        let gssr = self.regs.get::<Gssr>();
        self.regs.set(gssr.with_firmware(u5::new(resources)));
    }

    pub(crate) fn slow(&self) -> std::sync::MutexGuard<'_, Slow> {
        self.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the function is asleep, where it answers no access to its registers.
    fn ignores_access(&self, at: u32) -> bool {
        let asleep = self.config.is_asleep();
        if asleep {
            bump(&self.totals.asleep_accesses, 1);
            if let Some(judge) = &self.judge {
                let detail = format!("{} in D{}", crate::regs::name(at), self.power_state());
                judge.note(judge::rules::POWER_STATE, None, detail);
            }
        }
        asleep
    }

    /// A 32-bit read of BAR 0.
    pub fn register_read(&self, at: u32) -> u32 {
        let value = self.answer(at);
        self.trace.read(at);
        self.watches.note(at, watch::Access::Read);
        value
    }

    fn answer(&self, at: u32) -> u32 {
        if self.faults.hides_registers() || self.ignores_access(at) || self.faults.loses_read(at) {
            return u32::MAX;
        }
        if is_polled(at)
            && let Some(time) = self.faults.take(Kind::SlowPoll)
        {
            std::thread::sleep(Duration::from_millis(time.into()).min(LONGEST_POLL));
        }
        let value = match Index::get().lookup(at) {
            Some((entry, i)) => self.read_known(entry, i, at),
            None => self.regs.load(at),
        };
        match &self.judge {
            Some(judge) => judge.read(self, at, value),
            None => value,
        }
    }

    fn judge_size(&self, offset: u64, length: usize) {
        if let Some(judge) = &self.judge
            && (!offset.is_multiple_of(4) || length != 4)
        {
            let detail = format!("{length} bytes at {offset:#x}");
            judge.note(judge::rules::ACCESS_SIZE, None, detail);
        }
    }

    fn read_known(&self, entry: &Entry, i: u32, at: u32) -> u32 {
        match entry.access {
            Access::Memory | Access::Control | Access::Doorbell | Access::ReadOnly => {
                self.regs.load(at)
            }
            Access::Counter => self.regs.swap(at, 0),
            Access::WideLow(n) => self.wide.read_low(usize::from(n) + i as usize),
            Access::WideHigh(n) => self.wide.read_high(usize::from(n) + i as usize),
            Access::Effect => self.effect_read(entry, i, at),
        }
    }

    /// A 32-bit write of BAR 0.
    pub fn register_write(&self, at: u32, value: u32) {
        self.trace.write(at);
        self.carry_out(at, value);
        self.watches.note(at, watch::Access::Write);
    }

    fn carry_out(&self, at: u32, value: u32) {
        if self.faults.hides_registers() || self.ignores_access(at) {
            return;
        }
        let value = match &self.judge {
            Some(judge) => judge.write(self, at, value),
            None => value,
        };
        if self.faults.ignores_write(at) {
            return;
        }
        match Index::get().lookup(at) {
            Some((entry, i)) => match entry.access {
                Access::Memory => self.regs.store(at, value),
                Access::Control => {
                    self.regs.store(at, value);
                    self.changed();
                }
                Access::Doorbell => {
                    self.end_life(at, value);
                    self.regs.store(at, value);
                    self.kick();
                }
                Access::ReadOnly | Access::Counter | Access::WideLow(_) | Access::WideHigh(_) => {}
                Access::Effect => self.effect_write(entry, i, at, value),
            },
            None => self.regs.store(at, value),
        }
    }
}

impl PciFunction for Device {
    fn config_read(&self, offset: u64, data: &mut [u8]) {
        if self.faults.removed() {
            data.fill(0xff);
        } else {
            self.config.read(offset, data);
        }
    }

    fn config_write(&self, offset: u64, data: &[u8]) {
        let was_asleep = self.config.is_asleep();
        self.config.write(offset, data);
        match (was_asleep, self.config.is_asleep()) {
            // A function loses its state when it is put to sleep (datasheet 4.2.1.4).
            (true, false) => self.reset_registers(),
            (false, true) => self.fall_asleep(),
            _ => {}
        }
    }

    fn bar_size(&self, bar: u32) -> u64 {
        match bar {
            0 => crate::regs::file::BYTES as u64,
            MSIX_BAR => MSIX_BAR_SIZE,
            _ => 0,
        }
    }

    fn bar_read(&self, bar: u32, offset: u64, data: &mut [u8]) {
        data.fill(0);
        if bar != 0 {
            return;
        }
        self.judge_size(offset, data.len());
        let mut done = 0;
        while done < data.len() {
            let Some(at) = offset
                .checked_add(done as u64)
                .and_then(|at| u32::try_from(at).ok())
            else {
                return;
            };
            let start = (at & 3) as usize;
            let take = (4 - start).min(data.len() - done);
            let word = self.register_read(at & !3).to_le_bytes();
            data[done..done + take].copy_from_slice(&word[start..start + take]);
            done += take;
        }
    }

    fn bar_write(&self, bar: u32, offset: u64, data: &[u8]) {
        // The card takes 32-bit writes only; the MSI-X table is the hypervisor's business.
        if bar != 0 {
            return;
        }
        // A filter of flow director and its command go in one piece (C ixgbe_82599.c:1416).
        if !(offset == u64::from(offset::FDIRHASH) && data.len() == 8) {
            self.judge_size(offset, data.len());
        }
        if !offset.is_multiple_of(4) {
            return;
        }
        for (i, word) in data.chunks_exact(4).enumerate() {
            let Some(at) = offset
                .checked_add(4 * i as u64)
                .and_then(|at| u32::try_from(at).ok())
            else {
                return;
            };
            self.register_write(at, u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        }
    }

    fn vectors(&self) -> u32 {
        VECTORS as u32
    }

    fn set_vector(&self, vector: u32, notifier: Option<Arc<dyn Notifier>>) {
        self.irq.set_vector(vector, notifier);
    }

    fn memory(&self) -> &DmaMemory {
        &self.memory
    }

    fn pages_mapped(&self, mapped: bool) {
        self.mapped.store(mapped, Ordering::Relaxed);
    }

    fn quiesce(&self) {
        self.alone(|| ());
    }

    fn reset(&self) {
        self.reset_registers();
        self.config.reset();
        self.wake.reset();
    }

    fn disconnect(&self) {
        for vector in 0..VECTORS as u32 {
            self.irq.set_vector(vector, None);
        }
        self.reset();
        self.memory.clear();
        self.quiesce();
    }
}
