// SPDX-License-Identifier: GPL-2.0

//! The completing side of packets in flight.

use super::{
    owner::RecordsOwner,
    record::Record,
    split::SplitSum, //
};
use crate::{
    net::{
        device::DmaStopped,
        napi::NapiOwned,
        skb_free::SkbFreeList,
        skbuff::DropReason, //
    },
    sync::{
        alf_queue::Consumer,
        aref::ARef, //
    }, //
};

/// The packets that a run of [`TxConsumer::complete`] has completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completed {
    /// Number of packets.
    pub packets: usize,
    /// Number of bytes in these packets.
    pub bytes: usize,
    /// Number of descriptors that are free again.
    pub descriptors: usize,
    /// Those of the packets that the NIC has split.
    pub split: SplitSum,
}

/// The fate of the packets that were in flight when the NIC was stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// Those that the NIC had sent.
    pub sent: Completed,
    /// Those that it had not.
    pub lost: Completed,
}

/// The end that takes packets that have been sent out of flight.
///
/// It belongs to the poll function of a queue vector.
pub struct TxConsumer<'a> {
    pub(super) records: Consumer<Record<'a>>,
    pub(super) owner: Option<ARef<NapiOwned<RecordsOwner>>>,
}

impl TxConsumer<'_> {
    /// Returns the number of free descriptors. The other end may have used some already.
    #[inline]
    pub fn free(&self) -> usize {
        // One descriptor stays unused.
        self.records
            .capacity()
            .saturating_sub(self.records.len())
            .saturating_sub(1)
    }

    /// Whether no packet is in flight. The other end may have added some already.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Takes up to `limit` packets that have been sent out of flight.
    ///
    /// `is_done` is called with the index of the last descriptor of the oldest packet, and says
    /// whether the NIC has processed it. Its mappings are removed then, the packet goes onto the
    /// list `free`, and the next packet is checked. The descriptors become free all at once, at the
    /// end.
    ///
    /// The NIC reads the memory of a packet until it is done: if `is_done` returns `true` too
    /// early, the NIC may send other data, or be stopped by the IOMMU.
    #[inline]
    pub fn complete(
        &mut self,
        free: &mut SkbFreeList<'_>,
        limit: usize,
        mut is_done: impl FnMut(usize) -> bool,
    ) -> Completed {
        let mut done = Completed::default();
        let mut split = SplitSum::default();
        let mut batch = self.records.batch();
        // Holds for the records that were seen when it was set.
        let Some(mut unmap) = batch.peek().map(Record::needs_unmap) else {
            return done;
        };

        while done.packets < limit {
            let Some(first) = batch.peek_seen() else {
                // In this order: the records that are seen here were mapped before the question.
                match batch.peek() {
                    Some(first) => unmap = first.needs_unmap(),
                    None => break,
                }
                continue;
            };
            // All records of a packet become visible at once, and there is at least one.
            let count = usize::from(first.descriptors);
            if !is_done(batch.slot_after(count.wrapping_sub(1))) {
                break;
            }

            let mut left = count;
            loop {
                let popped = batch.pop_seen(|record| {
                    done.bytes = done.bytes.wrapping_add(record.len() as usize);
                    let skb = if unmap {
                        record.unmap()
                    } else {
                        // SAFETY: The record had been seen when `unmap` was set.
                        unsafe { record.leave_mapped() }
                    };
                    if let Some(skb) = skb {
                        free.push(skb);
                    }
                });

                if left <= 1 || popped.is_none() {
                    break;
                }
                left -= 1;
                // The first record is not asked: a packet that is split has several.
                if let Some(record) = batch.peek_seen() {
                    record.add_split_to(&mut split);
                }
            }
            done.packets = done.packets.wrapping_add(1);
            done.descriptors = done.descriptors.wrapping_add(count);
        }
        done.split = split;
        done
    }

    /// Takes all packets out of flight, after the NIC has been stopped.
    ///
    /// `is_done` returns for each packet whether the NIC had processed it, as for
    /// [`Self::complete`]. Returns the packets that it had sent, and those that it had not, which
    /// are lost. `stopped` proves that DMA has stopped; if it is another device's, nothing happens.
    pub fn finish(self, stopped: &DmaStopped<'_>, is_done: impl FnMut(usize) -> bool) -> Finished {
        match &self.owner {
            Some(owner) if owner.netdev == stopped.dev.as_raw() => self.finish_all(is_done),
            _ => Finished::default(),
        }
    }

    /// As [`Self::finish`], without the proof.
    pub(super) fn finish_all(mut self, mut is_done: impl FnMut(usize) -> bool) -> Finished {
        let mut finished = Finished::default();
        let mut batch = self.records.batch();

        while let Some(first) = batch.peek() {
            let count = usize::from(first.descriptors).max(1);
            let sent = is_done(batch.slot_after(count - 1));
            let sum = if sent {
                &mut finished.sent
            } else {
                &mut finished.lost
            };

            for (nth, record) in (0..count).map_while(|nth| Some((nth, batch.pop()?))) {
                if nth > 0 {
                    record.add_split_to(&mut sum.split);
                }
                sum.bytes = sum.bytes.wrapping_add(record.len() as usize);
                match record.unmap() {
                    Some(skb) if sent => skb.consume(),
                    Some(skb) => skb.drop_with(DropReason::DeviceNotReady),
                    None => (),
                }
            }
            sum.packets = sum.packets.wrapping_add(1);
            sum.descriptors = sum.descriptors.wrapping_add(count);
        }
        finished
    }
}
