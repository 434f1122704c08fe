// SPDX-License-Identifier: GPL-2.0

//! Hints: the NIC's findings on a frame, for programs that ask.
//!
//! A program calls a function of the kernel for a hint, which needs a program that is bound to the
//! device (`BPF_F_XDP_DEV_BOUND_ONLY`). The core attaches it to that device alone, and has it call
//! the functions of the device's driver. Those read the words of the frame's descriptor, which are
//! beside the `struct xdp_buff` that the program runs with. So a hint costs those who ask for it:
//! for others, no more than the two words are stored.
//!
//! C header: [`include/net/xdp.h`](srctree/include/net/xdp.h)

use super::XdpFormat;
use crate::{
    bindings,
    prelude::*, //
};
use core::marker::PhantomData;

/// The fields of a packet that the NIC has hashed: the addresses, and the ports if a transport
/// protocol is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hashed {
    /// Those of IPv4.
    Ipv4,
    /// Those of TCP over IPv4.
    Ipv4Tcp,
    /// Those of UDP over IPv4.
    Ipv4Udp,
    /// Those of IPv6.
    Ipv6,
    /// Those of TCP over IPv6.
    Ipv6Tcp,
    /// Those of UDP over IPv6.
    Ipv6Udp,
}

impl Hashed {
    fn as_raw(self) -> bindings::xdp_rss_hash_type {
        match self {
            Self::Ipv4 => bindings::xdp_rss_hash_type_XDP_RSS_TYPE_L3_IPV4,
            Self::Ipv4Tcp => bindings::xdp_rss_hash_type_XDP_RSS_TYPE_L4_IPV4_TCP,
            Self::Ipv4Udp => bindings::xdp_rss_hash_type_XDP_RSS_TYPE_L4_IPV4_UDP,
            Self::Ipv6 => bindings::xdp_rss_hash_type_XDP_RSS_TYPE_L3_IPV6,
            Self::Ipv6Tcp => bindings::xdp_rss_hash_type_XDP_RSS_TYPE_L4_IPV6_TCP,
            Self::Ipv6Udp => bindings::xdp_rss_hash_type_XDP_RSS_TYPE_L4_IPV6_UDP,
        }
    }
}

/// The hints of a NIC, by the words of the descriptor that completes a frame.
pub trait HintFormat: XdpFormat {
    /// The hash over the packet, and what it is of, if there is one.
    fn hash(info: u64, status: u64) -> Option<(u32, Hashed)>;

    /// The tag of a VLAN of 802.1Q that the NIC has stripped, if there was one.
    fn vlan_tag(info: u64, status: u64) -> Option<u16>;
}

/// The hints that programs can have of a ring now, see
/// [`XdpPolling::offer`](super::XdpPolling::offer).
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints {
    /// The hash over the packet: the feature is on.
    pub hash: bool,
    /// The VLAN tag: the NIC strips it.
    pub vlan_tag: bool,
}

/// The frame that a program runs with. The program has a pointer to it, and knows of the first
/// field only.
#[repr(C)]
pub(super) struct Context {
    pub(super) raw: bindings::xdp_buff,
    /// The words of the descriptor.
    pub(super) words: [u64; 2],
    pub(super) offered: Hints,
}

/// The functions that programs call in place of the core's.
pub(in crate::net) struct HintOps<F>(PhantomData<F>);

impl<F: HintFormat> HintOps<F> {
    pub(in crate::net) const OPS: &'static bindings::xdp_metadata_ops =
        &bindings::xdp_metadata_ops {
            xmo_rx_timestamp: None,
            xmo_rx_hash: Some(Self::hash),
            xmo_rx_vlan_tag: Some(Self::vlan_tag),
        };

    /// # Safety
    ///
    /// Must only be called by a program that runs with the frame of a [`Context`]. The other
    /// pointers must be valid for writing, but need not be aligned: the verifier of programs does
    /// not look at that.
    unsafe extern "C" fn hash(
        frame: *const bindings::xdp_md,
        hash: *mut u32,
        kind: *mut bindings::xdp_rss_hash_type,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        let context = unsafe { &*frame.cast::<Context>() };
        let [info, status] = context.words;

        match F::hash(info, status) {
            Some((value, hashed)) if context.offered.hash => {
                // SAFETY: By the safety requirements.
                unsafe {
                    hash.write_unaligned(value);
                    kind.write_unaligned(hashed.as_raw());
                }
                0
            }
            _ => ENODATA.to_errno(),
        }
    }

    /// # Safety
    ///
    /// As for [`Self::hash`].
    unsafe extern "C" fn vlan_tag(
        frame: *const bindings::xdp_md,
        protocol: *mut bindings::__be16,
        tag: *mut u16,
    ) -> c_int {
        // SAFETY: By the safety requirements.
        let context = unsafe { &*frame.cast::<Context>() };
        let [info, status] = context.words;

        match F::vlan_tag(info, status) {
            Some(value) if context.offered.vlan_tag => {
                // SAFETY: By the safety requirements.
                unsafe {
                    // CAST: It has 16 bits.
                    protocol.write_unaligned((bindings::ETH_P_8021Q as u16).to_be());
                    tag.write_unaligned(value);
                }
                0
            }
            _ => ENODATA.to_errno(),
        }
    }
}
