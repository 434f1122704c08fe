// SPDX-License-Identifier: GPL-2.0
//! The engine's side of a device: moves frames between guest memory and its owner.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::counters::{bump, wide};
use crate::device::Device;
use crate::fault::Kind;
use crate::filter::{Refusal, RxConfig};
use crate::irq::Direction;
use crate::judge::{rules, transmit_label};
use crate::packet::FCS;
use crate::pause::Pause;
use crate::regs::bits::{Ctrl, Dmatxctl};
use crate::regs::file::RegisterFile;
use crate::regs::offset;
use crate::rx::{Outcome, RxQueues, sort};
use crate::tx::{Progress, TxQueue, cost_of};

pub use crate::tx::MAX_SEND;

/// Queues that the model serves in each direction.
pub const QUEUES: u32 = 64;
/// Bytes of the packet buffer that a waiting frame takes besides its own.
const BUFFER_OVERHEAD: usize = 16;
/// Nanoseconds for which a transmit queue that was just enabled may go unnoticed: looking at all of
/// them costs more than most turns have to do.
pub(crate) const NOTICE: u64 = 100_000;

/// Why a frame did not get into the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The packet buffer is full because the driver supplies no descriptors.
    NoDescriptor,
    /// Receiver or queue disabled.
    Disabled,
    /// Not for this port, or of a length it does not take.
    Filtered,
    /// No link, or none that the receiver listens to: it is in loopback.
    LinkDown,
}

/// The fate of a frame that arrived at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// In guest memory, or in the packet buffer on its way there.
    Taken,
    /// Lost.
    Lost(Loss),
}

#[derive(Debug)]
struct Waiting {
    tag: u32,
    /// It has a time stamp.
    stamped: bool,
    frame: Vec<u8>,
}

/// Frames of one turn in one direction, added to the shared counters at its end.
#[derive(Debug, Default)]
struct Counts {
    frames: u64,
    bytes: u64,
    sizes: [u32; 6],
    broadcast: u32,
    multicast: u32,
    /// Per queue: frames and octets.
    queues: [(u32, u64); 16],
}

impl Counts {
    /// Counts a frame, of which the queue has so many bytes.
    fn count(&mut self, queue: u32, frame: &[u8], length: usize) {
        let broadcast = frame[..6] == [0xff; 6];
        self.frames += 1;
        self.bytes += frame.len() as u64;
        self.sizes[size_class(frame.len())] += 1;
        self.broadcast += u32::from(broadcast);
        self.multicast += u32::from(frame[0] & 1 != 0 && !broadcast);
        if let Some((frames, octets)) = self.queues.get_mut(queue as usize) {
            *frames += 1;
            *octets += (length + FCS) as u64;
        }
    }

    /// Adds to the counters of frames, of all and by kind, and to those of the totals.
    fn account(&self, regs: &RegisterFile, at: [u32; 4], sizes: u32, totals: [&AtomicU64; 2]) {
        let frames = self.frames as u32;
        for (at, count) in at
            .into_iter()
            .zip([frames, frames, self.broadcast, self.multicast])
        {
            regs.add(at, count);
        }
        for (count, i) in self.sizes.iter().zip(0..) {
            regs.add(sizes + 4 * i, *count);
        }
        bump(totals[0], self.frames);
        bump(totals[1], self.bytes);
    }

    fn octets(&self) -> u64 {
        self.bytes + self.frames * FCS as u64
    }
}

/// All that one turn counts.
#[derive(Debug, Default)]
struct Local {
    rx: Counts,
    tx: Counts,
    rx_raised: u64,
}

/// The engine's side of a device. One thread owns it.
pub struct Datapath {
    device: Arc<Device>,
    /// A turn has begun.
    turning: bool,
    config: RxConfig,
    generation: u64,
    epoch: u64,
    buffer: VecDeque<Waiting>,
    buffered: usize,
    spare: Vec<Vec<u8>>,
    flushed: Vec<(u32, Loss)>,
    rings: RxQueues,
    queues: Vec<TxQueue>,
    next_queue: u32,
    /// Transmit queues that were enabled when they were last looked at, and when that is again.
    enabled: u64,
    look_again: u64,
    /// When the turn began.
    now: u64,
    /// Configuration space allowed DMA at that time.
    may_access_memory: bool,
    /// The function was asleep at that time.
    asleep: bool,
    scratch: Vec<u8>,
    local: Local,
    pause: Pause,
}

impl Datapath {
    /// The engine's side of `device`; there must be only one.
    pub fn new(device: Arc<Device>) -> Self {
        Self {
            config: RxConfig::load(&device),
            generation: 0,
            epoch: device.epoch(),
            turning: false,
            buffer: VecDeque::new(),
            buffered: 0,
            spare: Vec::new(),
            flushed: Vec::new(),
            rings: RxQueues::default(),
            queues: (0..QUEUES).map(|_| TxQueue::default()).collect(),
            next_queue: 0,
            enabled: 0,
            look_again: 0,
            now: 0,
            may_access_memory: true,
            asleep: false,
            scratch: Vec::new(),
            local: Local::default(),
            pause: Pause::default(),
            device,
        }
    }

    /// The device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Begins a turn. Until [`Self::end`] the transport's thread cannot reset the device, so a
    /// turn must be short. False: the card is not in its slot; nothing moves.
    pub fn begin(&mut self) -> bool {
        self.begin_at(self.device.clock.now())
    }

    /// The same, for a caller that has read the clock.
    pub fn begin_at(&mut self, now: u64) -> bool {
        self.now = now;
        self.device.turn.store(now, Ordering::Relaxed);
        self.device.enter();
        if self.device.faults.removed() {
            self.device.leave();
            return false;
        }
        let epoch = self.device.epoch();
        if epoch != self.epoch {
            self.epoch = epoch;
            for queue in &mut self.queues {
                queue.reset();
            }
            self.pause = Pause::default();
            self.rings.forget();
            self.flush(Loss::Disabled);
        }
        let generation = self.device.generation();
        if generation != self.generation {
            self.generation = generation;
            self.config = RxConfig::load(&self.device);
        }
        self.may_access_memory = self.device.may_access_memory();
        self.asleep = self.device.is_asleep();
        self.turning = true;
        true
    }

    /// Ends a turn: counters and interrupts. Returns when a moderated interrupt, or the end of a
    /// pause, is due.
    pub fn end(&mut self) -> Option<u64> {
        let enabled = self.config.enabled && self.may_access_memory;
        let (ended, held) = self.rings.end_due(&self.device, self.now, enabled);
        self.local.rx_raised |= ended;
        self.rings.close(&self.device);
        self.account();
        let device = &self.device;
        let next = device.irq.deliver(&device.regs, self.now);
        bump(&device.totals.interrupts, device.irq.take_sent());
        self.turning = false;
        self.device.leave();
        [next, held, self.pause.until(self.now)]
            .into_iter()
            .flatten()
            .min()
    }

    fn flush(&mut self, loss: Loss) {
        let device = Arc::clone(&self.device);
        bump(&device.totals.rx_disabled, self.buffer.len() as u64);
        while let Some(waiting) = self.buffer.pop_front() {
            self.flushed.push((waiting.tag, loss));
            self.recycle(waiting.frame);
        }
        self.buffered = 0;
    }

    fn recycle(&mut self, frame: Vec<u8>) {
        if self.spare.len() < 1024 {
            self.spare.push(frame);
        }
    }

    /// Frames that were taken and lost afterwards, by the tag they came with.
    pub fn take_flushed(&mut self) -> Vec<(u32, Loss)> {
        std::mem::take(&mut self.flushed)
    }

    /// Whether sent frames loop back to the port instead of leaving.
    pub fn loopback(&self) -> bool {
        self.device.loopback()
    }

    /// Bytes held of the packet of a transmit queue that has not ended yet.
    #[cfg(test)]
    pub(crate) fn gathered(&self, queue: usize) -> usize {
        self.queues[queue].gathered()
    }

    /// Whether frames wait in the packet buffer.
    pub fn waiting(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// Whether a frame of `length` bytes would find the port able to take it.
    pub fn room(&self, length: usize) -> bool {
        self.buffered + length + BUFFER_OVERHEAD <= self.config.buffer
    }

    /// A frame arrives from the wire, without FCS. Only between `begin` and `end`.
    pub fn receive(&mut self, tag: u32, frame: &[u8]) -> Arrival {
        // In loopback, the receiver listens to the transmitter alone.
        if !self.device.link() || self.loopback() {
            return self.lose_without_link();
        }
        if self.turning && self.asleep {
            // Also a frame that wakes is lost: the driver gets no more than the reason.
            self.device.hear(&self.config, frame);
        }
        self.take(tag, frame)
    }

    /// A frame comes back that the port has sent in loopback. Only between `begin` and `end`.
    pub fn receive_looped(&mut self, frame: &[u8]) -> Arrival {
        if !self.device.mac_link() {
            if self.config.enabled
                && let Some(judge) = self.device.judge()
            {
                let detail = "a frame is sent".to_owned();
                judge.note(rules::LOOPBACK_LINK, None, detail);
            }
            return self.lose_without_link();
        }
        if self.device.faults.take(Kind::LoopedLost).is_some() {
            return self.lose_without_link();
        }
        if self.device.faults.take(Kind::LoopedDamaged).is_some() {
            let mut damaged = frame.to_vec();
            if let Some(last) = damaged.last_mut() {
                *last ^= 1;
            }
            return self.take(0, &damaged);
        }
        self.take(0, frame)
    }

    fn lose_without_link(&self) -> Arrival {
        bump(&self.device.totals.rx_link_down, 1);
        Arrival::Lost(Loss::LinkDown)
    }

    fn take(&mut self, tag: u32, frame: &[u8]) -> Arrival {
        let totals = &self.device.totals;
        if !self.turning || !self.config.enabled || !self.may_access_memory {
            bump(&totals.rx_disabled, 1);
            return Arrival::Lost(Loss::Disabled);
        }
        if self.pause.takes(&self.device, self.now, frame) {
            return Arrival::Taken;
        }
        match self.config.accept(frame) {
            Ok(()) => {}
            Err(Refusal::Filtered) => {
                bump(&totals.rx_filtered, 1);
                return Arrival::Lost(Loss::Filtered);
            }
            Err(Refusal::Length) => {
                bump(&totals.rx_length, 1);
                let short = frame.len() < crate::packet::ETH_HEADER;
                self.device
                    .regs
                    .add(if short { offset::RUC } else { offset::ROC }, 1);
                return Arrival::Lost(Loss::Filtered);
            }
        }
        let stamped = self.device.stamp_received(frame);
        if self.buffer.is_empty() {
            let outcome = self.deliver(frame, stamped);
            if outcome != Outcome::Full {
                return self.loss(outcome).map_or(Arrival::Taken, Arrival::Lost);
            }
        }
        if !self.room(frame.len()) {
            self.device.regs.add(offset::MPC, 1);
            // A card counts it here, too.
            self.device.regs.add(offset::GPRC, 1);
            return self
                .loss(Outcome::Drop)
                .map_or(Arrival::Taken, Arrival::Lost);
        }
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(frame);
        self.buffered += frame.len() + BUFFER_OVERHEAD;
        self.buffer.push_back(Waiting {
            tag,
            stamped,
            frame: copy,
        });
        Arrival::Taken
    }

    /// Counts a loss at a ring, if it is one.
    fn loss(&self, outcome: Outcome) -> Option<Loss> {
        let totals = &self.device.totals;
        let (total, loss) = match outcome {
            Outcome::Done(_) | Outcome::Held(_) | Outcome::Full => return None,
            Outcome::Drop => (&totals.rx_no_descriptor, Loss::NoDescriptor),
            Outcome::Disabled => (&totals.rx_disabled, Loss::Disabled),
            Outcome::Filtered => (&totals.rx_filtered, Loss::Filtered),
        };
        bump(total, 1);
        Some(loss)
    }

    fn deliver(&mut self, frame: &[u8], stamped: bool) -> Outcome {
        if !self.turning {
            return Outcome::Disabled;
        }
        let sorted = sort(&self.config, frame, stamped);
        let outcome = self.rings.deliver(
            &self.device,
            &self.config,
            &sorted,
            frame,
            &mut self.scratch,
        );
        // A frame that waits is counted when it goes on.
        if self.config.director.is_some() && !matches!(outcome, Outcome::Full) {
            let counter = match sorted.filter {
                Some(_) => offset::FDIRMATCH,
                None => offset::FDIRMISS,
            };
            self.device.regs.add(counter, 1);
        }
        match (outcome, sorted.queue) {
            (Outcome::Done(length), Some(queue)) => {
                self.local.rx_raised |= 1 << queue;
                self.local.rx.count(queue, frame, length);
            }
            (Outcome::Held(length), Some(queue)) => {
                self.local.rx.count(queue, frame, length);
            }
            (Outcome::Drop, Some(queue)) if !self.device.ring_pages_mapped() && queue < 16 => {
                let at = offset::QPRDC + queue * offset::QUEUE;
                self.device.regs.add(at, 1);
            }
            _ => {}
        }
        outcome
    }

    /// Moves frames from the packet buffer into rings; true when one moved.
    ///
    /// `budget` bounds the turn as that of [`Self::transmit`] does; the last frame may overdraw it.
    pub fn drain(&mut self, mut budget: usize) -> bool {
        let mut moved = false;
        if !self.may_access_memory {
            return moved;
        }
        while budget != 0
            && let Some(waiting) = self.buffer.pop_front()
        {
            budget = budget.saturating_sub(cost_of(waiting.frame.len()));
            let outcome = self.deliver(&waiting.frame, waiting.stamped);
            if outcome == Outcome::Full {
                self.buffer.push_front(waiting);
                return moved;
            }
            let loss = self.loss(outcome);
            self.flushed.extend(loss.map(|loss| (waiting.tag, loss)));
            moved = true;
            self.buffered -= waiting.frame.len() + BUFFER_OVERHEAD;
            self.recycle(waiting.frame);
        }
        moved
    }

    /// Sends queued packets: each frame goes to `out`, with the state of the link. True when
    /// a descriptor was consumed.
    ///
    /// `budget` bounds the turn, in bytes; the last send, of at most [`MAX_SEND`] bytes, may
    /// overdraw it.
    pub fn transmit(&mut self, mut budget: usize, mut out: impl FnMut(&[u8], bool)) -> bool {
        let device = Arc::clone(&self.device);
        if !self.turning {
            return false;
        }
        if self.pause.until(self.now).is_some() {
            return false;
        }
        if self.now >= self.look_again {
            self.look_again = self.now + NOTICE;
            self.enabled = (0..QUEUES)
                .filter(|queue| TxQueue::enabled(&device, *queue))
                .fold(0, |mask, queue| mask | 1 << queue);
        }
        let mut busy = false;
        // Each turn begins where the last one ran out, so that no queue starves.
        let mut left = self.enabled.rotate_right(self.next_queue);
        let start = self.next_queue;
        while left != 0 {
            let number = (start + left.trailing_zeros()) % QUEUES;
            if budget == 0 {
                self.next_queue = number;
                break;
            }
            left &= left - 1;
            if !TxQueue::pending(&device, number) {
                continue;
            }
            if !device.regs.get::<Dmatxctl>().te() || device.regs.get::<Ctrl>().gio_dis() {
                break;
            }
            if device.faults.take(Kind::LostLink).is_some() {
                device.set_link(false);
            }
            if !device.transmits() {
                break;
            }
            if !self.may_access_memory {
                if let Some(judge) = device.judge()
                    && !device.faults.hides_registers()
                {
                    let detail = "descriptors wait".to_owned();
                    judge.note(rules::DMA_MASTER, Some(transmit_label(number)), detail);
                }
                break;
            }
            let link = device.link();
            let sends = device.mac_link();
            let sent = &mut self.local.tx;
            let mut send = |queue: u32, frame: &[u8]| {
                if sends {
                    sent.count(queue, frame, frame.len());
                } else {
                    bump(&device.totals.tx_link_down, 1);
                }
                out(frame, link);
            };
            let Some(queue) = self.queues.get_mut(number as usize) else {
                break;
            };
            let Progress {
                descriptors,
                reported,
            } = queue.run(&device, number, &mut self.scratch, &mut budget, &mut send);
            if reported {
                device.irq.raise_queue(&device.regs, number, Direction::Tx);
            }
            busy |= descriptors != 0;
        }
        busy
    }

    fn account(&mut self) {
        let local = &self.local;
        if local.rx.frames == 0 && local.tx.frames == 0 && local.rx_raised == 0 {
            return;
        }
        let Local { rx, tx, rx_raised } = std::mem::take(&mut self.local);
        let device = &self.device;
        let mut raised = rx_raised;
        while raised != 0 {
            let queue = raised.trailing_zeros();
            raised &= raised - 1;
            device.irq.raise_queue(&device.regs, queue, Direction::Rx);
        }
        // Where the guest has these pages mapped a read could not clear a counter, and a
        // counter that is not cleared would be added up wrongly: it stays zero.
        let trapped = !device.ring_pages_mapped();
        let (regs, octets_at, totals) = (&device.regs, &device.wide, &device.totals);
        if rx.frames != 0 {
            let at = [offset::GPRC, offset::TPR, offset::BPRC, offset::MPRC];
            rx.account(regs, at, offset::PRC, [&totals.rx_frames, &totals.rx_bytes]);
            octets_at.add(usize::from(wide::GORC), rx.octets());
            octets_at.add(usize::from(wide::TOR), rx.octets());
            for (i, (frames, octets)) in rx.queues.iter().enumerate().filter(|_| trapped) {
                if *frames != 0 {
                    regs.add(offset::QPRC + i as u32 * offset::QUEUE, *frames);
                    octets_at.add(usize::from(wide::QBRC) + i, *octets);
                }
            }
        }
        if tx.frames != 0 {
            let at = [offset::GPTC, offset::TPT, offset::BPTC, offset::MPTC];
            tx.account(regs, at, offset::PTC, [&totals.tx_frames, &totals.tx_bytes]);
            octets_at.add(usize::from(wide::GOTC), tx.octets());
            for (i, (frames, octets)) in tx.queues.iter().enumerate() {
                if trapped {
                    regs.add(offset::QPTC + i as u32 * offset::QUEUE, *frames);
                }
                if *frames != 0 {
                    octets_at.add(usize::from(wide::QBTC) + i, *octets);
                }
            }
        }
    }
}

/// Which of the six size counters a frame belongs to.
fn size_class(length: usize) -> usize {
    match length + FCS {
        0..=64 => 0,
        65..=127 => 1,
        128..=255 => 2,
        256..=511 => 3,
        512..=1023 => 4,
        _ => 5,
    }
}
