// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `crate::bindings` of the kernel's sources: constants of C.

pub(crate) const MAX_SKB_FRAGS: u32 = 17;
pub(crate) const IPPROTO_TCP: u32 = 6;
pub(crate) const ETH_P_IP: u32 = 0x0800;
pub(crate) const ETH_P_8021Q: u32 = 0x8100;
pub(crate) const ETH_P_IPV6: u32 = 0x86dd;
pub(crate) const ETH_P_8021AD: u32 = 0x88a8;
pub(crate) const SKB_GSO_TCPV4: u32 = 1 << 0;
pub(crate) const SKB_GSO_TCPV6: u32 = 1 << 4;
pub(crate) const GSO_BY_FRAGS: u32 = 0xffff;

/// # Safety
///
/// There are no requirements.
pub(crate) unsafe fn irqs_disabled() -> bool {
    false
}

/// `struct skb_shared_info`.
#[derive(Default)]
pub(crate) struct SharedInfo {
    pub(crate) gso_size: u16,
    pub(crate) gso_segs: u16,
    pub(crate) gso_type: u32,
}
