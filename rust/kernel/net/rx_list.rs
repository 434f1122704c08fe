// SPDX-License-Identifier: GPL-2.0

//! Handing received packets to the stack as a list.
//!
//! The packets that a poll function has received go through the stack together: each layer handles
//! all of them before the next one does, and shares lookups between neighbours on the list.
//!
//! GRO merges packets of a flow before that. It inspects each packet to find out whether it can,
//! and for UDP it nearly always cannot: that takes a tunnel, a socket that asks for it, or a
//! feature of the device that is off by default. A card that parses packets reports their protocol,
//! so UDP can bypass GRO, see [`Protocol`].
//!
//! Packets stay in order, with or without GRO.
//!
//! C headers: [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h),
//! [`include/net/gro.h`](srctree/include/net/gro.h)

use super::{
    napi::Poll,
    skbuff::{
        RxHash,
        SkBuff,
        UniqueSkBuff,
        UnsharedSkBuff, //
    }, //
};
#[cfg(CONFIG_PAGE_POOL)]
use super::{
    page_pool::CpuBuffer,
    skbuff::set_protocol, //
};
use crate::{
    bindings,
    prelude::*, //
};
use core::{
    mem::offset_of,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// The protocol of a packet, as reported by the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// UDP, right after the IP header.
    Udp,
    /// Something else, or the card cannot tell.
    Other,
}

/// A list of received packets, in the order in which they came.
///
/// A list lives inside of one run of a poll function, which the reference to [`Poll`] proves. Its
/// packets are handed to the stack when it is dropped.
///
/// # Invariants
///
/// - If there is a `first` packet, `len` packets from `first` to `last` are linked in both
///   directions, and owned by the list. They are ready for the stack.
/// - If there is none, `len` is 0.
///
/// # Examples
///
/// ```
/// use kernel::net::{
///     napi::Poll,
///     rx_list::{
///         Protocol,
///         RxList, //
///     },
///     skbuff::UniqueSkBuff, //
/// };
///
/// fn receive_all(cx: &Poll<'_>, received: impl Iterator<Item = UniqueSkBuff>) {
///     let mut list = RxList::new(cx);
///     for skb in received {
///         list.push(skb, Protocol::Other);
///     }
///     // The packets go to the stack here.
/// }
/// ```
#[cfg_attr(not(CONFIG_PAGE_POOL), allow(dead_code, reason = "for page pools"))]
pub struct RxList<'a> {
    cx: &'a Poll<'a>,
    first: Option<NonNull<bindings::list_head>>,
    last: *mut bindings::list_head,
    len: u32,
    /// No packet goes to GRO.
    no_gro: bool,
    /// UDP does not go to GRO.
    no_udp_gro: bool,
    /// The `queue_mapping` of the packets: the queue that they were received by.
    queue_mapping: u16,
    /// The `napi_id` of the packets.
    napi_id: u32,
    dev: *mut bindings::net_device,
}

// A pointer to a packet is a pointer to its list links.
static_assert!(offset_of!(bindings::sk_buff, __bindgen_anon_1) == 0);

/// The results of a card's work on a received packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct RxOffloads {
    /// The hash over the packet.
    pub hash: Option<RxHash>,
    /// The VLAN tag that the card has stripped.
    pub vlan: Option<u16>,
}

impl RxOffloads {
    /// Records them in the packet.
    #[inline(always)]
    pub fn apply(self, skb: &mut UniqueSkBuff) {
        if let Some(hash) = self.hash {
            skb.set_hash(hash);
        }
        if let Some(tag) = self.vlan {
            skb.set_vlan_tag(tag);
        }
    }
}

/// The SKB of a received frame which has just been built, see [`RxList::push_buffer_with`].
///
/// # Invariants
///
/// No checksum has been recorded yet, unless as verified.
#[cfg(CONFIG_PAGE_POOL)]
pub struct NewSkb<'a>(&'a mut UniqueSkBuff);

#[cfg(CONFIG_PAGE_POOL)]
impl NewSkb<'_> {
    /// Marks the checksum of the transport layer as verified by the card.
    #[inline(always)]
    pub fn set_checksum_verified(&mut self) {
        // SAFETY: The packet is valid, and ours alone. By the type invariants, it is in the state
        // that this needs.
        unsafe { bindings::skb_new_checksum_verified(self.0.as_raw()) };
    }

    /// Records the other results of the card's work.
    #[inline(always)]
    pub fn set_offloads(&mut self, offloads: RxOffloads) {
        offloads.apply(self.0);
    }
}

impl<'a> RxList<'a> {
    /// Returns an empty list.
    #[inline]
    pub fn new(cx: &'a Poll<'a>) -> Self {
        // SAFETY: The device is valid.
        let no_gro = unsafe { bindings::netif_elide_gro(cx.device().as_raw()) };

        // INVARIANT: The list is empty.
        Self {
            cx,
            first: None,
            last: ptr::null_mut(),
            len: 0,
            no_gro,
            no_udp_gro: no_gro || !cx.device().merges_udp(),
            queue_mapping: cx.rx_mapping(),
            // SAFETY: The instance is being polled, so its number does not change.
            napi_id: unsafe { (*cx.napi().as_raw()).gro.cached_napi_id },
            dev: cx.device().as_raw(),
        }
    }

    /// Puts a received Ethernet frame, header and all, on the list.
    ///
    /// As with [`Poll::receive`], this sets the frame's device, protocol and receive queue, and a
    /// frame that cannot be received is dropped.
    #[inline]
    pub fn push(&mut self, skb: UniqueSkBuff, protocol: Protocol) {
        let Some(skb) = self.cx.prepare(skb) else {
            return;
        };

        // SAFETY: The packet is ours, and the instance is being polled here.
        unsafe { bindings::skb_mark_napi_id(skb.as_raw(), self.cx.napi().as_raw()) };
        self.sort(skb, protocol);
    }

    /// Puts a packet that was transmitted on the list, past GRO: it may be a clone.
    ///
    /// As [`Poll::receive_cloned`].
    pub fn push_cloned(&mut self, skb: UnsharedSkBuff) {
        if let Some(skb) = self.cx.prepare_cloned(skb) {
            self.append(skb);
        }
    }

    /// Puts a received Ethernet frame that is in one buffer of a page pool on the list, without
    /// copying.
    ///
    /// `verified` means that the card has verified the checksum of the transport layer. Returns
    /// `false` if there is no memory for an SKB; the page was returned to the pool. A frame that is
    /// shorter than its header is dropped.
    #[cfg(CONFIG_PAGE_POOL)]
    #[inline(always)]
    pub fn push_buffer(
        &mut self,
        buffer: CpuBuffer<'_>,
        protocol: Protocol,
        verified: bool,
    ) -> bool {
        self.push_buffer_with(buffer, protocol, |skb| {
            if verified {
                skb.set_checksum_verified();
            }
        })
    }

    /// As [`Self::push_buffer`]; `describe` is called for the new SKB, unless there is none, to
    /// record what the card has done with the frame.
    #[cfg(CONFIG_PAGE_POOL)]
    #[inline(always)]
    pub fn push_buffer_with(
        &mut self,
        buffer: CpuBuffer<'_>,
        protocol: Protocol,
        describe: impl FnOnce(&mut NewSkb<'_>),
    ) -> bool {
        if u32::from(buffer.len()) < bindings::ETH_HLEN {
            return true;
        }
        let Some(mut skb) = buffer.into_skb() else {
            return false;
        };
        describe(&mut NewSkb(&mut skb));
        let raw = skb.as_raw();

        // SAFETY: The packet is new and has no other owner; its linear part holds the header. The
        // buffer proves that this is the poll function, and not netpoll.
        unsafe {
            set_protocol(&mut skb, bindings::eth_type_trans(raw, self.dev));
            bindings::skb_set_queue_mapping(raw, self.queue_mapping);
            bindings::skb_init_napi_id(raw, self.napi_id);
        }
        self.sort(skb, protocol);
        true
    }

    /// Puts a packet that is ready for the stack on the list, or passes it to GRO.
    #[inline(always)]
    fn sort(&mut self, skb: UniqueSkBuff, protocol: Protocol) {
        let past = match protocol {
            Protocol::Udp => self.no_udp_gro,
            Protocol::Other => self.no_gro,
        };
        if past {
            self.append(skb.into());
        } else {
            self.push_to_gro(skb);
        }
    }

    /// Puts a packet on the list that is ready for the stack.
    #[inline(always)]
    fn append(&mut self, skb: UnsharedSkBuff) {
        let node = SkBuff::from(skb).into_raw().cast::<bindings::list_head>();

        // SAFETY: The packet is ours, and not on a list. By the type invariants, so is `last`, if
        // there is a first packet.
        unsafe {
            (*node.as_ptr()).prev = self.last;
            if self.first.is_some() {
                (*self.last).next = node.as_ptr();
            } else {
                self.first = Some(node);
            }
        }
        // INVARIANT: One more packet is linked, and owned by the list.
        self.last = node.as_ptr();
        self.len += 1;
    }

    /// Passes a packet to GRO, behind those on the list.
    #[inline(never)]
    fn push_to_gro(&mut self, skb: UniqueSkBuff) {
        let len = self.len;

        self.take(|gro, list| {
            // SAFETY: The instance is being polled here, and `list` is a list of packets.
            unsafe { bindings::gro_normal_splice(gro, list, len) };
        });
        self.cx.receive_prepared(skb);
    }

    /// Hands all packets to the stack.
    #[inline]
    pub fn deliver(&mut self) {
        self.take(|gro, list| {
            // SAFETY: As above. This is softirq context.
            unsafe { bindings::gro_normal_receive_list(gro, list) };
        });
    }

    /// Calls `f` with the list in C's form, unless it is empty. `f` takes over the packets.
    #[inline]
    fn take(&mut self, f: impl FnOnce(*mut bindings::gro_node, *mut bindings::list_head)) {
        let Some(first) = self.first.take() else {
            return;
        };
        let mut head = bindings::list_head {
            next: first.as_ptr(),
            prev: self.last,
        };

        // SAFETY: By the type invariants, these are the ends of a list of packets that we own.
        unsafe {
            (*first.as_ptr()).prev = &raw mut head;
            (*self.last).next = &raw mut head;
        }
        // INVARIANT: The list gives up all packets.
        self.len = 0;
        // SAFETY: The instance is valid.
        let gro = unsafe { &raw mut (*self.cx.napi().as_raw()).gro };

        f(gro, &raw mut head);
    }
}

impl Drop for RxList<'_> {
    #[inline]
    fn drop(&mut self) {
        self.deliver();
    }
}
