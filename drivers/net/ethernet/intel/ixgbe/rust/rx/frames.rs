// SPDX-License-Identifier: GPL-2.0

//! Received frames that are not as most are.

use kernel::{
    net::{
        device::{
            Feature,
            Features, //
        },
        page_pool::{
            Assembler,
            CpuBuffer, //
        },
        rx_list::{
            RxList,
            RxOffloads, //
        },
        skbuff::UniqueSkBuff,
        xdp::Hints, //
    },
    prelude::*, //
};

use super::buffers::HEADER_LEN;
use crate::{
    desc::{
        RxInfo,
        RxStatus, //
    },
    ptp::RxStamps,
    stats::PollCounters, //
};

/// The words of a descriptor that the NIC has completed.
#[derive(Clone, Copy)]
pub(super) struct Words {
    pub(super) status: RxStatus,
    pub(super) info: RxInfo,
}

/// The results of the NIC's work that the stack wants, as the bits of descriptors that tell of
/// them.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    hash: u64,
    tag: u64,
    checksum: u64,
    /// The times of frames that have one.
    stamps: RxStamps<'a>,
}

impl<'a> Wanted<'a> {
    /// Those of the features that are on, from a ring whose frames have had their tags stripped,
    /// or not, and may be aggregated.
    pub(super) fn of(features: Features, strips: bool, lro: bool, stamps: RxStamps<'a>) -> Self {
        let mask = |is_wanted, mask| if is_wanted { mask } else { 0 };

        Self {
            hash: mask(features.contains(Feature::RxHash), RxInfo::RSS_TYPE_MASK),
            // The features may be about to change. A frame that was stripped must not go up without
            // its tag, nor one that was not with a second one.
            tag: mask(strips, RxStatus::VP_MASK),
            // With the feature off, the stack verifies all checksums itself. It cannot do so for
            // frames that were aggregated: theirs is that of the first one.
            checksum: mask(
                lro || features.contains(Feature::RxChecksum),
                RxStatus::L4I_MASK,
            ),
            stamps,
        }
    }

    /// Returns whether the NIC has verified the checksum of a frame without errors.
    #[inline(always)]
    pub(super) fn is_verified(self, status: RxStatus) -> bool {
        status.into_raw() & self.checksum != 0
    }

    /// Records all of it in a packet, but for the checksum.
    fn apply(self, words: Words, skb: &mut UniqueSkBuff) {
        self.offloads(words).apply(skb);
        if let Some(time) = self.take_time(words.status) {
            skb.set_timestamp(time);
        }
    }

    /// Takes the time of a frame, if it has one: others have none before that.
    #[inline(always)]
    pub(super) fn take_time(self, status: RxStatus) -> Option<u64> {
        if status.ts() {
            self.stamps.take()
        } else {
            None
        }
    }

    /// Reads the hash and the VLAN tag.
    pub(super) fn offloads(self, words: Words) -> RxOffloads {
        RxOffloads {
            hash: if self.hash != 0 {
                words.info.hash()
            } else {
                None
            },
            vlan: if self.tag != 0 {
                words.status.vlan_tag()
            } else {
                None
            },
        }
    }

    /// Those of them that programs can ask for.
    pub(super) fn hints(self) -> Hints {
        Hints {
            hash: self.hash != 0,
            vlan_tag: self.tag != 0,
        }
    }
}

/// Takes a buffer that is not a frame as most are. Returns the length of the frame that it
/// completes, if that is received, and whether the NIC has verified its checksum.
// Not inlined: the way of other frames stays short.
#[inline(never)]
pub(super) fn take(
    frames: &mut Assembler,
    buffer: CpuBuffer<'_>,
    words: Words,
    wanted: Wanted<'_>,
    list: &mut RxList<'_>,
    counters: &PollCounters,
) -> Option<(u32, bool)> {
    let Words { status, info } = words;

    if status.is_whole_and_good() && buffer.len() >= HEADER_LEN && frames.is_between_frames() {
        let len = buffer.len();
        let verified = wanted.is_verified(status);
        list.push_buffer(buffer, info.protocol(), verified, wanted.offloads(words));
        return Some((len.into(), verified));
    }

    let mut skb = assemble(frames, buffer, status, counters)?;
    let len = skb.len();
    wanted.apply(words, &mut skb);
    let trusted = wanted.checksum != 0;
    let verified = receive(skb, status, info, list, counters, trusted)?;
    Some((len, verified))
}

/// Adds a buffer to the current frame, and returns the frame when it is complete.
#[inline(never)]
fn assemble(
    frames: &mut Assembler,
    buffer: CpuBuffer<'_>,
    status: RxStatus,
    counters: &PollCounters,
) -> Option<UniqueSkBuff> {
    // The NIC fills a buffer before it uses the next one, so a whole header must be here.
    if frames.is_between_frames() && buffer.len() < HEADER_LEN {
        counters.rx_bad_descriptors.add(1);
        frames.discard(status.eop());
        return None;
    }
    match frames.add(buffer, status.eop()) {
        Ok(frame) => return frame,
        Err(error) if error == ENOMEM => counters.rx_no_skb.add(1),
        // More buffers than the largest frame needs.
        Err(_) => counters.rx_bad_descriptors.add(1),
    }
    None
}

/// Takes a frame that LRO may have aggregated of `packets` ones. Returns as [`take`].
#[inline(never)]
pub(super) fn take_lro(
    mut skb: UniqueSkBuff,
    packets: u32,
    words: Words,
    wanted: Wanted<'_>,
    list: &mut RxList<'_>,
    counters: &PollCounters,
) -> Option<(u32, bool)> {
    let Words { status, info } = words;
    let len = skb.len();

    if skb.head_len() < HEADER_LEN.into() || skb.set_lro(packets).is_err() {
        counters.rx_bad_descriptors.add(1);
        return None;
    }
    wanted.apply(words, &mut skb);
    let trusted = wanted.checksum != 0;
    let verified = receive(skb, status, info, list, counters, trusted)?;

    if packets > 1 {
        counters.rx_lro_segments.add(packets.into());
        counters.rx_lro_packets.add(1);
    }
    Some((len, verified))
}

/// Hands a complete frame to the stack. Returns whether the NIC verified its checksum, or
/// [`None`] if the frame was damaged and dropped.
#[inline(never)]
fn receive(
    mut skb: UniqueSkBuff,
    status: RxStatus,
    info: RxInfo,
    list: &mut RxList<'_>,
    counters: &PollCounters,
    trusted: bool,
) -> Option<bool> {
    if status.rxe() {
        counters.rx_frame_errors.add(1);
        return None;
    }

    let verified = checksum(status, info, counters, trusted);
    if verified {
        skb.set_checksum_verified();
    }

    list.push(skb, info.protocol());
    Some(verified)
}

/// Returns whether the NIC has verified the checksum of a frame. A bad one is counted, if the NIC
/// is trusted with that.
#[inline]
fn checksum(status: RxStatus, info: RxInfo, counters: &PollCounters, trusted: bool) -> bool {
    match Checksum::of(status) {
        _ if !trusted => false,
        Checksum::Unknown => false,
        Checksum::Good => true,
        Checksum::Bad => {
            bad_checksum(status, info, counters);
            false
        }
    }
}

/// As [`Wanted::is_verified`], of a frame that may have a bad checksum, which is counted.
#[inline]
pub(super) fn is_verified(words: Words, wanted: Wanted<'_>, counters: &PollCounters) -> bool {
    let Words { status, info } = words;

    if status.is_whole_and_good() {
        wanted.is_verified(status)
    } else {
        checksum(status, info, counters, wanted.checksum != 0)
    }
}

/// Drops what no program can see: a damaged frame, or a part of one.
#[cold]
pub(super) fn refuse(frames: &mut Assembler, status: RxStatus, counters: &PollCounters) {
    count_refused(status, counters);
    frames.discard(status.eop());
}

/// Counts such a frame, or a part of it.
#[cold]
pub(super) fn count_refused(status: RxStatus, counters: &PollCounters) {
    if status.rxe() {
        counters.rx_frame_errors.add(1);
    } else {
        counters.rx_bad_descriptors.add(1);
    }
}

/// Counts a bad checksum. The stack checks it again, and drops the frame.
#[cold]
fn bad_checksum(status: RxStatus, info: RxInfo, counters: &PollCounters) {
    // The NIC reports UDP without a checksum as an error of that checksum.
    if !info.udp() || status.has_bad_header() {
        counters.rx_csum_errors.add(1);
    }
}
/// The NIC's verdict on the checksums of a frame.
enum Checksum {
    /// The NIC did not check all of them.
    Unknown,
    /// They are correct.
    Good,
    /// One of them is wrong.
    Bad,
}

impl Checksum {
    #[inline]
    fn of(status: RxStatus) -> Self {
        if status.has_bad_header() {
            Self::Bad
        } else if !status.l4i() {
            Self::Unknown
        } else if status.l4e() {
            Self::Bad
        } else {
            Self::Good
        }
    }
}
