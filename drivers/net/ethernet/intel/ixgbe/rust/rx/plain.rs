// SPDX-License-Identifier: GPL-2.0

//! The receive ring for frames as they come.

use kernel::{
    device::{
        self,
        Bound, //
    },
    net::{
        napi::{
            Napi,
            Poll, //
        },
        page_pool::{
            Assembler,
            Polling,
            RxRing, //
        },
        queue::RingSize,
        rx_list::{
            RxList,
            RxOffloads, //
        }, //
    },
    prelude::*, //
};

use super::{
    buffers::{
        Buffers,
        HEADER_LEN, //
    },
    frames::{
        self,
        Wanted,
        Words, //
    },
    pool_buffers,
    Received,
    Source, //
};
use crate::{
    desc::{
        RxInfo,
        RxStatus, //
    },
    ptp::RxStamps,
    stats::PollCounters, //
};

/// A ring whose frames have their buffers next to each other.
pub(crate) struct Plain<F: Buffers> {
    ring: RxRing<F>,
    frames: Assembler,
}

impl<F: Buffers> Plain<F> {
    /// Allocates the ring, and buffers as far as there is memory.
    pub(super) fn new(dev: &device::Device<Bound>, napi: &Napi, len: RingSize) -> Result<Self> {
        Ok(Self {
            ring: RxRing::new(dev, napi, len, pool_buffers(len))?,
            frames: Assembler::new(),
        })
    }
}

impl<F: Buffers> Source for Plain<F> {
    type Format = F;
    type Ring = RxRing<F>;
    const LRO: bool = false;

    #[inline]
    fn ring(&self) -> &RxRing<F> {
        &self.ring
    }

    #[inline]
    fn ring_mut(&mut self) -> &mut RxRing<F> {
        &mut self.ring
    }

    fn forget_frame(&mut self) {
        self.frames = Assembler::new();
    }

    // Not inlined: in a function of its own, the loop's variables stay in registers.
    #[inline(never)]
    fn take(
        &mut self,
        cx: &Poll<'_>,
        list: &mut RxList<'_>,
        strips: bool,
        stamps: RxStamps<'_>,
        budget: usize,
        counters: &PollCounters,
    ) -> Received {
        let wanted = Wanted::of(cx.device().features(), strips, Self::LRO, stamps);
        let Ok(ring) = self.ring.poll(cx) else {
            // This is not the poll function of this ring, or it runs from netpoll. Neither happens.
            return Received::default();
        };
        take(ring, &mut self.frames, list, wanted, budget, counters)
    }
}

/// Moves completed frames to the list, up to `budget`.
#[inline(always)]
pub(super) fn take<F: Buffers>(
    mut ring: Polling<'_, '_, F>,
    frames: &mut Assembler,
    list: &mut RxList<'_>,
    wanted: Wanted<'_>,
    budget: usize,
    counters: &PollCounters,
) -> Received {
    let mut left = budget;
    let mut bytes = 0;
    // Hardly any: these are counted, rather than the others.
    let mut unverified = 0;

    while left != 0 {
        let Some(done) = ring.next() else {
            break;
        };
        let words = Words {
            status: RxStatus::from_raw(done.status),
            info: RxInfo::from_raw(done.info),
        };

        match done.buffer {
            // Fast path: nearly all frames have one buffer, no error, and nothing to report but
            // their checksum.
            Some(buffer)
                if words.status.is_ordinary()
                    && !words.info.has_hash()
                    && buffer.len() >= HEADER_LEN
                    && frames.is_between_frames() =>
            {
                let verified = wanted.is_verified(words.status);

                left -= 1;
                bytes += u64::from(buffer.len());
                unverified += u64::from(!verified);
                list.push_buffer(
                    buffer,
                    words.info.protocol(),
                    verified,
                    RxOffloads::default(),
                );
            }
            Some(buffer) => {
                let taken = frames::take(frames, buffer, words, wanted, list, counters);
                if let Some((len, verified)) = taken {
                    left -= 1;
                    bytes += u64::from(len);
                    unverified += u64::from(!verified);
                }
            }
            // The buffer went back to the pool. Its frame is lost.
            None => {
                counters.rx_bad_descriptors.add(1);
                frames.discard(words.status.eop());
            }
        }
    }

    Received::of(list, counters, budget, left, bytes, unverified)
}
