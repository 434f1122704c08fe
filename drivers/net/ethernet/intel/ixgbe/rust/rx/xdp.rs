// SPDX-License-Identifier: GPL-2.0

//! The receive ring for programs of users (XDP).
//!
//! Each frame is in one buffer, by the limit to the MTU. A program that is detached leaves the ring
//! as it is: then, its frames may take several buffers, as those of other rings.

use kernel::{
    device::{
        self,
        Bound, //
    },
    net::{
        napi::{
            Napi,
            Poll,
            RxStopped, //
        },
        page_pool::{
            Assembler,
            RxRing, //
        },
        queue::RingSize,
        rx_list::RxList,
        xdp::{
            Attachment,
            Program,
            Verdict,
            XdpPolling,
            XdpRing, //
        }, //
    },
    prelude::*,
    sync::Arc, //
};

use super::{
    buffers::{
        Xdp,
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
    stats::PollCounters, //
};

/// A ring whose frames a program sees, if there is one.
pub(crate) struct XdpSource {
    ring: XdpRing<Xdp>,
    frames: Assembler,
    program: Arc<Attachment>,
}

impl XdpSource {
    /// Allocates the ring, and buffers as far as there is memory.
    pub(super) fn new(
        dev: &device::Device<Bound>,
        napi: &Napi,
        len: RingSize,
        program: &Arc<Attachment>,
    ) -> Result<Self> {
        Ok(Self {
            ring: XdpRing::new(dev, napi, len, pool_buffers(len))?,
            frames: Assembler::new(),
            program: program.clone(),
        })
    }
}

impl Source for XdpSource {
    type Format = Xdp;
    const LRO: bool = false;

    #[inline]
    fn ring(&self) -> &RxRing<Xdp> {
        &self.ring
    }

    fn dma_address(&mut self, napi: &Napi) -> Result<u64> {
        self.ring.dma_address(napi)
    }

    fn rewind(&mut self, stopped: RxStopped<'_>) -> Result<u64> {
        // The rest of the frame is not to come.
        self.frames = Assembler::new();
        self.ring.rewind(stopped)
    }

    #[inline]
    fn recycled(&self) -> usize {
        self.ring.recycled()
    }

    #[inline]
    fn refill(&mut self, cx: &Poll<'_>) -> Result<usize> {
        self.ring.refill(cx)
    }

    fn take(
        &mut self,
        cx: &Poll<'_>,
        list: &mut RxList<'_>,
        strips: bool,
        budget: usize,
        counters: &PollCounters,
    ) -> Received {
        let wanted = Wanted::of(cx.device().features(), strips, Self::LRO);
        let frames = &mut self.frames;

        // As with other rings, neither fails.
        let received = match self.program.program(cx) {
            Some(program) => self
                .ring
                .poll(cx)
                .map(|ring| run(program, ring, frames, list, wanted, budget, counters)),
            None => self
                .ring
                .poll_without(cx)
                .map(|ring| super::take(ring, frames, list, wanted, budget, counters)),
        };
        received.unwrap_or_default()
    }
}

/// Has the program see completed frames, up to `budget`, and moves those that pass to the list.
// Not inlined: in a function of its own, the loop's variables stay in registers.
#[inline(never)]
fn run<'p>(
    program: Program<'p>,
    mut ring: XdpPolling<'_, 'p, Xdp>,
    frames: &mut Assembler,
    list: &mut RxList<'_>,
    wanted: Wanted,
    budget: usize,
    counters: &PollCounters,
) -> Received {
    let mut left = budget;
    let mut bytes = 0;
    let mut unverified = 0;
    let mut dropped = 0;
    let mut redirected = 0;

    while left != 0 {
        let Some(done) = ring.next() else {
            break;
        };
        let words = Words {
            status: RxStatus::from_raw(done.status),
            info: RxInfo::from_raw(done.info),
        };
        let Words { status, info } = words;
        let buff = match done.buff {
            Some(buff)
                if status.is_whole() && buff.len() >= HEADER_LEN && frames.is_between_frames() =>
            {
                buff
            }
            // Damaged, or a part of a frame: of one that was longer than the limit when the program
            // was attached, or one that the NIC lies about.
            _ => {
                frames::refuse(frames, status, counters);
                continue;
            }
        };

        left -= 1;
        bytes += u64::from(buff.len());
        match ring.run(program, buff) {
            Verdict::Pass(buff) => {
                let verified = frames::is_verified(words, wanted, counters);

                unverified += u64::from(!verified);
                list.push_xdp(buff, info.protocol(), verified, wanted.offloads(words));
            }
            Verdict::Dropped => {
                unverified += 1;
                dropped += 1;
            }
            Verdict::Redirected => {
                unverified += 1;
                redirected += 1;
            }
            Verdict::Aborted => {
                unverified += 1;
                counters.rx_xdp_aborted.add(1);
            }
        }
    }

    if dropped != 0 {
        counters.rx_xdp_dropped.add(dropped);
    }
    if redirected != 0 {
        counters.rx_xdp_redirected.add(redirected);
    }
    Received::of(list, counters, budget, left, bytes, unverified)
}
