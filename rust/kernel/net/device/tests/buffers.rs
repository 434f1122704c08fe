// SPDX-License-Identifier: GPL-2.0

//! Tests of receive buffers that are half of a page, or several pages.

/// The buffers of a ring.
#[derive(Clone, Copy)]
pub(super) enum BufferKind {
    /// Two of them share a page.
    Half,
    Page,
    /// Four pages each.
    Pages,
    /// Buffers of which a packet cannot have as many as fragments.
    Large,
}

#[cfg(CONFIG_PAGE_POOL)]
mod imp {
    use super::{
        super::irq::Irq,
        super::plain::{
            PlainDevice, //
            Plan,
        },
        BufferKind, //
    };

    use crate::{
        bindings,
        device::{
            Bound,
            Device, //
        },
        dma::DmaAddress,
        net::{
            napi::{
                Napi,
                Poll, //
            },
            page_pool::{
                Layout,
                RxFormat,
                RxRing, //
            },
            queue::RingLen,
            skbuff::SkBuff, //
        },
        page::PAGE_SIZE,
        prelude::*,
        sync::atomic::Relaxed, //
    };

    const DONE: u64 = 1;

    /// The greatest number of buffers that the card has: all descriptors but one.
    const BUFFERS: usize = 15;

    const fn done(len: u16) -> u64 {
        (len as u64) << 32 | DONE
    }

    macro_rules! format {
        ($name:ident, $layout:expr) => {
            pub(in super::super) struct $name;

            impl RxFormat for $name {
                const LAYOUT: Layout = match $layout {
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

    format!(Half, Layout::half_page(64, 1536));
    format!(Page, Layout::new(64, 3072));
    format!(Pages, Layout::pages(2, 64, 9216));
    format!(Large, Layout::pages(3, 64, 32256));

    /// The ring of a poller, if it has one.
    pub(in super::super) enum Rings {
        None,
        Half(RxRing<Half>),
        Page(RxRing<Page>),
        Pages(RxRing<Pages>),
        Large(RxRing<Large>),
    }

    impl Rings {
        pub(in super::super) fn new(
            which: Option<BufferKind>,
            dev: &Device<Bound>,
            napi: &Napi,
        ) -> Result<Self> {
            Ok(match which {
                None => Self::None,
                Some(BufferKind::Half) => {
                    Self::Half(RxRing::new(dev, napi, RingLen::of::<16>(), 16)?)
                }
                Some(BufferKind::Page) => {
                    Self::Page(RxRing::new(dev, napi, RingLen::of::<16>(), 16)?)
                }
                Some(BufferKind::Pages) => {
                    Self::Pages(RxRing::new(dev, napi, RingLen::of::<16>(), 16)?)
                }
                Some(BufferKind::Large) => {
                    Self::Large(RxRing::new(dev, napi, RingLen::of::<32>(), 32)?)
                }
            })
        }

        /// Receives packets in all buffers, twice, so that they are recycled.
        pub(in super::super) fn check(&mut self, cx: &Poll<'_>) -> Result {
            for _ in 0..2 {
                match self {
                    Self::None => (),
                    Self::Half(ring) => check(ring, cx, 2)?,
                    Self::Page(ring) => check(ring, cx, 1)?,
                    Self::Pages(ring) => check(ring, cx, 1)?,
                    Self::Large(ring) => check_longest(ring, cx)?,
                }
            }
            Ok(())
        }
    }

    /// Receives a full buffer from each of the ring's. `sharing` buffers share a page.
    fn check<F: RxFormat>(ring: &mut RxRing<F>, cx: &Poll<'_>, sharing: usize) -> Result {
        let (len, size) = (F::LAYOUT.len(), F::LAYOUT.size());
        // A page is given to the card as a whole.
        let count = BUFFERS - BUFFERS % sharing;
        let first = ring.tail() + ring.descriptors() - count;
        let mut addresses = [0; BUFFERS];
        let addresses = &mut addresses[..count];

        if (ring.in_use(), ring.missing()) != (count, 0) {
            return Err(ENOSR);
        }

        for (number, address) in addresses.iter_mut().enumerate() {
            *address = ring
                .write_buffer(cx, first + number, number as u8 + 1)
                .ok_or(ENOENT)?;
        }
        do_not_overlap(addresses, size)?;
        if pages(addresses) != count / sharing {
            return Err(EDOM);
        }
        for number in 0..count {
            ring.write_back(cx, first + number, [0, done(len)]);
        }

        let mut polling = ring.poll(cx)?;
        let mut packet = None;
        for number in 1..=count as u8 {
            let buffer = polling.next().ok_or(ENODATA)?.buffer.ok_or(EMSGSIZE)?;
            if buffer.len() != len || buffer.data().iter().any(|byte| *byte != number) {
                return Err(EBADMSG);
            }
            match &mut packet {
                None => packet = Some(buffer.into_skb().ok_or(ENOMEM)?),
                Some(skb) => buffer.add_to(skb)?,
            }
        }
        drop(polling);

        // All of them are in one packet, each at its place.
        let skb = packet.ok_or(ENODATA)?;
        if skb.len() as usize != count * usize::from(len) {
            return Err(EFBIG);
        }
        for number in 0..count {
            let mut byte = 0u8;
            // SAFETY: The packet has that many bytes, and `byte` takes one.
            let error = unsafe {
                bindings::skb_copy_bits(
                    skb.as_raw(),
                    (number * usize::from(len)) as c_int,
                    (&raw mut byte).cast(),
                    1,
                )
            };
            if error != 0 || usize::from(byte) != number + 1 {
                return Err(EILSEQ);
            }
        }
        // SAFETY: The packet is ours.
        let truesize = unsafe { (*skb.as_raw()).truesize } as usize;
        if truesize < count * size || truesize > count * size + 1024 {
            return Err(ERANGE);
        }
        drop(skb);

        if ring.refill(cx)? == count {
            Ok(())
        } else {
            Err(ENOBUFS)
        }
    }

    /// Receives a packet that would get too long with one more buffer, but not too many fragments.
    fn check_longest<F: RxFormat>(ring: &mut RxRing<F>, cx: &Poll<'_>) -> Result {
        let len = F::LAYOUT.len();
        let fitting = SkBuff::MAX_LEN / u32::from(len);
        if fitting > bindings::MAX_SKB_FRAGS {
            return Err(EDOM);
        }
        let first = ring.tail() + 1;
        for number in 0..=fitting as usize {
            ring.write_back(cx, first + number, [0, done(len)]);
        }

        let mut polling = ring.poll(cx)?;
        let mut next = || polling.next().and_then(|received| received.buffer);
        let mut skb = next().ok_or(ENODATA)?.into_skb().ok_or(ENOMEM)?;
        for _ in 1..fitting {
            next().ok_or(ENODATA)?.add_to(&mut skb)?;
        }
        let refused = next().ok_or(ENODATA)?.add_to(&mut skb);
        if refused != Err(EMSGSIZE) || skb.len() != fitting * u32::from(len) {
            return Err(EFBIG);
        }
        drop(polling);
        drop(skb);

        if ring.refill(cx)? > fitting as usize {
            Ok(())
        } else {
            Err(ENOBUFS)
        }
    }

    /// Fails if two buffers of `size` bytes with these addresses overlap.
    fn do_not_overlap(addresses: &[DmaAddress], size: usize) -> Result {
        for (index, one) in addresses.iter().enumerate() {
            for other in &addresses[index + 1..] {
                if (one.abs_diff(*other) as usize) < size {
                    return Err(EEXIST);
                }
            }
        }
        Ok(())
    }

    /// The number of pages that these addresses are in.
    fn pages(addresses: &[DmaAddress]) -> usize {
        let page = |address: DmaAddress| address as usize / PAGE_SIZE;

        addresses
            .iter()
            .enumerate()
            .filter(|(index, address)| {
                !addresses[..*index]
                    .iter()
                    .any(|other| page(*other) == page(**address))
            })
            .count()
    }

    /// Receives with a ring of that sort. Returns the number of polls, and an error of one.
    fn receive(ring: BufferKind) -> Result<(u32, i32)> {
        let irq = Irq::new()?;
        let device = PlainDevice::<false>::new(Plan {
            irqs: [irq.0, 0, 0, 0],
            ring: Some(ring),
            ..Plan::new(1, 0, 0)
        })?;

        device.up()?;
        device.raise(&irq);
        device.down();
        let plan = &device.plan;
        Ok((plan.polls()[0], plan.ring_errno.load(Relaxed)))
    }

    #[macros::kunit_tests(rust_net_buffers)]
    mod cases {
        use super::*;

        #[test]
        fn half_a_page() -> Result {
            assert_eq!(receive(BufferKind::Half)?, (1, 0));
            Ok(())
        }

        #[test]
        fn a_page() -> Result {
            assert_eq!(receive(BufferKind::Page)?, (1, 0));
            Ok(())
        }

        #[test]
        fn several_pages() -> Result {
            assert_eq!(receive(BufferKind::Pages)?, (1, 0));
            Ok(())
        }

        #[test]
        fn no_packet_of_buffers_is_too_long() -> Result {
            assert_eq!(receive(BufferKind::Large)?, (1, 0));
            Ok(())
        }
    }
}

#[cfg(not(CONFIG_PAGE_POOL))]
mod imp {
    use super::BufferKind;

    use crate::{
        device::{
            Bound,
            Device, //
        },
        net::napi::{
            Napi,
            Poll, //
        },
        prelude::*, //
    };

    pub(in super::super) struct Rings;

    impl Rings {
        pub(in super::super) fn new(
            _which: Option<BufferKind>,
            _dev: &Device<Bound>,
            _napi: &Napi,
        ) -> Result<Self> {
            Ok(Self)
        }

        pub(in super::super) fn check(&mut self, _cx: &Poll<'_>) -> Result {
            Ok(())
        }
    }
}

pub(super) use self::imp::Rings;
