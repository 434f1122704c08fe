// SPDX-License-Identifier: GPL-2.0

//! Receiving Ethernet frames from a ring.

use super::{
    Assembled,
    Assembler,
    RxFormat,
    RxRing, //
};
use crate::{
    device::{
        self,
        Bound, //
    },
    net::{
        device::Feature,
        napi::{
            Napi,
            Poll, //
        },
        queue::RingLen,
        rx_list::{
            Protocol,
            RxList, //
        }, //
    },
    prelude::*, //
};
use core::ops::Deref;

/// The report of a card on received frames, in the descriptors of an [`RxFormat`].
pub trait FrameFormat: RxFormat {
    /// Whether a buffer is the last one of its frame.
    fn is_last(status: u64) -> bool;

    /// Whether the frame that ends here is damaged: it is dropped.
    fn is_damaged(status: u64) -> bool;

    /// Whether the card has found all checksums of the frame that ends here to be correct, that of
    /// the transport layer among them.
    fn is_verified(status: u64) -> bool;

    /// The protocol of the frame that ends here.
    fn protocol(info: u64, status: u64) -> Protocol;
}

/// Totals of [`FrameRing::receive`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceivedFrames {
    /// Number of good frames.
    pub packets: usize,
    /// Bytes in these.
    pub bytes: usize,
    /// Number of damaged frames, and of those that were lost for want of memory.
    pub dropped: usize,
    /// The ring has no more frames. If it may have, the poll function has to go on: an interrupt
    /// comes for new ones only. The number of packets does not tell, as frames can be lost.
    pub has_drained: bool,
}

/// An [`RxRing`] of a card that receives Ethernet frames, in one or several buffers each.
pub struct FrameRing<F: FrameFormat> {
    ring: RxRing<F>,
    frames: Assembler,
    /// Number of missing buffers from which on they are replaced: a batch is cheaper.
    batch: usize,
}

impl<F: FrameFormat> FrameRing<F> {
    /// Makes the ring of `napi`, see [`RxRing::new`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn new(dev: &device::Device<Bound>, napi: &Napi, len: RingLen, pages: u32) -> Result<Self> {
        Ok(Self {
            ring: RxRing::new(dev, napi, len, pages)?,
            frames: Assembler::new(),
            batch: (len.get() / 4).clamp(1, 32),
        })
    }

    /// Puts the frames that the card has received on the list, as many as the budget allows.
    // Not inlined: in a function of its own, the loop's variables stay in registers.
    #[inline(never)]
    pub fn receive(&mut self, cx: &Poll<'_>, list: &mut RxList<'_>) -> ReceivedFrames {
        let mut sum = ReceivedFrames::default();
        // With the feature off, the stack verifies checksums itself.
        let trusted = cx.device().features().contains(Feature::RxChecksum);
        let Ok(mut ring) = self.ring.poll(cx) else {
            return sum;
        };

        while sum.packets < cx.budget().packets() {
            let Some(done) = ring.next() else {
                sum.has_drained = true;
                break;
            };
            let (status, is_last) = (done.status, F::is_last(done.status));
            let good = !F::is_damaged(status);
            let verified = trusted && F::is_verified(status);

            // Nearly all frames have one buffer and no error. There is no buffer if the length that
            // the card has reported makes no sense.
            let bytes = match done.buffer {
                Some(buffer) if is_last && good && self.frames.is_between_frames() => {
                    let len = usize::from(buffer.len());

                    list.push_buffer(buffer, F::protocol(done.info, status), verified);
                    Some(len)
                }
                buffer => match self.frames.add(buffer, is_last) {
                    Assembled::Pending => continue,
                    Assembled::Whole(mut skb) if good => {
                        // CAST: `usize` has at least 32 bits wherever the kernel runs.
                        let len = skb.len() as usize;

                        if verified {
                            skb.set_checksum_verified();
                        }
                        list.push(skb, F::protocol(done.info, status));
                        Some(len)
                    }
                    Assembled::Whole(_) | Assembled::Lost => None,
                },
            };
            match bytes {
                Some(bytes) => {
                    sum.packets += 1;
                    sum.bytes += bytes;
                }
                None => sum.dropped += 1,
            }
        }
        let lost = list.build();
        sum.packets = sum.packets.saturating_sub(lost.frames);
        sum.bytes = sum.bytes.saturating_sub(lost.bytes);
        sum.dropped += lost.frames;
        sum
    }

    /// Replaces used buffers if there are many, as far as there is memory. `doorbell` tells the
    /// card how far the ring is filled.
    ///
    /// Returns whether the card has enough buffers to go on. If not, it may raise no interrupt, so
    /// polling has to go on.
    #[inline]
    pub fn refill(&mut self, cx: &Poll<'_>, doorbell: impl FnOnce(usize)) -> bool {
        if self.ring.missing() < self.batch {
            return true;
        }
        if self.ring.refill(cx).is_ok_and(|added| added > 0) {
            doorbell(self.ring.tail());
        }
        self.ring.in_use() >= self.batch
    }
}

impl<F: FrameFormat> Deref for FrameRing<F> {
    type Target = RxRing<F>;

    #[inline]
    fn deref(&self) -> &RxRing<F> {
        &self.ring
    }
}
