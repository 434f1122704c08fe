// SPDX-License-Identifier: GPL-2.0

//! The receive ring for programs of users (XDP).
//!
//! A program sees whole frames. Those in several buffers are for programs that can do with them: if
//! one cannot, the MTU is limited. A program that is detached leaves the ring as it is.

use kernel::{
    device::{
        self,
        Bound, //
    },
    io::register::Array,
    net::{
        napi::{
            Napi,
            Poll,
            RxClosed,
            RxStopped, //
        },
        page_pool::Assembler,
        queue::RingSize,
        rx_list::{
            RxList,
            RxOffloads, //
        },
        xdp::{
            Attachment,
            Decide,
            Hashed,
            HintFormat,
            Program,
            ProgramKind,
            Verdict,
            XdpBuff,
            XdpNext,
            XdpPolling,
            XdpReceived,
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
    plain,
    pool_buffers,
    Received,
    Source, //
};
use crate::{
    desc::{
        RxInfo,
        RxStatus, //
    },
    mmio::Bar0,
    ptp::RxStamps,
    regs::queue::*,
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

impl HintFormat for Xdp {
    fn hash(info: u64, _status: u64) -> Option<(u32, Hashed)> {
        let info = RxInfo::from_raw(info);

        // CAST: It has 32 bits.
        Some((info.rss_hash().get() as u32, info.hashed()?))
    }

    fn vlan_tag(_info: u64, status: u64) -> Option<u16> {
        RxStatus::from_raw(status).vlan_tag()
    }
}

impl Source for XdpSource {
    type Format = Xdp;
    type Ring = XdpRing<Xdp>;
    const LRO: bool = false;

    #[inline]
    fn ring(&self) -> &XdpRing<Xdp> {
        &self.ring
    }

    #[inline]
    fn ring_mut(&mut self) -> &mut XdpRing<Xdp> {
        &mut self.ring
    }

    #[inline(always)]
    fn has_work(&self, cx: &Poll<'_>) -> bool {
        // Frames that were sent are taken back: there is no interrupt for them.
        self.ring.may_have_completed(cx) || self.ring.tx_in_use() != 0
    }

    fn forget_frame(&mut self) {
        self.frames = Assembler::new();
    }

    fn tx_address(&mut self, napi: &Napi) -> Result<Option<u64>> {
        self.ring.tx_dma_address(napi).map(Some)
    }

    fn rewind_tx(
        &mut self,
        stopped: &RxStopped<'_>,
        counters: &PollCounters,
    ) -> Result<Option<u64>> {
        let (address, lost) = self.ring.rewind_tx(stopped)?;

        counters.rx_xdp_lost.add(lost as u64);
        Ok(Some(address))
    }

    fn unsent(&self, closed: &RxClosed<'_>) -> usize {
        self.ring.unsent(closed)
    }

    #[inline]
    fn doorbell(&mut self, bar: &Bar0<'_>, pair: Pair, counters: &PollCounters) {
        if let Some(tail) = self.ring.take_tx_tail() {
            counters.rx_xdp_doorbells.add(1);
            // The register write is ordered after the writes to the descriptors.
            bar.write(TDT::at(pair.xdp_tx().at()), (tail as u32).into());
        }
    }

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
        let Self {
            ring,
            frames,
            program,
        } = self;

        // Each returns its totals at once: they need not be copied.
        match program.program(cx).map(Program::kind) {
            Some(ProgramKind::Bpf(program)) => {
                if let Ok(ring) = ring.poll(cx) {
                    return run(program, ring, frames, list, wanted, budget, counters);
                }
            }
            Some(ProgramKind::Handler(handler)) => {
                if let Ok(ring) = ring.poll(cx) {
                    return run(handler, ring, frames, list, wanted, budget, counters);
                }
            }
            None => {
                if let Ok(ring) = ring.poll_without(cx) {
                    return plain::take(ring, frames, list, wanted, budget, counters);
                }
            }
        }
        // As with other rings, this does not happen.
        Received::default()
    }
}

/// Has the program see completed frames, up to `budget`, and moves those that pass to the list.
// Not inlined: in a function of its own, the loop's variables stay in registers.
#[inline(never)]
fn run<'p, D: Decide<'p>>(
    by: D,
    mut ring: XdpPolling<'_, 'p, Xdp>,
    frames: &mut Assembler,
    list: &mut RxList<'_>,
    wanted: Wanted<'_>,
    budget: usize,
    counters: &PollCounters,
) -> Received {
    let mut run = Run {
        by,
        frames,
        list,
        wanted,
        counters,
        left: budget,
        bytes: 0,
        good: 0,
        dropped: 0,
        transmitted: 0,
        transmitted_bytes: 0,
        redirected: 0,
        aborted: 0,
    };

    ring.offer(wanted.hints());
    while run.left != 0 {
        match ring.next_of_one() {
            Some(XdpNext::One(frame)) => run.take(&mut ring, frame),
            Some(XdpNext::Several) if run.take_several(&mut ring) => (),
            _ => break,
        }
    }
    run.finish(budget)
}

/// A run of the loop: for whom it is, and what has become of the frames.
struct Run<'a, 'b, D> {
    by: D,
    frames: &'a mut Assembler,
    list: &'a mut RxList<'b>,
    wanted: Wanted<'a>,
    counters: &'a PollCounters,
    left: usize,
    bytes: u64,
    /// Of those that pass, the frames whose checksum the NIC has verified.
    good: u64,
    dropped: u64,
    transmitted: u64,
    transmitted_bytes: u64,
    redirected: u64,
    aborted: u64,
}

impl<'p, D: Decide<'p>> Run<'_, '_, D> {
    /// Has the program see a frame.
    #[inline(always)]
    fn take(&mut self, ring: &mut XdpPolling<'_, 'p, Xdp>, frame: XdpReceived<'p, Xdp>) {
        let words = Words {
            status: RxStatus::from_raw(frame.status),
            info: RxInfo::from_raw(frame.info),
        };
        let Words { status, info } = words;
        let Some(buff) = frame.buff else {
            return self.refuse(status);
        };
        // Damaged, the rest of a frame that began before there was a program, or one that the NIC
        // lies about.
        if !status.is_whole() || buff.head_len() < HEADER_LEN || !self.frames.is_between_frames() {
            buff.discard();
            return self.refuse(status);
        }

        self.left -= 1;
        self.bytes += u64::from(buff.len());
        let time = self.wanted.take_time(status);
        match ring.run(self.by, buff, [frame.info, frame.status]) {
            // Fast path, as without a program: there is nothing to report but the checksum.
            Verdict::Pass(buff) if status.is_ordinary() && !info.has_hash() => {
                let verified = self.wanted.is_verified(status);

                self.good += u64::from(verified);
                self.list
                    .push_xdp(buff, info.protocol(), verified, RxOffloads::default());
            }
            Verdict::Pass(buff) => self.pass(buff.moved(), words, time),
            Verdict::Dropped => self.dropped += 1,
            Verdict::Transmitted(len) => {
                self.transmitted += 1;
                self.transmitted_bytes += u64::from(len);
            }
            Verdict::Redirected => self.redirected += 1,
            Verdict::Aborted => self.aborted += 1,
        }
    }

    /// As [`Self::take`], of the next frame, which is in several buffers. Returns false if the NIC
    /// is not done with all of them.
    #[cold]
    #[inline(never)]
    fn take_several(&mut self, ring: &mut XdpPolling<'_, 'p, Xdp>) -> bool {
        let Some(frame) = ring.next_of_several() else {
            return false;
        };

        self.take(ring, frame);
        true
    }

    /// Moves a frame to the list.
    #[inline(never)]
    fn pass(&mut self, buff: XdpBuff<'p, Xdp>, words: Words, time: Option<u64>) {
        let verified = frames::is_verified(words, self.wanted, self.counters);
        let (protocol, offloads) = (words.info.protocol(), self.wanted.offloads(words));

        self.good += u64::from(verified);
        match time {
            None => self.list.push_xdp(buff, protocol, verified, offloads),
            Some(time) => {
                self.list
                    .push_xdp_with_time(buff, time, protocol, verified, offloads);
            }
        }
    }

    /// Drops a frame that the program does not see.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, status: RxStatus) {
        frames::refuse(self.frames, status, self.counters);
    }

    /// The totals of all frames that were taken of a budget.
    #[inline(always)]
    fn finish(self, budget: usize) -> Received {
        let Self { counters, left, .. } = self;
        let unverified = (budget - left) as u64 - self.good;

        if self.dropped != 0 {
            counters.rx_xdp_dropped.add(self.dropped);
        }
        if self.transmitted != 0 {
            counters.rx_xdp_transmitted.add(self.transmitted);
            counters.tx_packets.add(self.transmitted);
            counters.tx_bytes.add(self.transmitted_bytes);
        }
        if self.redirected != 0 {
            counters.rx_xdp_redirected.add(self.redirected);
        }
        if self.aborted != 0 {
            counters.rx_xdp_aborted.add(self.aborted);
        }
        Received {
            // CAST: It is not more than the budget.
            consumed: (self.dropped + self.transmitted + self.redirected + self.aborted) as usize,
            ..Received::of(self.list, counters, budget, left, self.bytes, unverified)
        }
    }
}

#[kunit_tests(ixgbe_rust_xdp)]
mod tests {
    use super::*;

    #[test]
    fn programs_have_the_hash_and_its_kind() {
        let of = |kind: u64| {
            Xdp::hash(0x89ab_cdef << 32 | kind, 0).map(|(hash, kind)| {
                assert_eq!(hash, 0x89ab_cdef);
                kind
            })
        };

        assert_eq!(of(1), Some(Hashed::Ipv4Tcp));
        assert_eq!(of(2), Some(Hashed::Ipv4));
        assert_eq!(of(3), Some(Hashed::Ipv6Tcp));
        assert_eq!(of(5), Some(Hashed::Ipv6));
        assert_eq!(of(7), Some(Hashed::Ipv4Udp));
        assert_eq!(of(8), Some(Hashed::Ipv6Udp));
        // None, reserved, and a filter of the flow director.
        for kind in [0, 4, 6, 9, 15] {
            assert_eq!(of(kind), None);
        }
    }

    #[test]
    fn programs_have_the_tag_if_there_was_one() {
        assert_eq!(Xdp::vlan_tag(0, 0x6123_003c_0000_000b), Some(0x6123));
        assert_eq!(Xdp::vlan_tag(0, 0x6123_003c_0000_0003), None);
    }
}
