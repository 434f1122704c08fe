// SPDX-License-Identifier: GPL-2.0

//! Offloads that a packet asks for or has undergone: checksums, hashes, segmentation, VLAN tags.

use super::{
    SkBuff,
    UniqueSkBuff, //
};

use crate::bindings;

/// A checksum that the NIC is asked to complete.
///
/// The sum over all bytes from `start` to the end of the packet belongs into the bytes at
/// `start + offset`. Both count from the first byte of [`SkBuff::data`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialChecksum {
    /// Where summing starts; usually the transport header.
    pub start: u32,
    /// Where the checksum goes, from `start`.
    pub offset: u16,
    /// How to sum.
    pub kind: ChecksumKind,
}

/// A kind of [`PartialChecksum`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumKind {
    /// The ones' complement sum of TCP and UDP, in two bytes (RFC 1071).
    Internet,
    /// The CRC-32C of SCTP, in four bytes (RFC 9260). The stack asks for it only if the device has
    /// [`Feature::ChecksumSctp`](crate::net::device::Feature::ChecksumSctp).
    Crc32c,
}

/// A hash that the NIC has computed over a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RxHash {
    /// Over addresses only.
    L3(u32),
    /// Over addresses and ports.
    L4(u32),
}

/// Removes the wrapper that `bindgen` puts around the member of a union.
#[inline]
fn member<T>(field: *mut bindings::__BindgenUnionField<T>) -> *mut T {
    field.cast()
}

/// Gives the pointer to the members of `struct sk_buff` that clones inherit.
macro_rules! header {
    ($skb:expr) => {
        member(&raw mut (*$skb.as_raw()).__bindgen_anon_4.__bindgen_anon_1)
    };
}

impl SkBuff {
    /// Whether the packet is in a tunnel, and the NIC may have to do something about what is in
    /// it.
    #[inline]
    pub fn is_encapsulated(&self) -> bool {
        // SAFETY: The packet is valid.
        unsafe { (*header!(self)).encapsulation() != 0 }
    }

    /// The checksum that the NIC has to complete before it sends this packet, if any.
    #[inline]
    pub fn partial_checksum(&self) -> Option<PartialChecksum> {
        // SAFETY: `self` holds a valid packet.
        let (start, offset, crc32c) = unsafe {
            let header = header!(self);

            if u32::from((*header).ip_summed()) != bindings::CHECKSUM_PARTIAL {
                return None;
            }

            // Packets have this field only for the sake of SCTP.
            #[cfg(CONFIG_IP_SCTP)]
            let crc32c = (*header).csum_not_inet() != 0;
            #[cfg(not(CONFIG_IP_SCTP))]
            let crc32c = false;

            let csum = &(*header).__bindgen_anon_1.__bindgen_anon_1;
            (u32::from(csum.csum_start), csum.csum_offset, crc32c)
        };

        Some(PartialChecksum {
            // `csum_start` counts from the start of the buffer. The stack only asks for checksums
            // that start inside of the packet.
            start: start.wrapping_sub(self.headroom()),
            offset,
            kind: if crc32c {
                ChecksumKind::Crc32c
            } else {
                ChecksumKind::Internet
            },
        })
    }

    /// Takes the time at which `dev` sends the packet, if its sender has asked for that.
    ///
    /// To be called at the latest possible moment before the packet is passed to the NIC.
    ///
    /// # Safety
    ///
    /// `dev` must be null or a valid network device, and the packet be ours to transmit.
    #[inline]
    pub(in crate::net) unsafe fn take_tx_timestamp(&self, dev: *mut bindings::net_device) {
        const WANTED: u32 = bindings::SKBTX_SW_TSTAMP | bindings::SKBTX_BPF;

        // SAFETY: The shared info of a valid packet is valid.
        let flags = u32::from(unsafe { (*self.shared_info()).tx_flags });
        if flags & WANTED != 0 {
            // SAFETY: By the safety requirements.
            unsafe { self.report_tx_timestamp(dev) };
        }
    }

    /// The part of `skb_tx_timestamp()` that does not need a PHY, which these devices do not have.
    ///
    /// # Safety
    ///
    /// As [`Self::take_tx_timestamp`].
    #[cold]
    unsafe fn report_tx_timestamp(&self, dev: *mut bindings::net_device) {
        // SAFETY: The packet is valid, and it is being transmitted. A clone of it goes to the
        // sender, with the number of its device. That is `dev`, unless the driver has kept the
        // packet from the transmit function of another one, which may be gone.
        unsafe {
            let device = &raw mut (*self.as_raw())
                .__bindgen_anon_1
                .__bindgen_anon_1
                .__bindgen_anon_1
                .dev;

            if *device != dev {
                *device = dev;
            }
            bindings::skb_tstamp_tx(self.as_raw(), core::ptr::null_mut());
        }
    }

    /// Number of bytes between the start of the buffer and the first byte of the packet.
    #[inline]
    pub fn headroom(&self) -> u32 {
        // SAFETY: `self` holds a valid packet. `head` and `data` point into the same buffer.
        //
        // CAST: Buffers are smaller than 4 GiB.
        unsafe { (*self.as_raw()).data.offset_from((*self.as_raw()).head) as u32 }
    }

    /// Offset of the network header from the first byte of [`SkBuff::data`].
    #[inline]
    pub fn network_offset(&self) -> u32 {
        // SAFETY: `self` holds a valid packet.
        u32::from(unsafe { (*header!(self)).network_header }).wrapping_sub(self.headroom())
    }

    /// [`Self::network_offset`], or the offset of the network header behind labels of MPLS.
    pub fn unlabelled_offset(&self) -> u32 {
        // The rest of a tag, and the type of the protocol behind it.
        const TAG_LEN: usize = 4;

        // SAFETY: `self` holds a valid packet.
        let (protocol, inner) = unsafe {
            let header = header!(self);

            ((*header).protocol, (*header).inner_network_header)
        };
        let mut protocol = u16::from_be(protocol);
        // The headers of the packet, not by skb_network_protocol(), which may move them.
        let mut tags = self
            .data()
            .get(bindings::ETH_HLEN as usize..)
            .unwrap_or(&[])
            .chunks_exact(TAG_LEN);

        while let bindings::ETH_P_8021Q | bindings::ETH_P_8021AD = u32::from(protocol) {
            let Some(&[_, _, high, low]) = tags.next() else {
                break;
            };

            protocol = u16::from_be_bytes([high, low]);
        }
        match u32::from(protocol) {
            bindings::ETH_P_MPLS_UC | bindings::ETH_P_MPLS_MC => {
                u32::from(inner).wrapping_sub(self.headroom())
            }
            _ => self.network_offset(),
        }
    }

    /// Whether the last four bytes are the check sequence of the frame, see
    /// [`Info::sender_fcs`](crate::net::device::Info::sender_fcs).
    #[inline]
    pub fn has_fcs(&self) -> bool {
        // SAFETY: The packet is valid.
        unsafe { (*header!(self)).no_fcs() != 0 }
    }

    /// Size of the segments that the NIC has to split the packet into, if any.
    #[inline]
    pub fn gso_size(&self) -> Option<u16> {
        // SAFETY: The shared info of a valid packet is valid.
        let size = unsafe { (*self.shared_info()).gso_size };
        (size != 0).then_some(size)
    }

    /// The VLAN tag that the NIC has to insert, if any.
    #[inline]
    pub fn vlan_tag(&self) -> Option<u16> {
        // SAFETY: `self` holds a valid packet. Any bits are valid for the union's members.
        unsafe {
            let vlan = &(*header!(self)).__bindgen_anon_2;
            (vlan.vlan_all != 0).then_some(vlan.__bindgen_anon_1.vlan_tci)
        }
    }
}

impl UniqueSkBuff {
    /// Marks a received packet's transport checksum as verified by the NIC.
    #[inline]
    pub fn set_checksum_verified(&mut self) {
        // SAFETY: `self` holds a valid packet that has no other owner.
        unsafe {
            (*header!(self)).set_ip_summed(bindings::CHECKSUM_UNNECESSARY as u8);
        }
    }

    /// Records the VLAN tag that the NIC stripped from a received packet.
    #[inline]
    pub fn set_vlan_tag(&mut self, tag: u16) {
        // SAFETY: `self` holds a valid packet that has no other owner.
        unsafe {
            let vlan = &raw mut (*header!(self)).__bindgen_anon_2.__bindgen_anon_1;

            (*vlan).vlan_proto = (bindings::ETH_P_8021Q as u16).to_be();
            (*vlan).vlan_tci = tag;
        }
    }

    /// Records the hash that the NIC computed over a received packet.
    #[inline]
    pub fn set_hash(&mut self, hash: RxHash) {
        let (value, l4) = match hash {
            RxHash::L3(value) => (value, false),
            RxHash::L4(value) => (value, true),
        };
        // SAFETY: `self` holds a valid packet that has no other owner.
        unsafe { bindings::__skb_set_hash(self.as_raw(), value, false, l4) };
    }
}

/// Sets the payload type of a packet, in network byte order.
#[inline]
pub(in crate::net) fn set_protocol(skb: &mut UniqueSkBuff, protocol: u16) {
    // SAFETY: This is a valid packet, to which there is no other reference.
    unsafe { (*header!(skb)).protocol = protocol };
}
