// SPDX-License-Identifier: GPL-2.0

//! Handing received packets to the stack as a list.
//!
//! The packets that a poll function has received go through the stack together: each layer handles
//! all of them before the next one does, and shares lookups between neighbours on the list.
//!
//! GRO merges packets of a flow before that. It inspects each packet to find out whether it can,
//! and for UDP it nearly always cannot: that takes a tunnel, a socket that asks for it, or a
//! feature of the device that is off by default. A NIC that parses packets reports their protocol,
//! so UDP can bypass GRO, see [`Protocol`].
//!
//! Frames in buffers of a page pool are gathered first, and the SKBs of up to [`STAGED`] of them
//! are built in one call: their heads are taken together, and code and constants stay in registers
//! and caches.
//!
//! Packets stay in order, with or without GRO.
//!
//! C headers: [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h),
//! [`include/net/gro.h`](srctree/include/net/gro.h),
//! [`include/net/napi_build.h`](srctree/include/net/napi_build.h)

use super::{
    ablation,
    napi::Poll,
    page_pool::CpuBuffer,
    skbuff::{
        RxHash,
        SkBuff,
        UniqueSkBuff, //
    }, //
};
use crate::{
    bindings,
    prelude::*, //
};
use core::{
    mem::{
        self,
        offset_of,
        MaybeUninit, //
    },
    ops::Range,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// The protocol of a packet, as reported by the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// UDP, right after the IP header.
    Udp,
    /// Something else, or the NIC cannot tell.
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
/// - There are fewer than [`STAGED`] staged frames: the first `staged_len` elements of `staged` are
///   initialised, and their buffers owned by the list. They come after the packets.
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
    staged: [MaybeUninit<bindings::napi_build_frame>; STAGED],
    staged_len: usize,
    /// The staged frames go to GRO.
    staged_for_gro: bool,
    lost: LostFrames,
}

/// Number of frames whose SKBs are built together.
pub const STAGED: usize = 32;

/// Frames that there was no memory for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostFrames {
    /// Their number.
    pub frames: usize,
    /// The bytes in them.
    pub bytes: usize,
    /// The number of those whose checksums the NIC had not verified.
    pub unverified: usize,
}

// A pointer to a packet is a pointer to its list links.
static_assert!(offset_of!(bindings::sk_buff, __bindgen_anon_1) == 0);

/// The results of a NIC's work on a received packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct RxOffloads {
    /// The hash over the packet.
    pub hash: Option<RxHash>,
    /// The VLAN tag that the NIC has stripped.
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

    /// Records them in a frame whose SKB is still to be built.
    #[inline(always)]
    fn describe(
        self,
        mut frame: bindings::napi_build_frame,
        verified: bool,
    ) -> bindings::napi_build_frame {
        // CAST: The flags fit into 8 bits.
        if verified {
            frame.flags |= bindings::NAPI_BUILD_CSUM_VERIFIED as u8;
        }
        if let Some(hash) = self.hash {
            frame.flags |= bindings::NAPI_BUILD_HASH as u8;
            frame.hash = match hash {
                RxHash::L3(hash) => hash,
                RxHash::L4(hash) => {
                    frame.flags |= bindings::NAPI_BUILD_HASH_L4 as u8;
                    hash
                }
            };
        }
        if let Some(tag) = self.vlan {
            frame.flags |= bindings::NAPI_BUILD_VLAN as u8;
            frame.vlan_tci = tag;
        }
        frame
    }
}

impl<'a> RxList<'a> {
    /// Returns an empty list.
    #[inline]
    pub fn new(cx: &'a Poll<'a>) -> Self {
        let all_to_gro = ablation::is_off!(gro);
        let dev = cx.device().as_raw();
        // SAFETY: The device is valid.
        let no_gro = !all_to_gro && unsafe { bindings::netif_elide_gro(dev) };
        // SAFETY: As above.
        let merges_udp = || unsafe { bindings::udp_gro_wanted(dev) };

        // INVARIANT: The list is empty.
        Self {
            cx,
            first: None,
            last: ptr::null_mut(),
            len: 0,
            no_gro,
            no_udp_gro: !all_to_gro && (no_gro || !merges_udp()),
            queue_mapping: cx.rx_mapping(),
            // SAFETY: The instance is being polled, so its number does not change.
            napi_id: unsafe { (*cx.napi().as_raw()).gro.cached_napi_id },
            dev,
            staged: [const { MaybeUninit::uninit() }; STAGED],
            staged_len: 0,
            staged_for_gro: false,
            lost: LostFrames::default(),
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
        self.build_staged();
        self.push_prepared(skb, protocol);
    }

    /// Puts a packet on the list, behind all others, that is ready for the stack.
    #[inline(always)]
    fn push_prepared(&mut self, skb: UniqueSkBuff, protocol: Protocol) {
        if self.goes_to_gro(protocol) {
            self.push_to_gro(skb);
        } else if ablation::is_off!(lists) {
            self.receive_alone(skb);
        } else {
            self.link(skb);
        }
    }

    #[inline(always)]
    fn link(&mut self, skb: UniqueSkBuff) {
        let node = SkBuff::from(skb).into_raw().as_ptr().cast();

        // SAFETY: The packet is ours, and not on a list.
        unsafe { self.append(node, node, 1) };
    }

    /// Puts a received Ethernet frame that is in one buffer of a page pool on the list, without
    /// copying.
    ///
    /// `verified` means that the NIC has verified the checksum of the transport layer, and
    /// `offloads` are other results of its work. A frame that is shorter than its header is
    /// dropped. The SKB is built later, see [`Self::build`].
    #[inline(always)]
    pub fn push_buffer(
        &mut self,
        buffer: CpuBuffer<'_>,
        protocol: Protocol,
        verified: bool,
        offloads: RxOffloads,
    ) {
        if u32::from(buffer.len()) < bindings::ETH_HLEN {
            return;
        }
        if ablation::is_off!(heads) {
            self.push_alone(buffer, protocol, verified, offloads);
            return;
        }
        // SAFETY: The frame is in the buffer that it owns, and its length was checked above.
        unsafe { self.stage(buffer.into_frame(), protocol, verified, offloads) };
    }

    /// Stages a frame.
    ///
    /// # Safety
    ///
    /// `frame` must own the buffer that it is in, which becomes the list's, and not be shorter than
    /// its header.
    #[inline(always)]
    pub(in crate::net) unsafe fn stage(
        &mut self,
        frame: bindings::napi_build_frame,
        protocol: Protocol,
        verified: bool,
        offloads: RxOffloads,
    ) {
        let for_gro = self.goes_to_gro(protocol);
        if for_gro != self.staged_for_gro {
            self.stage_for_gro(for_gro);
        }

        let frame = offloads.describe(frame, verified);
        // SAFETY: By the type invariants, `staged_len` is an index.
        unsafe { self.staged.get_unchecked_mut(self.staged_len) }.write(frame);
        // INVARIANT: One more frame is staged. If that makes too many, they are built now.
        self.staged_len += 1;
        if self.staged_len == STAGED {
            self.build_all_staged();
        }
    }

    /// As [`Self::push_buffer`], with an SKB that is built at once.
    #[inline(never)]
    fn push_alone(
        &mut self,
        buffer: CpuBuffer<'_>,
        protocol: Protocol,
        verified: bool,
        offloads: RxOffloads,
    ) {
        let bytes = usize::from(buffer.len());

        match buffer.into_skb() {
            Some(skb) => self.push_built(skb, protocol, verified, offloads),
            None => self.lose_one(bytes, verified),
        }
    }

    /// Puts a frame on the list whose SKB was built. See [`Self::push_buffer`].
    #[inline]
    pub(in crate::net) fn push_built(
        &mut self,
        mut skb: UniqueSkBuff,
        protocol: Protocol,
        verified: bool,
        offloads: RxOffloads,
    ) {
        if verified {
            skb.set_checksum_verified();
        }
        offloads.apply(&mut skb);
        self.push(skb, protocol);
    }

    /// The poll function that the list is of.
    #[inline]
    pub(in crate::net) fn poll(&self) -> &'a Poll<'a> {
        self.cx
    }

    /// Counts a frame that there was no memory for.
    #[cold]
    pub(in crate::net) fn lose_one(&mut self, bytes: usize, verified: bool) {
        self.lost.frames += 1;
        self.lost.bytes += bytes;
        self.lost.unverified += usize::from(!verified);
    }

    /// Changes the way of the next frames.
    #[inline(never)]
    fn stage_for_gro(&mut self, for_gro: bool) {
        self.build_staged();
        self.staged_for_gro = for_gro;
    }

    /// Builds the SKBs of all frames so far. Those that GRO may merge are passed to it.
    ///
    /// Returns the frames that could not be received since the last call, because there was no
    /// memory for an SKB: their pages were returned to the pool.
    #[inline]
    pub fn build(&mut self) -> LostFrames {
        self.build_staged();
        mem::take(&mut self.lost)
    }

    /// Builds the SKBs of the frames that are staged, if any.
    #[inline(always)]
    fn build_staged(&mut self) {
        if self.staged_len != 0 {
            self.build_all_staged();
        }
    }

    /// As [`Self::build_staged`].
    #[inline(never)]
    fn build_all_staged(&mut self) {
        // INVARIANT: The list gives up all staged frames.
        let len = mem::take(&mut self.staged_len);
        let mut head = bindings::list_head::default();
        let end = &raw mut head;
        head.next = end;
        head.prev = end;

        // SAFETY: By the type invariants, there are `len` frames, whose buffers are ours; the SKBs
        // own them from here on. They are at least as long as a header. `cx` proves that this is
        // the poll function; a buffer, that it is not netpoll.
        let built = unsafe {
            bindings::napi_build_skb_list(
                self.dev,
                self.napi_id,
                self.queue_mapping,
                self.staged.as_ptr().cast(),
                // CAST: At most `STAGED`.
                len as c_uint,
                end,
            )
        };
        // CAST: `usize` has at least 32 bits wherever the kernel runs.
        if built as usize != len {
            self.lose(built as usize..len);
        }
        if built == 0 {
            return;
        }

        if self.staged_for_gro || ablation::is_off!(lists) {
            // SAFETY: `head` is a list of new packets.
            unsafe { self.pass_each(head.next, end) };
            return;
        }
        // SAFETY: These are the ends of a list of `built` new packets.
        unsafe { self.append(head.next, head.prev, built) };
    }

    /// Drops staged frames.
    #[cold]
    fn lose(&mut self, frames: Range<usize>) {
        for frame in self.staged.get(frames).into_iter().flatten() {
            // SAFETY: The caller has given up these frames, which were staged.
            let frame = unsafe { frame.assume_init_ref() };

            self.lost.frames += 1;
            self.lost.bytes += usize::from(frame.len);
            // CAST: The flags fit into 8 bits.
            if frame.flags & bindings::NAPI_BUILD_CSUM_VERIFIED as u8 == 0 {
                self.lost.unverified += 1;
            }
            // SAFETY: The frame comes from `into_frame()`, and its buffer is ours.
            drop(unsafe { CpuBuffer::device_buffer_of(frame) });
        }
    }

    /// Passes new packets on one by one, behind those on the list: to GRO, or past it.
    ///
    /// # Safety
    ///
    /// The packets from `node` to before `end` are new and ready for the stack, linked by `next`,
    /// and owned by the caller, who gives them up.
    unsafe fn pass_each(
        &mut self,
        mut node: *mut bindings::list_head,
        end: *mut bindings::list_head,
    ) {
        while !ptr::eq(node, end) {
            // SAFETY: By the safety requirements. A pointer to the links is one to the packet.
            let skb = unsafe {
                let this = node;

                node = (*this).next;
                (*this).next = ptr::null_mut();
                (*this).prev = ptr::null_mut();
                UniqueSkBuff::from_new(NonNull::new_unchecked(this.cast()))
            };
            if ablation::is_off!(lists) && !self.staged_for_gro {
                self.receive_alone(skb);
            } else {
                self.push_to_gro(skb);
            }
        }
    }

    /// Whether packets of that protocol go to GRO.
    #[inline(always)]
    fn goes_to_gro(&self, protocol: Protocol) -> bool {
        !match protocol {
            Protocol::Udp => self.no_udp_gro,
            Protocol::Other => self.no_gro,
        }
    }

    /// Appends packets that are ready for the stack.
    ///
    /// # Safety
    ///
    /// `len` packets from `first` to `last` must be linked in both directions, and owned by the
    /// caller, who gives them up.
    #[inline(always)]
    unsafe fn append(
        &mut self,
        first: *mut bindings::list_head,
        last: *mut bindings::list_head,
        len: u32,
    ) {
        // SAFETY: By the safety requirements, and by the type invariants `last` is the last packet
        // if there is a first one.
        unsafe {
            (*first).prev = self.last;
            if self.first.is_some() {
                (*self.last).next = first;
            } else {
                self.first = NonNull::new(first);
            }
        }
        // INVARIANT: More packets are linked, and owned by the list.
        self.last = last;
        self.len += len;
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

    /// Hands a packet to the stack that is on no list, behind those that are.
    #[inline(never)]
    fn receive_alone(&mut self, skb: UniqueSkBuff) {
        // SAFETY: The instance is being polled here.
        if self.first.is_some() || unsafe { (*self.cx.napi().as_raw()).gro.rx_count } != 0 {
            self.link(skb);
            self.deliver_linked();
            return;
        }
        // SAFETY: The packet is ours, and given up here. This is softirq context.
        unsafe { bindings::netif_receive_skb(SkBuff::from(skb).into_raw().as_ptr()) };
    }

    /// Hands all packets to the stack.
    #[inline]
    pub fn deliver(&mut self) {
        self.build_staged();
        self.deliver_linked();
    }

    #[inline]
    fn deliver_linked(&mut self) {
        let len = self.len;

        self.take(|gro, list| {
            // SAFETY: The instance is being polled here, and `list` is a list of packets. This is
            // softirq context.
            unsafe {
                if Poll::can_call_stack() {
                    bindings::gro_normal_receive_list(gro, list);
                } else {
                    // The core delivers them after the poll function.
                    bindings::gro_normal_splice(gro, list, len);
                }
            }
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
