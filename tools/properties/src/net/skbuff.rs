// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::net::skbuff`: the folder `skbuff/` is a link to the kernel's.

#[rustfmt::skip]
mod lro;

use crate::bindings::SharedInfo;
use crate::page_pool::Buffer;
use std::cell::UnsafeCell;

/// A hash over a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RxHash {
    L3(u32),
    L4(u32),
}

/// The kind of a checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChecksumKind {
    Internet,
    Crc32c,
}

/// A checksum that is to be completed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartialChecksum {
    pub(crate) start: u32,
    pub(crate) offset: u16,
    pub(crate) kind: ChecksumKind,
}

/// The transport protocol of a packet that is split.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SegmentedProtocol {
    Tcp,
    Udp,
}

/// How to split a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segmentation {
    pub(crate) protocol: SegmentedProtocol,
    pub(crate) ipv4: bool,
    pub(crate) size: u16,
    pub(crate) network: u32,
    pub(crate) transport: u32,
    pub(crate) headers: u32,
}

/// A packet: its linear part, the number of bytes behind that, and the buffers that it is made of.
pub(crate) struct UniqueSkBuff {
    pub(crate) linear: Vec<u8>,
    pub(crate) more: u32,
    pub(crate) buffers: Vec<Buffer>,
    info: UnsafeCell<SharedInfo>,
}

impl UniqueSkBuff {
    pub(crate) fn new(linear: Vec<u8>, more: u32) -> Self {
        Self {
            linear,
            more,
            buffers: Vec::new(),
            info: UnsafeCell::default(),
        }
    }

    pub(crate) fn data(&self) -> &[u8] {
        &self.linear
    }

    pub(crate) fn len(&self) -> u32 {
        self.linear.len() as u32 + self.more
    }

    pub(crate) fn shared_info(&self) -> *mut SharedInfo {
        self.info.get()
    }

    pub(crate) fn info(&mut self) -> &SharedInfo {
        self.info.get_mut()
    }
}
