// SPDX-License-Identifier: GPL-2.0

//! Formats of descriptors, without a program and with one.

use crate::net::{
    page_pool::{
        Layout,
        RxFormat, //
    },
    xdp::{
        Hashed,
        HintFormat,
        XdpFormat, //
    }, //
};

pub(super) const DONE: u64 = 1;
/// The frame goes on with the next descriptor.
pub(super) const MORE: u64 = 2;
/// The NIC does not report that it has sent the frame.
pub(super) const UNREPORTED: u64 = 4;

/// A descriptor that is about a checksum, and one of a frame that gets it.
pub(super) const CONTEXT: u64 = 8;
pub(super) const SUMMED: u64 = 16;
/// Where the NIC can store it.
pub(super) const CHECKSUM_AT: u16 = 6;

pub(super) const fn done(len: u16) -> u64 {
    (len as u64) << 32 | DONE
}

/// Less than programs can make of a buffer.
pub(super) const MAX_LEN: u16 = 3210;
/// Less than frames can have.
pub(super) const MAX_PARTS: usize = 12;

macro_rules! format {
    ($name:ident, $headroom:expr) => {
        pub(super) struct $name;

        impl RxFormat for $name {
            const LAYOUT: Layout = match Layout::new($headroom, 3072) {
                Some(layout) => layout,
                None => panic!("the buffer does not fit"),
            };
            const DONE: u64 = DONE;

            fn len(status: u64) -> u16 {
                (status >> 32) as u16
            }
        }
    };
}

impl XdpFormat for Wide {
    const MIN_LEN: u16 = 17;
    const MAX_LEN: u16 = MAX_LEN;
    const MAX_PARTS: usize = MAX_PARTS;

    fn is_end(status: u64) -> bool {
        status & MORE == 0
    }

    fn tx_descriptor(address: u64, len: u16, total: u16, is_last: bool) -> [u64; 2] {
        let more = if is_last { 0 } else { MORE };

        [
            address,
            u64::from(len) << 32 | u64::from(total - len) << 16 | more,
        ]
    }

    fn tx_unreported(address: u64, len: u16) -> [u64; 2] {
        [address, u64::from(len) << 32 | UNREPORTED]
    }

    fn tx_checksum(start: u16, offset: u16) -> Option<[u64; 2]> {
        (offset == CHECKSUM_AT).then_some([start.into(), CONTEXT])
    }

    fn with_checksum([address, word]: [u64; 2]) -> [u64; 2] {
        [address, word | SUMMED]
    }

    fn is_sent(status: u64) -> bool {
        status & DONE != 0
    }

    fn goes_on(status: u64) -> bool {
        status & MORE != 0
    }
}

impl HintFormat for Wide {
    fn hash(info: u64, _: u64) -> Option<(u32, Hashed)> {
        (info != 0).then_some((info as u32, Hashed::Ipv6Tcp))
    }

    fn vlan_tag(_: u64, status: u64) -> Option<u16> {
        (status >> 48 != 0).then_some((status >> 48) as u16)
    }
}

format!(Narrow, 64);
format!(Wide, 256);
