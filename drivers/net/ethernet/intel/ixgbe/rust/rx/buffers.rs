// SPDX-License-Identifier: GPL-2.0

//! Receive buffers, and the frames that fit into them.
//!
//! The rest of a buffer holds the headroom and `struct skb_shared_info`, so that an SKB is built
//! around it without copying. The less memory a frame takes, the more of them fit into the receive
//! buffer of a socket: so ordinary frames get half of a page each.
//!
//! The NIC writes a frame to as many buffers as it needs. The size of a buffer (SRRCTL) is a
//! multiple of 1 KiB: 3 KiB in a page, which has room for that much. Half of a page has room for
//! 1.5 KiB, and the size is 2 KiB. There, the frame limit (MAXFRS) is what keeps the NIC within
//! the buffer:
//!
//! - The NIC drops longer frames before they get to a queue, those that it receives from its own
//!   transmitter in a loopback, too. Damaged frames would be stored on demand only (FCTRL.SBP).
//! - The limit counts the frame check sequence, which the NIC strips, but not the tags of VLANs.
//!   So halves are for limits at which a frame fits with two tags.
//! - Each frame begins with a buffer of its own: the NIC does not aggregate frames (RSC is off). If
//!   it is to, frames of any length get whole pages.
//! - Frames that were received with a higher limit may wait in the NIC's packet buffer, which a
//!   reset empties. So the limit that counts is the highest one since then.
//!
//! `ixgbe` relies on the same.

use kernel::{
    net::{
        page_pool::{
            ChainFormat,
            Continuation,
            Layout,
            RxFormat, //
        },
        xdp::XdpFormat, //
    },
    prelude::*, //
};

use crate::desc::{
    self,
    RxInfo,
    RxStatus,
    TxData,
    TX_LIMITS,
    TX_MAX_PACKET,
    TX_MIN_LEN, //
};

/// Length of an Ethernet header. The NIC does not receive shorter frames.
pub(super) const HEADER_LEN: u16 = 14;
/// Length of the frame check sequence.
const FCS_LEN: u16 = 4;
/// The longest frame of an Ethernet that knows no jumbo frames, without frame check sequence.
const ORDINARY_LEN: u16 = 1514;
/// Length of the tags of a VLAN within another one.
const TAGS_LEN: u16 = 8;

/// Room in front of a frame, for headers added on forwarding.
const HEADROOM: u16 = 128;
/// The same for programs, which expect that much.
const XDP_HEADROOM: u16 = 256;
/// Number of bytes that the NIC may write into a page, a multiple of 1 KiB.
const PAGE_LEN: u16 = 3072;
/// The same for half of a page.
const HALF_LEN: u16 = 1536;

const PAGE: Layout = match Layout::new(HEADROOM, PAGE_LEN) {
    Some(layout) => layout,
    None => panic!("the buffer does not fit into a page"),
};
const XDP_PAGE: Layout = match Layout::new(XDP_HEADROOM, PAGE_LEN) {
    Some(layout) => layout,
    None => panic!("the buffer does not fit into a page"),
};
/// [`None`] if this kernel's `struct skb_shared_info` is too long for it.
const HALF: Option<Layout> = Layout::half_page(HEADROOM, HALF_LEN);

/// The greatest MTU with which a frame fits into one page, with two tags.
pub(crate) const MAX_XDP_MTU: u32 = (PAGE_LEN - HEADER_LEN - TAGS_LEN) as u32;

/// The limit to the length of received frames: it includes the frame check sequence, but no tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FrameLimit(u16);

impl FrameLimit {
    /// The limit for an MTU.
    ///
    /// A port receives ordinary frames in any case: its MTU is about frames that it sends, and the
    /// MTU of its peer may be larger.
    pub(crate) fn of_mtu(mtu: u32) -> Self {
        let len = u16::try_from(mtu)
            .unwrap_or(u16::MAX)
            .saturating_add(HEADER_LEN);

        Self(len.max(ORDINARY_LEN).saturating_add(FCS_LEN))
    }

    /// The greatest MTU whose frames take no more than so many bytes; 0 if those that are received
    /// in any case take more.
    pub(crate) fn max_mtu(longest: u16) -> u32 {
        let mtu = longest
            .saturating_sub(HEADER_LEN + FCS_LEN + TAGS_LEN)
            .into();

        if Self::of_mtu(mtu).longest() <= longest {
            mtu
        } else {
            0
        }
    }

    /// The number of bytes.
    pub(crate) fn bytes(self) -> u16 {
        self.0
    }

    /// The most bytes that a frame takes, with two tags.
    pub(crate) fn longest(self) -> u16 {
        self.0.saturating_add(TAGS_LEN)
    }

    /// Whether all frames fit into half of a page.
    pub(crate) fn fits_halves(self) -> bool {
        HALF.is_some() && self.longest() <= HALF_LEN
    }
}

/// Advanced receive descriptors, see [`RxStatus`], and their buffers.
pub(crate) trait Buffers: RxFormat {
    /// Size of a buffer for the NIC, in KiB.
    const KIB: u32 = Self::LAYOUT.len().div_ceil(1024) as u32;
    /// The longest frames that they are for: the NIC would write more of others than there is room
    /// for.
    const LONGEST: u16 = if Self::KIB * 1024 > Self::LAYOUT.len() as u32 {
        Self::LAYOUT.len()
    } else {
        u16::MAX
    };
}

/// Buffers for frames of any length.
pub(crate) struct Pages;

/// The same, with room for what programs put in front of a frame.
pub(crate) struct Xdp;

/// Buffers for frames that [fit](FrameLimit::fits_halves).
pub(crate) struct Halves;

/// Buffers for frames of any length, which the NIC may aggregate to larger ones (datasheet 7.11).
pub(crate) struct Lro;

impl ChainFormat for Lro {
    #[inline]
    fn link(info: u64, status: u64) -> Continuation {
        let status = RxStatus::from_raw(status);

        if status.eop() {
            Continuation::End
        } else if RxInfo::from_raw(info).may_be_lro() {
            Continuation::At(status.next_descriptor())
        } else {
            Continuation::Following
        }
    }

    #[inline]
    fn packets(info: u64) -> u32 {
        RxInfo::from_raw(info).packets()
    }
}

macro_rules! buffers {
    ($name:ident, $layout:expr) => {
        impl RxFormat for $name {
            const LAYOUT: Layout = $layout;
            const DONE: u64 = RxStatus::DD_MASK;

            #[inline(always)]
            fn len(status: u64) -> u16 {
                RxStatus::from_raw(status).pkt_len().cast::<u16>().get()
            }
        }

        impl Buffers for $name {}
    };
}

buffers!(Pages, PAGE);
buffers!(Xdp, XDP_PAGE);
buffers!(Lro, PAGE);
buffers!(
    Halves,
    match HALF {
        Some(layout) => layout,
        // They are not used.
        None => PAGE,
    }
);

impl XdpFormat for Xdp {
    const MIN_LEN: u16 = TX_MIN_LEN;
    const MAX_LEN: u16 = TX_MAX_PACKET as u16;
    const MAX_PARTS: usize = TX_LIMITS.descriptors;

    #[inline(always)]
    fn is_end(status: u64) -> bool {
        RxStatus::from_raw(status).eop()
    }

    #[inline(always)]
    fn is_ordinary(status: u64) -> bool {
        RxStatus::from_raw(status).is_whole()
    }

    #[inline(always)]
    fn tx_descriptor(address: u64, len: u16, total: u16, is_last: bool) -> [u64; 2] {
        desc::tx_part(address, len, total, is_last)
    }

    #[inline(always)]
    fn tx_unreported(address: u64, len: u16) -> [u64; 2] {
        desc::tx_unreported(address, len)
    }

    fn tx_checksum(start: u16, offset: u16) -> Option<[u64; 2]> {
        desc::tx_checksum(start, offset)
    }

    fn with_checksum(words: [u64; 2]) -> [u64; 2] {
        desc::with_checksum(words)
    }

    #[inline(always)]
    fn is_sent(status: u64) -> bool {
        TxData::from_raw(status).dd()
    }

    #[inline(always)]
    fn goes_on(status: u64) -> bool {
        !TxData::from_raw(status).eop()
    }
}

const _: () =
    assert!(Pages::LONGEST == u16::MAX && Xdp::LONGEST == u16::MAX && Lro::LONGEST == u16::MAX);

/// The most descriptors of an aggregated packet, see [`RSCCTL`](crate::regs::queue::RSCCTL).
const LRO_DESCRIPTORS: u32 = 16;

// All of them together have to be shorter than 64 KiB.
const _: () = assert!(LRO_DESCRIPTORS * Lro::KIB < 64);

#[kunit_tests(ixgbe_rust_buffers)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_frames_are_received_with_any_mtu() {
        for (mtu, bytes) in [(68, 1518), (1500, 1518), (1501, 1519), (9710, 9728)] {
            assert_eq!(FrameLimit::of_mtu(mtu).bytes(), bytes);
        }
        assert_eq!(FrameLimit::of_mtu(u32::MAX).bytes(), u16::MAX);
    }

    #[test]
    fn frames_with_two_tags_fit_into_halves() {
        if HALF.is_none() {
            return;
        }
        for mtu in [68, 1500, 1504, 1510] {
            assert!(FrameLimit::of_mtu(mtu).fits_halves());
        }
        for mtu in [1511, 1766, 2048, 9710, u32::MAX] {
            assert!(!FrameLimit::of_mtu(mtu).fits_halves());
        }
    }

    #[test]
    fn lro_frames_go_on_where_the_nic_says() {
        let link = |info, status| Lro::link(info, status);

        assert_eq!(link(0, 3), Continuation::End);
        assert_eq!(link(2 << 17, 0x73), Continuation::End);
        assert_eq!(link(0, 0x1231), Continuation::Following);
        assert_eq!(link(1 << 17, 0x1231), Continuation::At(0x123));
        assert_eq!(Lro::packets(4 << 17), 3);
    }

    #[test]
    fn the_nic_is_told_of_whole_kibibytes() {
        assert_eq!(Pages::KIB, 3);
        assert_eq!(Halves::KIB, if HALF.is_some() { 2 } else { 3 });
    }
}
