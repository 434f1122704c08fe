// SPDX-License-Identifier: GPL-2.0

//! Tests of SKBs that are built together: they are like those that are built one by one.

use crate::{
    bindings,
    net::{
        page_pool::fill_new,
        skb_free::tests::context::in_poll,
        skbuff::{
            set_protocol,
            RxHash,
            SkBuff,
            UniqueSkBuff, //
        }, //
    },
    prelude::*, //
};
use core::{
    mem::offset_of,
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};

/// The address of the device.
const OURS: [u8; 6] = [2, 0, 0, 0, 0, 1];

const HEADROOM: u16 = 64;
const SIZE: u32 = bindings::PAGE_SIZE as u32;

/// A received frame.
#[derive(Clone, Copy)]
struct Frame {
    to: [u8; 6],
    /// The type or length, and the first bytes behind it.
    protocol: [u8; 4],
    len: u16,
    /// Flags of type `NAPI_BUILD_*`.
    flags: u32,
    /// Whether the buffer is the second half of its page.
    is_second: bool,
}

const PLAIN: Frame = Frame {
    to: OURS,
    protocol: [8, 0, 0x45, 0],
    len: 60,
    flags: 0,
    is_second: false,
};

const HASH: u32 = 0x1234_5678;
const VLAN: u16 = 0x6007;
const METASIZE: u8 = 12;
const NAPI_ID: u32 = 77;
const QUEUE_MAPPING: u16 = 4;

/// An Ethernet device that is not registered.
struct NetDevice(NonNull<bindings::net_device>);

// SAFETY: A test uses its device in one context at a time.
unsafe impl Send for NetDevice {}

impl NetDevice {
    fn new() -> Result<Self> {
        // SAFETY: There are no requirements.
        let dev = NonNull::new(unsafe { bindings::alloc_etherdev_mqs(0, 1, 1) }).ok_or(ENOMEM)?;

        // SAFETY: The device is ours, and has an address of that length.
        unsafe { bindings::dev_addr_mod(dev.as_ptr(), 0, OURS.as_ptr().cast(), OURS.len()) };
        Ok(Self(dev))
    }
}

impl Drop for NetDevice {
    fn drop(&mut self) {
        // SAFETY: The device is ours, and was not registered.
        unsafe { bindings::free_netdev(self.0.as_ptr()) };
    }
}

impl Frame {
    /// Writes the frame to a new page, or to its second half.
    fn page(&self) -> Option<NonNull<bindings::page>> {
        // SAFETY: There is no requirement but the context, which the flags allow.
        let page = NonNull::new(unsafe { bindings::alloc_pages(bindings::GFP_ATOMIC, 0) })?;

        // SAFETY: The page is ours, and the bytes are in it.
        unsafe {
            let start = bindings::page_address(page.as_ptr()).cast::<u8>();
            let start = start.add(self.offset() + usize::from(HEADROOM));
            ptr::copy_nonoverlapping(self.to.as_ptr(), start, 6);
            ptr::copy_nonoverlapping(self.protocol.as_ptr(), start.add(12), 4);
        }
        Some(page)
    }

    fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    fn size(&self) -> u32 {
        if self.is_second {
            SIZE / 2
        } else {
            SIZE
        }
    }

    fn offset(&self) -> usize {
        (SIZE - self.size()) as usize
    }

    /// Builds the SKB by itself.
    ///
    /// # Safety
    ///
    /// This is softirq context, and `dev` is valid.
    unsafe fn build(&self, dev: *mut bindings::net_device) -> Option<*mut bindings::sk_buff> {
        let page = self.page()?;

        // SAFETY: The buffer is ours, and has room for the frame.
        unsafe {
            let start = bindings::page_address(page.as_ptr()).wrapping_byte_add(self.offset());
            let skb = bindings::napi_build_skb(start, self.size());
            let skb = NonNull::new(skb)?;
            fill_new(skb, HEADROOM.into(), self.len.into());
            (*skb.as_ptr()).queue_mapping = QUEUE_MAPPING;
            let mut skb = UniqueSkBuff::from_new(skb);
            let protocol = bindings::eth_type_trans(skb.as_raw(), dev);
            set_protocol(&mut skb, protocol);
            #[cfg(CONFIG_NET_RX_BUSY_POLL)]
            {
                let header = &raw mut (*skb.as_raw()).__bindgen_anon_4.__bindgen_anon_1;
                (&mut *header).as_mut().__bindgen_anon_3.napi_id = NAPI_ID;
            }
            if self.has(bindings::NAPI_BUILD_CSUM_VERIFIED) {
                skb.set_checksum_verified();
            }
            if self.has(bindings::NAPI_BUILD_HASH) {
                skb.set_hash(if self.has(bindings::NAPI_BUILD_HASH_L4) {
                    RxHash::L4(HASH)
                } else {
                    RxHash::L3(HASH)
                });
            }
            if self.has(bindings::NAPI_BUILD_VLAN) {
                skb.set_vlan_tag(VLAN);
            }
            if self.has(bindings::NAPI_BUILD_METADATA) {
                (*shared_info(skb.as_raw())).meta_len = METASIZE;
            }
            Some(SkBuff::from(skb).into_raw().as_ptr())
        }
    }

    /// The frame for `napi_build_skb_list()`.
    fn described(&self) -> Option<bindings::napi_build_frame> {
        Some(bindings::napi_build_frame {
            page: self
                .page()?
                .as_ptr()
                .map_addr(|address| address | usize::from(self.is_second))
                .cast(),
            size: self.size(),
            hash: HASH,
            len: self.len,
            headroom: HEADROOM,
            vlan_tci: VLAN,
            metasize: METASIZE,
            flags: self.flags as u8,
        })
    }
}

/// The shared info of a packet.
///
/// # Safety
///
/// `skb` is valid.
unsafe fn shared_info(skb: *mut bindings::sk_buff) -> *mut bindings::skb_shared_info {
    // SAFETY: By the safety requirements.
    #[cfg(CONFIG_64BIT)]
    let info = unsafe { (*skb).head.add((*skb).end as usize) };
    // SAFETY: As above.
    #[cfg(not(CONFIG_64BIT))]
    let info = unsafe { (*skb).end };

    info.cast()
}

/// The bytes of a packet apart from its links and the addresses of its data, and those of its
/// shared info that are set.
///
/// # Safety
///
/// `skb` is valid.
unsafe fn bytes<'a>(skb: *mut bindings::sk_buff) -> [&'a [u8]; 3] {
    // SAFETY: By the safety requirements.
    unsafe {
        let from = offset_of!(bindings::sk_buff, __bindgen_anon_2);
        // The last are the offsets of the data, which elsewhere than on 64 bit are addresses.
        // Padding may follow.
        #[cfg(CONFIG_64BIT)]
        let to = offset_of!(bindings::sk_buff, end) + 4;
        #[cfg(not(CONFIG_64BIT))]
        let to = offset_of!(bindings::sk_buff, tail);
        let rest = offset_of!(bindings::sk_buff, truesize);
        let end = offset_of!(bindings::sk_buff, users) + 4;
        let start = skb.cast::<u8>();

        [
            slice::from_raw_parts(start.add(from), to - from),
            slice::from_raw_parts(start.add(rest), end - rest),
            slice::from_raw_parts(
                shared_info(skb).cast::<u8>(),
                offset_of!(bindings::skb_shared_info, dataref) + 4,
            ),
        ]
    }
}

/// Builds each of the frames in both ways. Returns the number of the first one that differs.
fn compare(frames: &[Frame]) -> Result<Option<usize>> {
    let dev = NetDevice::new()?;
    // There may be too many for the stack.
    let mut copy = KVec::with_capacity(frames.len(), GFP_KERNEL)?;
    copy.extend_from_slice(frames, GFP_KERNEL)?;
    let frames = copy;
    let address = dev.0.as_ptr() as usize;

    in_poll(64, move |_| {
        let dev = address as *mut bindings::net_device;
        let mut described = KVec::with_capacity(frames.len(), GFP_ATOMIC)?;
        for frame in &frames {
            described.push(frame.described().ok_or(ENOMEM)?, GFP_ATOMIC)?;
        }
        let mut head = bindings::list_head::default();
        let end = &raw mut head;
        head.next = end;
        head.prev = end;

        // SAFETY: This is softirq context; the frames are in buffers that are ours, and each of
        // the packets, which are on the list in the order of the frames, is freed once.
        unsafe {
            let built = bindings::napi_build_skb_list(
                dev,
                NAPI_ID,
                QUEUE_MAPPING,
                described.as_ptr(),
                described.len() as c_uint,
                end,
            );
            if built as usize != frames.len() {
                return Err(ENOMEM);
            }

            let mut differs = None;
            let (mut node, mut before) = (head.next, end);
            for (number, frame) in frames.iter().enumerate() {
                let skb = node.cast::<bindings::sk_buff>();
                let single = frame.build(dev).ok_or(ENOMEM)?;

                let page = described[number].page.map_addr(|address| address & !1);
                let start = bindings::page_address(page.cast()).cast::<u8>();
                let alike = bytes(skb) == bytes(single)
                    && (*skb).head == start.add(frame.offset())
                    && (*node).prev == before
                    && (*skb).data.offset_from((*skb).head)
                        == (*single).data.offset_from((*single).head)
                    && ptr::eq(
                        (*skb)
                            .__bindgen_anon_1
                            .__bindgen_anon_1
                            .__bindgen_anon_1
                            .dev,
                        dev,
                    );
                if !alike && differs.is_none() {
                    differs = Some(number);
                }
                before = node;
                node = (*node).next;
                drop(SkBuff::from_raw(NonNull::new_unchecked(single)));
            }
            if node != end || head.prev != before {
                differs = Some(frames.len());
            }
            // From the end, since freeing overwrites the links.
            while before != end {
                let skb = before.cast::<bindings::sk_buff>();
                before = (*before).prev;
                drop(SkBuff::from_raw(NonNull::new_unchecked(skb)));
            }
            Ok(differs)
        }
    })?
}

#[macros::kunit_tests(rust_net_new_skbs)]
mod cases {
    use super::*;

    #[test]
    fn one_frame() -> Result {
        assert_eq!(compare(&[PLAIN])?, None);
        Ok(())
    }

    /// More than the cache of heads is filled with at a time.
    #[test]
    fn many_frames() -> Result {
        let frames = KVec::from_elem(PLAIN, 150, GFP_KERNEL)?;
        assert_eq!(compare(&frames)?, None);
        Ok(())
    }

    #[test]
    fn lengths() -> Result {
        let frame = |len| Frame { len, ..PLAIN };
        assert_eq!(
            compare(&[frame(14), frame(15), frame(1514), frame(3000)])?,
            None
        );
        Ok(())
    }

    #[test]
    fn destinations() -> Result {
        let frame = |to| Frame { to, ..PLAIN };
        let to = [
            frame([2, 0, 0, 0, 0, 2]),
            frame([0xff; 6]),
            frame([1, 0, 0x5e, 0, 0, 1]),
            frame([0x33, 0x33, 0, 0, 0, 1]),
            PLAIN,
        ];
        assert_eq!(compare(&to)?, None);
        Ok(())
    }

    #[test]
    fn protocols() -> Result {
        let frame = |protocol| Frame { protocol, ..PLAIN };
        let frames = [
            frame([0x86, 0xdd, 0x60, 0]),
            frame([0x81, 0, 0, 7]),
            // The least type; a length, with and without a header of LLC.
            frame([6, 0, 0, 0]),
            frame([5, 0xff, 0xaa, 0xaa]),
            frame([0, 46, 0xff, 0xff]),
        ];
        assert_eq!(compare(&frames)?, None);
        Ok(())
    }

    #[test]
    fn results_of_the_nic() -> Result {
        let frame = |flags| Frame { flags, ..PLAIN };
        let frames = [
            frame(bindings::NAPI_BUILD_CSUM_VERIFIED),
            frame(bindings::NAPI_BUILD_HASH),
            frame(bindings::NAPI_BUILD_HASH | bindings::NAPI_BUILD_HASH_L4),
            frame(bindings::NAPI_BUILD_VLAN),
            frame(bindings::NAPI_BUILD_VLAN | bindings::NAPI_BUILD_CSUM_VERIFIED),
            frame(bindings::NAPI_BUILD_METADATA),
            PLAIN,
        ];
        assert_eq!(compare(&frames)?, None);
        Ok(())
    }

    #[test]
    fn half_of_a_page() -> Result {
        let second = Frame {
            is_second: true,
            ..PLAIN
        };
        assert_eq!(compare(&[second, PLAIN])?, None);
        Ok(())
    }
}
