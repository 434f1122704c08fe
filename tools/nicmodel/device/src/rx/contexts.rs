// SPDX-License-Identifier: GPL-2.0
//! The packets that are being coalesced, and their descriptors.
//!
//! A context has the descriptor that its next bytes go to. When the buffer is full, the descriptor
//! is written back with the number of the next one, which is the next of the ring: those of another
//! connection may be in between. The headers are written when the packet ends.

use crate::descriptor::{RxInfo, RxResult, RxStatus};
use crate::device::Device;
use crate::fault::Kind;
use crate::judge::{receive_label, rules};
use crate::memory::DmaError;
use crate::rsc::{CONTEXTS, Headers, Look, PACKETS, Segment};

use super::{Report, RxQueue, leaves_half, lie};
use arbitrary_int::u4;

/// A descriptor in use.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Its number.
    index: u32,
    buffer: u64,
}

/// A packet that grows.
#[derive(Debug)]
struct Context {
    queue: u32,
    /// That of the queue when it began.
    life: u32,
    headers: Headers,
    report: Report,
    /// The buffer with the headers.
    first: u64,
    place: Place,
    /// Bytes in the buffer, and packets that begin in it.
    used: usize,
    begun: u8,
    descriptors: u32,
}

/// The contexts of a port.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    open: Vec<Context>,
    /// The queues that packets have ended in, a bit for each.
    ended: u64,
}

/// A frame's fate at a queue that coalesces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is part of a packet that goes on.
    Held,
    /// It is part of one that has ended with it.
    Ended,
    /// It goes alone.
    Alone,
}

/// The frame at a queue.
pub(super) struct Arrival<'a> {
    pub(super) number: u32,
    pub(super) look: Look,
    pub(super) report: Report,
    pub(super) frame: &'a [u8],
}

impl Context {
    /// Writes bytes behind those that are there, to as many descriptors as it takes.
    fn write(&mut self, device: &Device, ring: &mut RxQueue, bytes: &[u8]) -> Result<(), DmaError> {
        let size = ring.size();
        let mut rest = bytes;
        while !rest.is_empty() {
            // The driver may have changed the size meanwhile.
            if self.used >= size {
                self.go_on(device, ring)?;
            }
            let (chunk, more) = rest.split_at(rest.len().min(size - self.used));
            ring.view
                .write(self.place.buffer.wrapping_add(self.used as u64), chunk)?;
            self.used += chunk.len();
            rest = more;
        }
        Ok(())
    }

    /// Descriptors that so many more bytes take.
    fn needed(&self, ring: &RxQueue, bytes: usize) -> usize {
        let room = ring.size().saturating_sub(self.used);
        bytes.saturating_sub(room).div_ceil(ring.size())
    }

    /// The information of a descriptor that is written back.
    fn count(&self, device: &Device) -> u4 {
        let lie = device.faults.take(Kind::RxCount);
        u4::new(lie.map_or(self.begun + 1, |value| value as u8 & 0xf))
    }

    /// The buffer is full: takes the next descriptor.
    fn go_on(&mut self, device: &Device, ring: &mut RxQueue) -> Result<(), DmaError> {
        let next = ring.take_descriptor(device, self.queue)?;
        let lie = device.faults.take(Kind::RxNext);
        let status = RxStatus::ZERO
            .with_nextp(lie.unwrap_or(next.index) as u16)
            .with_dd(true);
        let info = RxInfo::ZERO.with_rsccnt(self.count(device));
        let result = RxResult::ZERO
            .with_status(status)
            .with_pkt_len(self.used as u16);
        ring.store(self.place.index, [info.raw_value(), result.raw_value()])?;
        self.place = next;
        self.used = 0;
        self.begun = 0;
        self.descriptors += 1;
        Ok(())
    }

    /// Ends the packet.
    fn end(self, device: &Device, ring: &mut RxQueue) -> Result<(), DmaError> {
        ring.view.write(self.first, self.headers.bytes())?;
        let status = self.report.status.with_eop(true);
        let (status, length, ones) = lie(device, status, self.used as u16);
        let info = self.report.info.with_rsccnt(self.count(device));
        let result = RxResult::ZERO
            .with_status(status)
            .with_pkt_len(length)
            .with_vlan(self.report.vlan);
        let words = if ones {
            [u64::MAX; 2]
        } else {
            [info.raw_value(), result.raw_value()]
        };
        ring.store(self.place.index, words)
    }
}

impl RxQueue {
    /// Takes the next descriptor of the ring; there must be one.
    fn take_descriptor(&mut self, device: &Device, number: u32) -> Result<Place, DmaError> {
        let index = self.ring.head;
        let [buffer, _] = self.fetched.next(&self.view, &self.ring)?;
        self.ring.head = self.ring.next(index);
        // Packets of any length are joined: the limit to frames keeps the card from nothing.
        if leaves_half(buffer, self.size())
            && let Some(judge) = device.judge()
        {
            let queue = Some(receive_label(number));
            judge.note(rules::RX_HALF, queue, format!("{buffer:#x}, coalesced"));
        }
        Ok(Place { index, buffer })
    }

    fn store(&self, index: u32, words: [u64; 2]) -> Result<(), DmaError> {
        self.view
            .store_descriptor(self.ring.descriptor(index), words)
    }
}

impl Contexts {
    pub(super) fn clear(&mut self) {
        self.open.clear();
    }

    /// The queues with contexts, a bit for each.
    pub(super) fn queues(&self) -> u64 {
        self.open.iter().fold(0, |mask, one| mask | 1 << one.queue)
    }

    /// Takes a frame of TCP. Returns an error if the ring cannot be used.
    pub(super) fn take(
        &mut self,
        device: &Device,
        ring: &mut RxQueue,
        arrival: &Arrival<'_>,
    ) -> Result<Fate, DmaError> {
        let Arrival {
            number,
            look,
            report,
            frame,
        } = *arrival;
        let vlan = report.vlan_stripped().then_some(report.vlan);
        let open = self
            .open
            .iter()
            .position(|one| one.queue == number && one.headers.flow == look.flow);
        if let Some(open) = open {
            let mut context = self.open.swap_remove(open);
            if context.life != device.life(number) {
                // Its descriptors are those of another ring.
                return self.begin(device, ring, arrival, vlan);
            }
            if let Some(segment) = look.segment
                && context.headers.takes(&segment, frame, vlan)
                && Self::has_room(&context, ring, &segment, frame)
            {
                context.headers.append(&segment, frame);
                // It begins in the next buffer if this one is full.
                if context.used >= ring.size() && segment.payload < frame.len() {
                    context.go_on(device, ring)?;
                }
                context.begun += 1;
                context.write(device, ring, &frame[segment.payload..])?;
                if segment.pushed {
                    self.finish(device, ring, context)?;
                    return Ok(Fate::Ended);
                }
                self.open.push(context);
                return Ok(Fate::Held);
            }
            self.finish(device, ring, context)?;
        }
        self.begin(device, ring, arrival, vlan)
    }

    fn has_room(context: &Context, ring: &RxQueue, segment: &Segment, frame: &[u8]) -> bool {
        let needed = context.needed(ring, frame.len() - segment.payload);
        needed <= ring.ring.filled()
            && context.descriptors + needed as u32 <= ring.most
            && context.begun < PACKETS
    }

    /// Begins a context, if that is possible.
    fn begin(
        &mut self,
        device: &Device,
        ring: &mut RxQueue,
        arrival: &Arrival<'_>,
        vlan: Option<u16>,
    ) -> Result<Fate, DmaError> {
        let frame = arrival.frame;
        let Some(segment) = arrival.look.segment else {
            return Ok(Fate::Alone);
        };
        let needed = frame.len().div_ceil(ring.size());
        if segment.pushed
            || self.open.len() >= CONTEXTS
            || needed > ring.ring.filled()
            || needed as u32 > ring.most
            || segment.payload > ring.size()
        {
            return Ok(Fate::Alone);
        }
        let place = ring.take_descriptor(device, arrival.number)?;
        let mut context = Context {
            queue: arrival.number,
            life: device.life(arrival.number),
            headers: Headers::new(arrival.look.flow, segment, frame, vlan),
            report: arrival.report,
            first: place.buffer,
            place,
            used: 0,
            begun: 1,
            descriptors: 1,
        };
        context.write(device, ring, frame)?;
        self.open.push(context);
        Ok(Fate::Held)
    }

    /// Ends all packets of a queue.
    pub(super) fn end(
        &mut self,
        device: &Device,
        number: u32,
        ring: &mut RxQueue,
    ) -> Result<(), DmaError> {
        while let Some(at) = self.open.iter().position(|one| one.queue == number) {
            // In the order in which they began, as far as there is one.
            let context = self.open.remove(at);
            if context.life == device.life(number) {
                self.finish(device, ring, context)?;
            }
        }
        Ok(())
    }

    fn finish(
        &mut self,
        device: &Device,
        ring: &mut RxQueue,
        context: Context,
    ) -> Result<(), DmaError> {
        self.ended |= 1 << context.queue;
        context.end(device, ring)
    }

    /// Takes the queues that packets have ended in, a bit for each.
    pub(super) fn take_ended(&mut self) -> u64 {
        std::mem::take(&mut self.ended)
    }

    /// Forgets those of a queue that does not run any more.
    pub(super) fn forget(&mut self, number: u32) {
        self.open.retain(|one| one.queue != number);
    }
}
