// SPDX-License-Identifier: GPL-2.0

//! The rings for memory of users (AF_XDP without copies).
//!
//! A chunk of 2 KiB has room for frames of 1,792 bytes. The size of a buffer is a multiple of
//! 1 KiB. So it is 2 KiB, and the frame limit keeps the NIC within the chunk, as it does with
//! halves of pages (see [`buffers`](super::buffers)). Frames that are longer take chunks of 4 KiB,
//! or several chunks if the user takes such frames: then the size is what a chunk has room for,
//! which is 1 KiB in one of 2 KiB.

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
            RxStopped, //
        },
        queue::RingSize,
        rx_list::RxList,
        xdp::{
            xsk::{
                XskFrame,
                XskNext,
                XskPolling,
                XskPool,
                XskRing,
                XskRoom,
                XskVerdict, //
            },
            Attachment,
            BpfProgram,
            Program, //
        }, //
    },
    prelude::*,
    sync::Arc, //
};

use super::{
    buffers::{
        FrameLimit,
        Xdp, //
    },
    frames::{
        self,
        Wanted,
        Words, //
    },
    Received,
    RxRegisters,
    REFILL_BATCH, //
};
use crate::{
    desc::{
        RxInfo,
        RxStatus, //
    },
    mmio::Bar0,
    ptp::RxStamps,
    regs::queue::*,
    stats::PollCounters,
    tx::TxRegisters, //
};

/// The most frames of users that are sent by one poll: it is called again for the others.
const MAX_SENT: usize = 256;

/// A size of buffers for the NIC.
#[derive(Clone, Copy)]
struct BufferSize {
    kib: u16,
    /// See [`Buffers::LONGEST`](super::buffers::Buffers::LONGEST).
    longest: u16,
}

impl BufferSize {
    /// The one with which each frame is in one buffer of users' memory, up to [`Self::room`].
    fn whole(room: XskRoom) -> Self {
        // CAST: No more than three.
        let kib = (room.whole / 1024).clamp(2, 3) as u16;
        let full = kib * 1024;
        let takes_parts = room.part.is_some_and(|part| part >= full.into());
        // Longer frames have no other buffers. The frame limit keeps the NIC within a shorter one.
        let longest = if takes_parts {
            u16::MAX
        } else {
            // CAST: Not more than a `u16`.
            room.whole.min(full.into()) as u16
        };

        Self { kib, longest }
    }

    /// The one with which a frame may take several buffers, if there is one.
    fn parts(room: XskRoom) -> Option<Self> {
        // CAST: No more than three.
        let kib = (room.part? / 1024).min(3) as u16;

        (kib != 0).then_some(Self {
            kib,
            longest: u16::MAX,
        })
    }

    /// The one for frames up to a limit, if there is one.
    fn of(room: XskRoom, limit: FrameLimit) -> Option<Self> {
        let whole = Self::whole(room);

        if limit.longest() <= whole.room() {
            return Some(whole);
        }
        Self::parts(room)
    }

    /// The most bytes that a frame in one buffer has.
    fn room(self) -> u16 {
        self.longest.min(self.kib * 1024)
    }

    /// The most bytes of a frame in several ones.
    fn room_of_parts(self) -> u16 {
        // CAST: A small constant.
        self.kib * 1024 * XskRoom::PARTS as u16
    }
}

/// The greatest MTU with which there is room for received frames; 0 if there is none.
pub(crate) fn max_mtu(room: XskRoom) -> u32 {
    let of_parts = BufferSize::parts(room).map_or(0, BufferSize::room_of_parts);

    FrameLimit::max_mtu(BufferSize::whole(room).room().max(of_parts))
}

/// The rings of a queue that has memory of users.
pub(crate) struct XskQueue {
    pair: Pair,
    len: RingSize,
    size: BufferSize,
    strips: bool,
    ring: XskRing<Xdp>,
    program: Arc<Attachment>,
}

impl XskQueue {
    /// Allocates the rings.
    #[expect(clippy::too_many_arguments, reason = "all of them describe the ring")]
    pub(super) fn new(
        dev: &device::Device<Bound>,
        napi: &Napi,
        pair: Pair,
        len: RingSize,
        limit: FrameLimit,
        strips: bool,
        program: &Arc<Attachment>,
        pool: &Arc<XskPool>,
    ) -> Result<Self> {
        // After a reset, the limit may be another one.
        let size = BufferSize::of(pool.room(), limit).ok_or(EAGAIN)?;

        Ok(Self {
            pair,
            len,
            size,
            strips,
            ring: XskRing::new(dev, napi, len, pool)?,
            program: program.clone(),
        })
    }

    /// See [`RxRing::registers`](super::RxRing::registers).
    pub(super) fn registers(&mut self, napi: &Napi) -> Result<RxRegisters> {
        let addresses = self.ring.dma_addresses(napi)?;

        Ok(self.registers_at(addresses))
    }

    /// See [`RxRing::rewind`](super::RxRing::rewind).
    pub(super) fn rewind(&mut self, stopped: RxStopped<'_>, strips: bool) -> Result<RxRegisters> {
        self.strips = strips;
        let addresses = self.ring.rewind(stopped)?;

        Ok(self.registers_at(addresses))
    }

    fn registers_at(&self, [base, tx]: [u64; 2]) -> RxRegisters {
        RxRegisters {
            pair: self.pair,
            base,
            bytes: self.len.bytes(),
            buffer_kib: self.size.kib.into(),
            longest: self.size.longest,
            lro: false,
            strips: self.strips,
            // It gets its first frames when it is polled.
            tail: 0,
            xdp_tx: Some(TxRegisters::new(self.pair.xdp_tx(), tx, self.len.bytes()).unreported()),
            xsk: true,
        }
    }

    /// See [`RxRing::poll`](super::RxRing::poll). Sends the frames of users, too.
    // Not inlined: queues without memory of users have nothing to do with it.
    #[inline(never)]
    pub(super) fn poll(
        &mut self,
        stamps: RxStamps<'_>,
        cx: &Poll<'_>,
        counters: &PollCounters,
    ) -> (usize, bool) {
        let bar = stamps.bar;
        let had_frames = self.ring.in_use() != 0;
        // Many polls are for frames of users, or for sent ones.
        let (packets, has_drained) = if self.ring.may_have_completed(cx) {
            self.receive(stamps, cx, counters)
        } else {
            // As with other rings, this does not fail.
            let _ = self.ring.complete(cx);

            (0, self.refill(bar, cx))
        };
        // A user may give fewer frames than the ring has room for, but none at all are missed.
        if had_frames && self.ring.in_use() == 0 {
            counters.rx_no_buffer.add(1);
        }
        let sent = self.send(bar, cx, counters);

        (packets, has_drained && sent)
    }

    /// Receives up to a budget of frames, and refills the ring. Returns their number, and whether
    /// the ring has been drained and refilled.
    #[inline(never)]
    fn receive(
        &mut self,
        stamps: RxStamps<'_>,
        cx: &Poll<'_>,
        counters: &PollCounters,
    ) -> (usize, bool) {
        let wanted = Wanted::of(cx.device().features(), self.strips, false, stamps);
        let mut list = RxList::new(cx);
        let received = self.take(cx, &mut list, wanted, cx.budget(), counters);
        let filled = self.refill(stamps.bar, cx);

        if received.packets > 0 {
            counters.rx_packets.add(received.packets as u64);
            counters.rx_bytes.add(received.bytes);
            counters.rx_csum_good.add(received.csum_good);
        }
        // The list goes to the stack when this returns.
        (received.packets, received.has_drained && filled)
    }

    /// Has the program see completed frames, up to `budget`.
    fn take(
        &mut self,
        cx: &Poll<'_>,
        list: &mut RxList<'_>,
        wanted: Wanted<'_>,
        budget: usize,
        counters: &PollCounters,
    ) -> Received {
        let program = self.program.program(cx).and_then(Program::as_bpf);

        // As with other rings, this does not fail.
        let Ok(ring) = self.ring.poll(cx) else {
            return Received::default();
        };
        run(program, ring, list, wanted, budget, counters)
    }

    /// Gives the NIC frames that users have given. Returns false if polling has to continue, as
    /// they have given none.
    fn refill(&mut self, bar: &Bar0<'_>, cx: &Poll<'_>) -> bool {
        if self.ring.missing() < REFILL_BATCH {
            return true;
        }
        let Ok(refilled) = self.ring.refill(cx) else {
            return true;
        };

        if refilled.added > 0 {
            // The register write is ordered after the writes to the descriptors.
            let tail = self.ring.tail() as u32;
            bar.write(RDT::at(self.pair.at()), tail.into());
        }
        !refilled.has_to_poll
    }

    /// Sends frames of users, and rings the doorbell for all that are to be sent. Returns false if
    /// polling has to continue, as there are more.
    fn send(&mut self, bar: &Bar0<'_>, cx: &Poll<'_>, counters: &PollCounters) -> bool {
        let mut has_more = false;

        // Without a link, they would stay in the ring, which could not be stopped.
        if cx.device().is_carrier_ok() {
            let sent = self.ring.transmit(cx, MAX_SENT).unwrap_or_default();

            if sent.frames != 0 {
                counters.tx_xsk_frames.add(sent.frames as u64);
                counters.tx_packets.add(sent.frames as u64);
                counters.tx_bytes.add(sent.bytes);
            }
            if sent.refused != 0 {
                counters.tx_xsk_refused.add(sent.refused as u64);
            }
            has_more = sent.has_more;
        } else {
            // As above, this does not fail.
            let _ = self.ring.transmit_later(cx);
        }
        if let Some(tail) = self.ring.take_tx_tail() {
            counters.rx_xdp_doorbells.add(1);
            // The register write is ordered after the writes to the descriptors.
            bar.write(TDT::at(self.pair.xdp_tx().at()), (tail as u32).into());
        }
        !has_more
    }
}

/// Has the program see completed frames, up to `budget`, and copies those that pass.
// Not inlined: in a function of its own, the loop's variables stay in registers.
#[inline(never)]
fn run<'p>(
    program: Option<BpfProgram<'p>>,
    mut ring: XskPolling<'_, 'p, Xdp>,
    list: &mut RxList<'_>,
    wanted: Wanted<'_>,
    budget: usize,
    counters: &PollCounters,
) -> Received {
    let mut left = budget;
    let mut bytes = 0;
    let mut good = 0;
    let mut transmitted = 0;
    let mut transmitted_bytes = 0;
    // Those that were not redirected: to count the others would take a register.
    let mut others = 0;

    ring.offer(wanted.hints());
    while left != 0 {
        let done = match ring.next() {
            Some(XskNext::One(done)) => done,
            Some(XskNext::Other) => {
                let Some(taken) = take_other(program, &mut ring, list, wanted, counters) else {
                    break;
                };

                left -= usize::from(taken.bytes != 0);
                bytes += u64::from(taken.bytes);
                good += u64::from(taken.is_verified);
                others += u64::from(taken.bytes != 0);
                continue;
            }
            None => break,
        };
        let words = Words {
            status: RxStatus::from_raw(done.status),
            info: RxInfo::from_raw(done.info),
        };
        let Some(frame) = done.frame else {
            refuse(words.status, counters);
            continue;
        };

        left -= 1;
        bytes += u64::from(done.len);
        let time = wanted.take_time(words.status);
        let verdict = match program {
            Some(program) => ring.run(program, frame),
            None => XskVerdict::Pass(frame),
        };
        match verdict {
            XskVerdict::Redirected => continue,
            XskVerdict::Pass(frame) => {
                good += u64::from(pass(frame, time, words, wanted, list, counters));
            }
            XskVerdict::Dropped => counters.rx_xdp_dropped.add(1),
            XskVerdict::Transmitted(len) => {
                transmitted += 1;
                transmitted_bytes += u64::from(len);
            }
            XskVerdict::Aborted => counters.rx_xdp_aborted.add(1),
        }
        others += 1;
    }
    let taken = (budget - left) as u64;
    if taken != others {
        counters.rx_xdp_redirected.add(taken - others);
    }
    if transmitted != 0 {
        counters.rx_xdp_transmitted.add(transmitted);
        counters.tx_packets.add(transmitted);
        counters.tx_bytes.add(transmitted_bytes);
    }
    Received::of(list, counters, budget, left, bytes, taken - good)
}

/// Counts a frame that the NIC lies about.
#[cold]
#[inline(never)]
fn refuse(status: RxStatus, counters: &PollCounters) {
    frames::count_refused(status, counters);
}

/// The fate of a frame that is not as most are.
#[derive(Default)]
struct Taken {
    /// The number of its bytes; 0 if it was refused.
    bytes: u32,
    /// It passes, and the NIC has verified its checksum.
    is_verified: bool,
}

/// Has the program see the next frame, which is in several buffers, or refuses it, as it is
/// damaged, or the NIC lies about it. Returns [`None`] if the NIC is not done with all of it.
#[cold]
#[inline(never)]
fn take_other<'p>(
    program: Option<BpfProgram<'p>>,
    ring: &mut XskPolling<'_, 'p, Xdp>,
    list: &mut RxList<'_>,
    wanted: Wanted<'_>,
    counters: &PollCounters,
) -> Option<Taken> {
    let other = ring.take_other(program)?;
    let words = Words {
        status: RxStatus::from_raw(other.status),
        info: RxInfo::from_raw(other.info),
    };
    let Some(verdict) = other.verdict else {
        frames::count_refused(words.status, counters);
        return Some(Taken::default());
    };
    let time = wanted.take_time(words.status);
    let mut is_verified = false;

    match verdict {
        XskVerdict::Pass(copy) => {
            is_verified = frames::is_verified(words, wanted, counters);
            let (protocol, offloads) = (words.info.protocol(), wanted.offloads(words));

            list.push_xsk_copy(copy, time, protocol, is_verified, offloads);
        }
        XskVerdict::Redirected => counters.rx_xdp_redirected.add(1),
        XskVerdict::Dropped => counters.rx_xdp_dropped.add(1),
        XskVerdict::Transmitted(len) => {
            counters.rx_xdp_transmitted.add(1);
            counters.tx_packets.add(1);
            counters.tx_bytes.add(len.into());
        }
        XskVerdict::Aborted => counters.rx_xdp_aborted.add(1),
    }
    Some(Taken {
        bytes: other.len,
        is_verified,
    })
}

/// Hands a copy of a frame to the stack. Returns whether the NIC has verified its checksum.
#[inline(never)]
fn pass(
    frame: XskFrame<'_>,
    time: Option<u64>,
    words: Words,
    wanted: Wanted<'_>,
    list: &mut RxList<'_>,
    counters: &PollCounters,
) -> bool {
    let verified = frames::is_verified(words, wanted, counters);
    let protocol = words.info.protocol();

    list.push_xsk(frame, time, protocol, verified, wanted.offloads(words));
    verified
}

#[kunit_tests(ixgbe_rust_xsk)]
mod tests {
    use super::*;

    #[test]
    fn whole_frames_fit_into_short_chunks() {
        let of = |whole| {
            let room = XskRoom { whole, part: None };
            let size = BufferSize::whole(room);
            assert_eq!(size.room(), size.longest.min(size.kib * 1024));
            (size.kib, size.longest, max_mtu(room))
        };

        // Chunks of 2 KiB.
        assert_eq!(of(1792), (2, 1792, 1766));
        // The same with headroom that the user wants.
        assert_eq!(of(1526), (2, 1526, 1500));
        assert_eq!(of(1525), (2, 1525, 0));
        assert_eq!(of(0), (2, 0, 0));
        // Chunks of 4 KiB.
        assert_eq!(of(3840), (3, 3072, 3046));
        assert_eq!(of(65536), (3, 3072, 3046));
    }

    #[test]
    fn frames_take_several_chunks_if_one_is_too_short() {
        let of = |whole, part, mtu| {
            let room = XskRoom { whole, part };
            let size = BufferSize::of(room, FrameLimit::of_mtu(mtu));
            (size.map(|size| (size.kib, size.longest)), max_mtu(room))
        };

        // Chunks of 2 KiB.
        assert_eq!(of(1792, None, 9000), (None, 1766));
        assert_eq!(of(1792, Some(1408), 1766), (Some((2, 1792)), 18406));
        assert_eq!(of(1792, Some(1408), 1767), (Some((1, u16::MAX)), 18406));
        // The user wants too much headroom.
        assert_eq!(of(1408, Some(1023), 1500), (None, 0));
        assert_eq!(of(1526, Some(1023), 1501), (None, 1500));
        // Chunks of 4 KiB.
        assert_eq!(of(3840, None, 3046), (Some((3, 3072)), 3046));
        assert_eq!(of(3840, Some(3456), 3046), (Some((3, u16::MAX)), 55270));
        assert_eq!(of(3840, Some(3456), 9710), (Some((3, u16::MAX)), 55270));
        // There is room for full buffers, but not if they are several.
        assert_eq!(of(3400, Some(3016), 3046), (Some((3, 3072)), 36838));
        assert_eq!(of(3400, Some(3016), 9000), (Some((2, u16::MAX)), 36838));
    }
}
