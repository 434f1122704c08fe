// SPDX-License-Identifier: GPL-2.0
//! The card: the model, what lies between it and the kernel, and its far side.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nicmodel_device::clock::Clock;
use nicmodel_device::config::MSIX_BAR;
use nicmodel_device::descriptor::SIZE;
use nicmodel_device::device::{Device, Identity};
use nicmodel_device::fault::Kind as Fault;
use nicmodel_device::function::{Kick, PciFunction};
use nicmodel_device::irq::VECTORS;
use nicmodel_device::memory::Mapped;
use nicmodel_device::module::{Kind, Module};
use nicmodel_device::port::Datapath;
use nicmodel_device::regs::file::RegisterFile;
use nicmodel_device::regs::offset;
use vm_memory::mmap::MmapRegionBuilder;
use vm_memory::{GuestAddress, GuestRegionMmap};

use crate::frame;
use crate::lie::{About, Lie, Lies};
use crate::msix::{Line, Table};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];
/// Bytes that one turn moves in each direction.
const BUDGET: usize = 1 << 16;
/// Frames that arrive in one turn, for one poll of the driver.
const BURST: u32 = 4;
/// Nanoseconds from one turn to the next, while there is something to do; up to the longest while
/// the driver does nothing.
const NEXT: u64 = 10_000;
const LONGEST: u64 = 100_000_000;
/// Messages that are lies: a storm of more is the same, and takes most of a fuzzer's time.
const STORM: u32 = 1000;
/// Queues whose write-backs lies are about.
const QUEUES: u32 = 16;

/// The kernel's time.
#[derive(Default)]
struct Now(AtomicU64);

impl Clock for Now {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn epoch(&self) -> u64 {
        0
    }
}

/// The driver did something that the engine waits for.
#[derive(Default)]
struct Kicked(AtomicBool);

impl Kicked {
    /// Whether it did since the last call. Writes are many, and have the card to themselves: a swap
    /// would be most of what one takes.
    fn take(&self) -> bool {
        let was = self.0.load(Ordering::Relaxed);
        if was {
            self.0.store(false, Ordering::Relaxed);
        }
        was
    }
}

impl Kick for Kicked {
    fn kick(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A ring, by its registers.
#[derive(Clone, Copy)]
struct Ring {
    base: u32,
    is_tx: bool,
}

impl Ring {
    const fn new(queue: u32, is_tx: bool) -> Self {
        let first = if is_tx { offset::TDBAL } else { offset::RDBAL };
        Self {
            base: first + queue * offset::QUEUE,
            is_tx,
        }
    }

    fn head(self) -> u32 {
        let (head, base) = if self.is_tx {
            (offset::TDH, offset::TDBAL)
        } else {
            (offset::RDH, offset::RDBAL)
        };
        self.base + (head - base)
    }

    /// The register behind that of the base's high half.
    fn length(self) -> u32 {
        self.base + 8
    }
}

pub(crate) struct Card {
    device: Arc<Device>,
    mapped: Arc<Mapped>,
    /// On the heap: the card is made on a stack of the kernel's.
    path: Box<Datapath>,
    clock: Arc<Now>,
    kicked: Arc<Kicked>,
    pause: u64,
    table: Table,
    lies: Lies,
    /// Frames that are still to arrive, and the number of the next one.
    arriving: u32,
    next: u32,
    sent: u32,
    /// Messages that were lies.
    storm: u32,
}

impl Card {
    /// A card that says the truth, beside memory that begins at this address for it.
    ///
    /// # Safety
    ///
    /// `memory` is readable and writable for `size` bytes until the process ends, and what is read
    /// there may change at any time.
    pub(crate) unsafe fn new(memory: *mut u8, address: u64, size: u64) -> Option<Self> {
        let clock = Arc::new(Now::default());
        let identity = Identity {
            device_id: 0x10fb,
            mac: MAC,
            mapped: false,
        };
        let mut device = Device::new(identity, RegisterFile::private().ok()?, clock.clone());
        let mapped = Arc::new(Mapped::new(address, size));
        device.memory.restrict(Arc::clone(&mapped));
        let device = Arc::new(device);
        // SAFETY: As the caller promises.
        let builder =
            unsafe { MmapRegionBuilder::<()>::new(size as usize).with_raw_mmap_pointer(memory) };
        let region = builder
            .with_mmap_prot(libc::PROT_READ | libc::PROT_WRITE)
            .with_mmap_flags(libc::MAP_SHARED | libc::MAP_NORESERVE)
            .build()
            .ok()?;
        let region = GuestRegionMmap::new(region, GuestAddress(address))?;
        if !device.memory.insert(region) {
            return None;
        }
        let kicked = Arc::new(Kicked::default());
        device.set_kick(kicked.clone());
        let table = Table::new();
        for vector in 0..VECTORS as u32 {
            let pending = Arc::clone(&table.pending);
            device.set_vector(vector, Some(Arc::new(Line { vector, pending })));
        }
        Some(Self {
            path: Box::new(Datapath::new(Arc::clone(&device))),
            device,
            mapped,
            clock,
            kicked,
            pause: NEXT,
            table,
            lies: Lies::default(),
            arriving: 0,
            next: 0,
            sent: 0,
            storm: 0,
        })
    }

    /// Lies from now on as `input` says.
    pub(crate) fn start(&mut self, input: &[u8]) {
        self.lies = Lies::new(input);
        self.storm = 0;
        let mut module = Module::new(Kind::Sr);
        let mut changed = false;
        for lie in self.lies.all(About::Module) {
            let place = lie.place() as usize;
            let page = [&mut module.id, &mut module.diagnostics];
            let byte = &mut page[place / 256][place % 256];
            *byte = lie.of((*byte).into()) as u8;
            changed = true;
        }
        if changed {
            self.device.set_module(Some(module));
        }
    }

    /// Says the truth from now on, as after power on.
    pub(crate) fn mend(&mut self) {
        let is_there = |about| !self.lies.all(about).is_empty();
        // To read another one takes a driver longer than all else.
        let is_same_module = ![About::Module, About::Fault].into_iter().any(is_there);
        self.lies = Lies::default();
        self.device.fault(Fault::Clear, 0, 0);
        if !is_same_module {
            self.device.set_module(Some(Module::new(Kind::Sr)));
        }
        self.device.set_link(true);
        self.device.reset();
        self.table.pending.store(0, Ordering::Relaxed);
        self.arriving = 0;
        self.next = 0;
    }

    pub(crate) fn config_read(&mut self, at: u32, size: u32) -> u64 {
        let mut data = [0; 4];
        self.device.config_read(u64::from(at & !3), &mut data);
        let said = self
            .lies
            .said(About::Config, at & !3, u32::from_le_bytes(data));
        u64::from(said >> (8 * (at & 3))) & mask(size)
    }

    pub(crate) fn config_write(&mut self, at: u32, size: u32, value: u64) {
        let value = value.to_le_bytes();
        self.device
            .config_write(at.into(), &value[..size.min(8) as usize]);
    }

    pub(crate) fn bar_read(&mut self, bar: u32, at: u32, size: u32) -> u64 {
        let mut data = [0; 8];
        let size = size.min(8);
        if bar == MSIX_BAR {
            self.table.read(at, &mut data[..size as usize]);
            return u64::from_le_bytes(data);
        }
        for lie in self.lies.told(About::Fault, 0) {
            let (kind, count, value) = lie.fault();
            self.device.fault(kind, count, value);
        }
        let truth = if bar == 0 && size == 4 && at.is_multiple_of(4) {
            // Nearly all accesses are such ones.
            self.device.register_read(at).into()
        } else {
            self.device
                .bar_read(bar, at.into(), &mut data[..size as usize]);
            u64::from_le_bytes(data)
        };
        let (low, high) = (truth as u32, (truth >> 32) as u32);
        let said = self.lies.said(About::AnyRead, 0, low);
        let said = self.lies.said(About::Read, at, said);
        let said = if at == offset::EERD {
            // The word's number, and the word.
            let word = said >> 2 & 0x3fff;
            let value = self.lies.said(About::Eeprom, word, said >> 16);
            said & 0xffff | value << 16
        } else {
            said
        };
        (u64::from(said) | u64::from(high) << 32) & mask(size)
    }

    /// Whether there is something to do for the card now.
    pub(crate) fn bar_write(&mut self, bar: u32, at: u32, size: u32, value: u64) -> bool {
        let size = size.min(8) as usize;
        if bar == MSIX_BAR {
            self.table.write(at, &value.to_le_bytes()[..size]);
            return self.table.is_pending();
        }
        let low = self.lies.said(About::Write, at, value as u32);
        let value = value & !u64::from(u32::MAX) | u64::from(low);
        if bar == 0 && size == 4 && at.is_multiple_of(4) {
            self.device.register_write(at, low);
        } else {
            self.device
                .bar_write(bar, at.into(), &value.to_le_bytes()[..size]);
        }
        let is_kicked = self.kicked.take();
        if is_kicked {
            self.pause = NEXT;
        }
        is_kicked || self.table.is_pending()
    }

    /// Moves frames; returns when the next turn is due, or the end of time.
    pub(crate) fn turn(&mut self, now: u64) -> u64 {
        self.clock.0.store(now, Ordering::Relaxed);
        if self.lies.told(About::Silence, 0).next().is_some() {
            self.pause = (self.pause * 2).min(LONGEST);
            return now + self.pause;
        }
        let heads = self.lies_about_rings().then(|| self.heads());
        let next = if self.path.begin_at(now) {
            self.path.drain(BUDGET);
            for _ in 0..BURST.min(self.arriving) {
                self.receive();
            }
            self.transmit();
            self.path.end()
        } else {
            self.arriving = 0;
            None
        };
        self.path.take_flushed();
        self.kicked.take();
        if let Some(heads) = heads {
            self.lie_about_rings(&heads);
        }
        for lie in self.lies.told(About::Message, 0) {
            self.storm += 1;
            if self.storm > STORM {
                break;
            }
            let vector = u32::from(lie.value) % VECTORS as u32;
            self.table.pending.fetch_or(1 << vector, Ordering::Relaxed);
        }
        if self.arriving != 0 || self.path.waiting() {
            self.pause = (self.pause * 2).min(LONGEST);
            now + self.pause
        } else {
            next.unwrap_or(u64::MAX).max(now + 1)
        }
    }

    fn receive(&mut self) {
        let mut frame = frame::arriving(MAC, self.next);
        for lie in self.lies.told(About::Frame, 0) {
            frame::spoil(&mut frame, &lie);
        }
        self.arriving -= 1;
        self.next += 1;
        self.path.receive(0, &frame);
    }

    /// Lets frames out, or back in.
    fn transmit(&mut self) {
        let mut looped = self.path.loopback().then(Vec::new);
        let sent = &mut self.sent;
        self.path.transmit(BUDGET, |frame, link| match &mut looped {
            Some(frames) => frames.push(frame.to_vec()),
            None => *sent += u32::from(link && frame::is_whole(frame)),
        });
        for frame in looped.into_iter().flatten() {
            self.path.receive_looped(&frame);
        }
    }

    fn lies_about_rings(&self) -> bool {
        use About::{Received, Ring, Transmitted};
        let is_there = |about| !self.lies.all(about).is_empty();
        [Received, Transmitted, Ring].into_iter().any(is_there)
    }

    /// Where the rings are that there are.
    fn heads(&self) -> Vec<(Ring, u32)> {
        let all = (0..QUEUES).flat_map(|queue| [false, true].map(|is_tx| Ring::new(queue, is_tx)));
        let regs = &self.device.regs;
        all.filter(|ring| regs.load(ring.length()) != 0)
            .map(|ring| (ring, regs.load(ring.head())))
            .collect()
    }

    /// Changes what the card has just written back, and whatever else in a ring.
    fn lie_about_rings(&mut self, before: &[(Ring, u32)]) {
        for &(ring, head) in before {
            let about = if ring.is_tx {
                About::Transmitted
            } else {
                About::Received
            };
            let regs = &self.device.regs;
            let (count, end) = (regs.load(ring.length()) / SIZE, regs.load(ring.head()));
            let mut at = head;
            while at != end && at < count && end < count {
                for word in 0..4 {
                    let lies = self.lies.told(about, word).collect::<Vec<_>>();
                    self.change(ring, at, word, &lies);
                }
                at = (at + 1) % count;
            }
        }
        for lie in self.lies.told_anywhere(About::Ring).collect::<Vec<_>>() {
            let place = lie.place();
            let ring = Ring::new(place >> 2 & 7, place >> 5 & 1 != 0);
            self.change(ring, place >> 6, place & 3, &[lie]);
        }
    }

    fn change(&self, ring: Ring, descriptor: u32, word: u32, lies: &[Lie]) {
        let regs = &self.device.regs;
        let count = regs.load(ring.length()) / SIZE;
        if lies.is_empty() || count == 0 {
            return;
        }
        let place = u64::from(descriptor % count * SIZE + word * 4);
        let at = regs.pair(ring.base, ring.base + 4).wrapping_add(place);
        let view = self.device.memory.view();
        let mut bytes = [0; 4];
        // A ring that is not in memory has no words.
        if view.read(at, &mut bytes).is_ok() {
            let value = lies
                .iter()
                .fold(u32::from_le_bytes(bytes), |value, lie| lie.of(value));
            let _ = view.store32(at, value);
        }
    }

    pub(crate) fn take_message(&mut self) -> u32 {
        self.table.take()
    }

    pub(crate) fn arrive(&mut self, frames: u32) {
        self.arriving += frames;
        self.pause = NEXT;
    }

    pub(crate) fn take_sent(&mut self) -> u32 {
        std::mem::take(&mut self.sent)
    }

    /// Whether it lies about registers: the driver may not be able to know that DMA has stopped.
    pub(crate) fn hides_stop(&self) -> bool {
        use About::{AnyRead, Config, Fault, Read, Write};
        let is_there = |about| !self.lies.all(about).is_empty();
        [Read, AnyRead, Write, Config, Fault]
            .into_iter()
            .any(is_there)
    }

    /// The driver maps memory for DMA, or unmaps it.
    pub(crate) fn map(&mut self, address: u64, size: u64, writable: bool, is_mapped: bool) {
        self.mapped.change(address, size, writable, is_mapped);
    }

    /// Whether it got at memory that was not mapped, though it told nothing but the truth about
    /// addresses and about what it has stopped. That an answer is all ones can happen to any card.
    pub(crate) fn has_strayed(&self) -> bool {
        use About::{AnyRead, Config, Fault, Read, Ring, Write};
        let has_strayed = self.mapped.take_strays() != 0;
        let is_there = |about| !self.lies.all(about).is_empty();
        has_strayed
            && ![Read, Write, Config, Fault, Ring].into_iter().any(is_there)
            && self.lies.all(AnyRead).iter().all(Lie::is_ones)
    }

    /// Whether the kernel lets it access memory. It cannot know of a card that is out of its slot,
    /// or that lies about its configuration space.
    pub(crate) fn is_bus_master(&self) -> bool {
        let mut command = [0; 2];
        self.device.config_read(4, &mut command);
        let is_there = command != [u8::MAX; 2];
        is_there && command[0] & 1 << 2 != 0 && self.lies.all(About::Config).is_empty()
    }
}

fn mask(size: u32) -> u64 {
    u64::MAX >> (64 - 8 * size.clamp(1, 8))
}
