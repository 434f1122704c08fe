// SPDX-License-Identifier: GPL-2.0

//! The transmitting side of packets in flight.

use super::{
    owner::RecordsOwner,
    record::Record,
    split::Split, //
};
use crate::{
    bindings,
    device::{
        Bound,
        Device, //
    },
    net::{
        napi::NapiOwned,
        queue::bus_address,
        skbuff::{
            Outgoing,
            SkBuff, //
        }, //
    },
    prelude::*,
    sync::{
        alf_queue::{
            Producer,
            Reservation, //
        },
        aref::ARef, //
    }, //
};
use core::num::NonZero;

/// The purpose of a descriptor.
#[derive(Clone, Copy, Debug)]
pub enum TxDesc {
    /// The context of the packet; context descriptors come first and are numbered from 0.
    Context(usize),
    /// Bytes of the packet.
    Segment(Segment),
}

/// Bytes of a packet that one descriptor describes.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Bus address of the first byte.
    pub addr: u64,
    /// Number of bytes, not zero.
    pub len: u32,
    /// These are the first bytes of the packet.
    pub first: bool,
    /// These are the last bytes of the packet; the NIC should report when it has sent them.
    pub last: bool,
}

/// A packet that is in flight now.
#[derive(Clone, Copy, Debug)]
pub struct Submitted {
    /// Number of descriptors that the packet takes.
    pub descriptors: usize,
    /// Number of bytes, for [`TxQueue::sent`](crate::net::queue::TxQueue::sent).
    ///
    /// [`Completed::bytes`](super::Completed::bytes) adds up the same numbers.
    pub bytes: u32,
    /// Index of the descriptor after the packet: the value for the NIC's tail register.
    pub next_slot: usize,
}

/// Why a packet was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There are not enough free descriptors. The queue should have been stopped.
    Full,
    /// The packet needs more descriptors than [`Limits`](super::Limits) allow, or than the ring
    /// has.
    TooManySegments,
    /// The packet has a fragment list, which the NIC cannot follow.
    FragList,
    /// The packet is in memory of another device.
    Unreadable,
    /// The packet is longer than [`Limits::packet_len`](super::Limits::packet_len).
    TooLong,
    /// The packet has no bytes.
    Empty,
    /// The packet needs more than one descriptor, or the time at which it is sent, see
    /// [`TxProducer::submit_one`].
    Several,
    /// The packet could not be mapped for DMA.
    Mapping,
}

/// A packet that was not accepted. It is unchanged.
pub struct Refused<P = SkBuff> {
    /// The reason.
    pub reason: Refusal,
    /// The packet.
    pub skb: P,
}

/// The end that puts packets into flight.
///
/// It belongs to the transmit function of a queue, which runs under the lock of that queue.
///
/// # Invariants
///
/// `netdev` is null, or a valid network device: the one of the queue.
pub struct TxProducer<'a> {
    pub(super) dev: &'a Device<Bound>,
    pub(super) netdev: *mut bindings::net_device,
    pub(super) records: Producer<Record<'a>>,
    pub(super) segment_len: NonZero<u32>,
    pub(super) packet_len: u32,
    /// The lesser of both: the length of a packet that takes one descriptor.
    pub(super) single_len: u32,
    pub(super) max_descriptors: usize,
    pub(super) _keeper: Option<ARef<NapiOwned<RecordsOwner>>>,
}

// SAFETY: `netdev` can be used by any thread, and the rest is `Send`.
unsafe impl<'a> Send for TxProducer<'a> where Producer<Record<'a>>: Send {}

// SAFETY: As above; with a shared reference, `netdev` is not used.
unsafe impl<'a> Sync for TxProducer<'a> where Producer<Record<'a>>: Sync {}

impl<'a> TxProducer<'a> {
    /// Returns the number of free descriptors. It may have grown already.
    ///
    /// This reads the position of the other end; prefer [`Self::free_or_enough`] where that costs
    /// too much.
    #[inline]
    pub fn free(&self) -> usize {
        // One descriptor stays unused.
        self.records.free().saturating_sub(1)
    }

    /// Returns the number of free descriptors that are known of; reads the position of the other
    /// end only if these are fewer than `enough`.
    #[inline]
    pub fn free_or_enough(&self, enough: usize) -> usize {
        self.records
            .free_or_enough(enough.saturating_add(1))
            .saturating_sub(1)
    }

    /// Returns the number of descriptors that are known to be free, without a look at the other
    /// end: there may be more.
    #[inline]
    pub fn free_seen(&self) -> usize {
        // One descriptor stays unused.
        self.records.free_seen().saturating_sub(1)
    }

    /// Returns the index of the descriptor that is used next.
    #[inline]
    pub fn next_slot(&self) -> usize {
        self.records.next_slot()
    }

    /// Puts a packet into flight.
    ///
    /// `emit` writes descriptors: it is called with the index of each of them in order, first for
    /// `contexts` context descriptors, then for the segments of the packet. It must write the
    /// descriptor in a way that the [`TxConsumer`](super::TxConsumer) does not take for done. The
    /// doorbell must be rung afterwards, when the packet has been accepted.
    ///
    /// # Errors
    ///
    /// Returns the packet with the reason. Nothing has been mapped, and `emit` has not been called,
    /// unless the reason is [`Refusal::Mapping`]: then all mappings have been undone, and the next
    /// packet overwrites the descriptors that were written. The NIC does not know of them.
    #[inline]
    pub fn submit<P: Outgoing>(
        &mut self,
        skb: P,
        contexts: usize,
        mut emit: impl FnMut(usize, TxDesc),
    ) -> Result<Submitted, Refused<P>> {
        if contexts != 0 {
            return self.submit_several(skb, contexts, None, &mut emit);
        }
        match self.submit_one(skb, |slot, segment| emit(slot, TxDesc::Segment(segment))) {
            Err(Refused {
                reason: Refusal::Several,
                skb,
            }) => self.submit_several(skb, contexts, None, &mut emit),
            result => result,
        }
    }

    /// Puts a packet into flight that the NIC splits, and that has context descriptors for this.
    ///
    /// As [`Self::submit`]; and when the NIC has sent the packet, it counts with its parts, see
    /// [`Completed::split`](super::Completed::split).
    ///
    /// # Errors
    ///
    /// As [`Self::submit`].
    pub fn submit_split<P: Outgoing>(
        &mut self,
        skb: P,
        contexts: NonZero<usize>,
        split: Split,
        mut emit: impl FnMut(usize, TxDesc),
    ) -> Result<Submitted, Refused<P>> {
        self.submit_several(skb, contexts.get(), Some(split), &mut emit)
    }

    /// Puts a packet into flight that takes one descriptor, and whose sender does not want to know
    /// when it is sent, as nearly all forwarded packets do.
    ///
    /// This is [`Self::submit`] without the parts that such a packet does not need; `emit` is
    /// called once.
    ///
    /// # Errors
    ///
    /// As [`Self::submit`], and [`Refusal::Several`] if the packet is empty or takes more, or has a
    /// sender that wants its time, by whatever clock: pass it to [`Self::submit`].
    #[inline(always)]
    pub fn submit_one<P: Outgoing>(
        &mut self,
        skb: P,
        emit: impl FnOnce(usize, Segment),
    ) -> Result<Submitted, Refused<P>> {
        let packet = skb.as_skb();
        let len = packet.len();
        if is_nonlinear(packet) || len == 0 || len > self.single_len || packet.wants_any_time() {
            return refuse(Refusal::Several, skb);
        }
        // One descriptor stays unused.
        let Some(mut batch) = self.records.reserve(2) else {
            return refuse(Refusal::Full, skb);
        };
        // SAFETY: The record owns the packet from here on.
        let Some(mut record) = (unsafe { Record::map_head(self.dev, skb.as_skb()) }) else {
            // Nothing has been written that a drop would have to take back.
            core::mem::forget(batch);
            return refuse(Refusal::Mapping, skb);
        };

        let skb: SkBuff = skb.into();
        let slot = batch.slot();
        let addr = bus_address(record.addr());
        let bytes = record.len();
        record.descriptors = 1;
        record.set_skb(skb);
        // The reservation has a place for it, so it is not returned. It is not visible before it is
        // committed. Pushing it before the descriptor is written saves reading the state of the
        // queue again.
        let _ = batch.push(record);
        let next_slot = batch.slot();
        emit(
            slot,
            Segment {
                addr,
                len: bytes,
                first: true,
                last: true,
            },
        );
        // The release ordering of this makes the descriptor visible before the record, as below.
        batch.commit();
        Ok(Submitted {
            descriptors: 1,
            bytes,
            next_slot,
        })
    }

    /// Puts a packet into flight that needs any number of descriptors.
    #[inline(never)]
    fn submit_several<P: Outgoing>(
        &mut self,
        skb: P,
        contexts: usize,
        split: Option<Split>,
        emit: &mut impl FnMut(usize, TxDesc),
    ) -> Result<Submitted, Refused<P>> {
        let descriptors = match self.descriptors_of(skb.as_skb(), contexts) {
            Ok(descriptors) => descriptors,
            Err(reason) => return refuse(reason, skb),
        };
        // One descriptor stays unused.
        let Some(mut batch) = self.records.reserve(descriptors.saturating_add(1)) else {
            return refuse(Refusal::Full, skb);
        };

        for nth in 0..contexts {
            emit(batch.slot(), TxDesc::Context(nth));
            // The reservation has a place for each descriptor, so none is returned.
            let _ = batch.push(Record::unmapped(self.dev));
        }
        let mut mapper = Mapper {
            dev: self.dev,
            segment_len: self.segment_len,
            batch,
            left: descriptors.wrapping_sub(contexts),
            bytes: 0,
        };
        if mapper.map(skb.as_skb(), emit).is_none() {
            // This drops the records and with them their mappings, while the packet exists.
            drop(mapper);
            return refuse(Refusal::Mapping, skb);
        }

        let Mapper {
            mut batch, bytes, ..
        } = mapper;
        let skb: SkBuff = skb.into();
        // SAFETY: By the type invariants; the packet is transmitted now.
        unsafe { skb.take_tx_timestamp(self.netdev) };
        if let Some(first) = batch.get_mut(0) {
            // CAST: It is less than the length of the ring, which has no more than
            // [`RingSize::MAX`](crate::net::queue::RingSize::MAX).
            first.descriptors = descriptors as u16;
        }
        if let Some(last) = batch.get_mut(descriptors.wrapping_sub(1)) {
            last.set_skb(skb);
            if let Some(split) = split {
                last.set_split(split);
            }
        }
        let next_slot = batch.slot();
        // The release ordering of this makes the descriptors visible before the records: the other
        // end never takes a descriptor from an earlier round for one of this packet.
        batch.commit();
        Ok(Submitted {
            descriptors,
            bytes,
            next_slot,
        })
    }

    /// Returns the number of descriptors that a packet needs, or why the NIC cannot take it.
    #[inline(always)]
    fn descriptors_of(&self, skb: &SkBuff, contexts: usize) -> Result<usize, Refusal> {
        if skb.len() > self.packet_len && skb.gso_size().is_none() {
            return Err(Refusal::TooLong);
        }
        let mut segments = self.pieces(skb.head_len());
        if is_nonlinear(skb) {
            if skb.has_frag_list() {
                return Err(Refusal::FragList);
            }
            // SAFETY: The packet is valid.
            if !unsafe { bindings::skb_frags_readable(skb.as_raw()) } {
                return Err(Refusal::Unreadable);
            }
            for frag in skb.frags() {
                segments = segments.saturating_add(self.pieces(frag.len()));
            }
        }
        if segments == 0 {
            return Err(Refusal::Empty);
        }

        let descriptors = segments.saturating_add(contexts);
        if descriptors > self.max_descriptors || descriptors >= self.records.capacity() {
            return Err(Refusal::TooManySegments);
        }
        Ok(descriptors)
    }

    /// Returns the number of descriptors that `len` contiguous bytes need.
    #[inline(always)]
    fn pieces(&self, len: u32) -> usize {
        if len <= self.segment_len.get() {
            usize::from(len != 0)
        } else {
            // CAST: `usize` has at least 32 bits wherever the kernel runs.
            len.div_ceil(self.segment_len.get()) as usize
        }
    }
}

/// Returns a packet with the reason.
#[inline(always)]
fn refuse<P, R>(reason: Refusal, skb: P) -> Result<R, Refused<P>> {
    Err(Refused { reason, skb })
}

/// Whether a packet has data behind its linear part.
#[inline(always)]
pub(super) fn is_nonlinear(skb: &SkBuff) -> bool {
    skb.len() != skb.head_len()
}

/// Maps the parts of a packet, and writes a record and a descriptor for each segment.
struct Mapper<'r, 'a> {
    dev: &'a Device<Bound>,
    segment_len: NonZero<u32>,
    batch: Reservation<'r, Record<'a>>,
    /// Number of segments still to come.
    left: usize,
    bytes: u32,
}

impl<'a> Mapper<'_, 'a> {
    /// Maps the whole packet; on failure, some of it may have been mapped.
    #[inline(always)]
    fn map(&mut self, skb: &SkBuff, emit: &mut impl FnMut(usize, TxDesc)) -> Option<()> {
        if skb.head_len() != 0 {
            // SAFETY: The caller drops the records before it returns the packet, or gives the
            // packet to the last of them.
            let record = unsafe { Record::map_head(self.dev, skb) }?;
            self.add(record, emit)?;
        }
        if is_nonlinear(skb) {
            for frag in skb.frags() {
                if frag.len() != 0 {
                    // SAFETY: As above. The fragments are readable, which has been checked.
                    let record = unsafe { Record::map_frag(self.dev, frag) }?;
                    self.add(record, emit)?;
                }
            }
        }
        Some(())
    }

    /// Adds a mapping, in as many segments as it needs.
    #[inline(always)]
    fn add(&mut self, record: Record<'a>, emit: &mut impl FnMut(usize, TxDesc)) -> Option<()> {
        let mut addr = bus_address(record.addr());
        let mut rest = record.len();
        let mut record = record;
        let mut first = self.bytes == 0;

        self.bytes = self.bytes.wrapping_add(rest);
        loop {
            let len = rest.min(self.segment_len.get());
            let slot = self.batch.slot();
            self.batch.push(record).ok()?;
            self.left = self.left.wrapping_sub(1);
            emit(
                slot,
                TxDesc::Segment(Segment {
                    addr,
                    len,
                    first,
                    last: self.left == 0,
                }),
            );

            rest = rest.wrapping_sub(len);
            if rest == 0 {
                return Some(());
            }
            addr = addr.wrapping_add(u64::from(len));
            first = false;
            record = Record::unmapped(self.dev);
        }
    }
}
