// SPDX-License-Identifier: GPL-2.0

//! The receive ring for LRO (receive side coalescing, datasheet 7.11).
//!
//! The NIC aggregates segments of a TCP connection over IPv4 that follow each other, until its
//! interrupt is due. Several connections take turns in the ring, so a packet goes on in the
//! descriptor that the NIC names.

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
            ChainRing,
            Chained,
            Piece, //
        },
        queue::RingSize,
        rx_list::RxList, //
    },
    prelude::*, //
};

use super::{
    buffers::{
        Lro,
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

/// A ring whose frames may be aggregated of others.
pub(crate) struct LroRing {
    ring: ChainRing<Lro>,
}

impl LroRing {
    /// Allocates the ring, and buffers as far as there is memory.
    pub(super) fn new(dev: &device::Device<Bound>, napi: &Napi, len: RingSize) -> Result<Self> {
        Ok(Self {
            ring: ChainRing::new(dev, napi, len, pool_buffers(len))?,
        })
    }
}

impl Source for LroRing {
    type Format = Lro;
    type Ring = ChainRing<Lro>;
    const LRO: bool = true;

    #[inline]
    fn ring(&self) -> &ChainRing<Lro> {
        &self.ring
    }

    #[inline]
    fn ring_mut(&mut self) -> &mut ChainRing<Lro> {
        &mut self.ring
    }

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
        let Ok(mut ring) = self.ring.poll(cx) else {
            // This is not the poll function of this ring, or it runs from netpoll. Neither happens.
            return Received::default();
        };
        let mut left = budget;
        let mut bytes = 0;
        let mut unverified = 0;

        while left != 0 {
            let Some(done) = ring.next() else {
                break;
            };
            if let Some((len, verified)) = take(done, wanted, list, counters) {
                left -= 1;
                bytes += u64::from(len);
                unverified += u64::from(!verified);
            }
        }
        Received::of(list, counters, budget, left, bytes, unverified)
    }
}

/// Takes a descriptor. Returns the length of the frame that it completes, if that is received, and
/// whether the NIC has verified its checksum.
#[inline]
fn take(
    done: Chained<'_>,
    wanted: Wanted<'_>,
    list: &mut RxList<'_>,
    counters: &PollCounters,
) -> Option<(u32, bool)> {
    let words = Words {
        status: RxStatus::from_raw(done.status),
        info: RxInfo::from_raw(done.info),
    };
    let Words { status, info } = words;
    let (skb, packets) = match done.piece {
        Piece::Single(buffer)
            if status.is_whole_and_good() && info.packets() <= 1 && buffer.len() >= HEADER_LEN =>
        {
            let (len, verified) = (buffer.len(), wanted.is_verified(status));

            list.push_buffer(buffer, info.protocol(), verified, wanted.offloads(words));
            return Some((len.into(), verified));
        }
        Piece::Single(buffer) => (buffer.into_skb(), info.packets()),
        Piece::Whole(skb, packets) => (Some(skb), packets),
        Piece::NoMemory => (None, 0),
        Piece::Pending => return None,
        Piece::Bad => {
            counters.rx_bad_descriptors.add(1);
            return None;
        }
    };
    let Some(skb) = skb else {
        counters.rx_no_skb.add(1);
        return None;
    };
    frames::take_lro(skb, packets, words, wanted, list, counters)
}
