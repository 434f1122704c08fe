// SPDX-License-Identifier: GPL-2.0

//! Tests of receive buffers that are a page, or half of one.

/// The buffers of a ring.
#[derive(Clone, Copy)]
pub(super) enum BufferKind {
    /// Two of them share a page.
    Half,
    Page,
    /// Pages of frames whose buffers take turns.
    Chained,
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
        io::io_read,
        net::{
            napi::{
                Napi,
                Poll,
                RxStopped, //
            },
            page_pool::{
                AnyRxRing,
                ChainFormat,
                ChainRing,
                Continuation,
                CpuBuffer,
                Layout,
                Piece,
                RxFormat,
                RxRing, //
            },
            queue::RingSize, //
        },
        page::PAGE_SIZE,
        prelude::*,
        sync::atomic::Relaxed, //
    };

    const DONE: u64 = 1;

    /// The greatest number of buffers that the NIC has: all descriptors but one.
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
    format!(Linked, Layout::new(64, 3072));

    const END: u64 = 1 << 1;
    /// In the first word: where the frame goes on is in the second one.
    const LINKED: u64 = 1 << 0;

    impl ChainFormat for Linked {
        fn link(info: u64, status: u64) -> Continuation {
            if status & END != 0 {
                Continuation::End
            } else if info & LINKED != 0 {
                Continuation::At((status >> 4 & 0xffff) as usize)
            } else {
                Continuation::Following
            }
        }

        fn packets(info: u64) -> u32 {
            (info >> 8) as u32
        }
    }

    /// The ring of a poller, if it has one.
    pub(in super::super) enum Rings {
        None,
        Half(RxRing<Half>),
        Page(RxRing<Page>),
        Chained(ChainRing<Linked>),
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
                    Self::Half(RxRing::new(dev, napi, RingSize::of::<16>(), 16)?)
                }
                Some(BufferKind::Page) => {
                    Self::Page(RxRing::new(dev, napi, RingSize::of::<16>(), 16)?)
                }
                Some(BufferKind::Chained) => {
                    Self::Chained(ChainRing::new(dev, napi, RingSize::of::<16>(), 16)?)
                }
            })
        }

        /// Lets the NIC begin anew.
        pub(in super::super) fn rewind(&mut self, stopped: RxStopped<'_>) -> Result {
            let napi = stopped.napi();

            match self {
                Self::Half(ring) => ring.rewind(stopped)?,
                Self::Page(ring) => ring.rewind(stopped)?,
                Self::Chained(ring) => ring.rewind(stopped)?,
                Self::None => return Ok(()),
            };
            // It has the address by now.
            match self.tell(napi) {
                Err(EBUSY) => Ok(()),
                _ => Err(EBADFD),
            }
        }

        /// Gets the address for the NIC.
        pub(in super::super) fn tell(&mut self, napi: &Napi) -> Result {
            match self {
                Self::Half(ring) => ring.dma_address(napi)?,
                Self::Page(ring) => ring.dma_address(napi)?,
                Self::Chained(ring) => ring.dma_address(napi)?,
                Self::None => 0,
            };
            Ok(())
        }

        /// Receives packets in all buffers, twice, so that they are recycled.
        pub(in super::super) fn check(&mut self, cx: &Poll<'_>) -> Result {
            for _ in 0..2 {
                match self {
                    Self::None => (),
                    Self::Half(ring) => check(ring, cx, 2)?,
                    Self::Page(ring) => check(ring, cx, 1)?,
                    Self::Chained(ring) => check_chained(ring, cx)?,
                }
            }
            Ok(())
        }
    }

    /// Whether all bytes that were received are this one.
    fn is_filled(buffer: &CpuBuffer<'_>, byte: u8) -> Result<bool> {
        for at in 0..usize::from(buffer.len()) {
            if io_read!(buffer.data(), [try: at]) != byte {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Receives a full buffer from each of the ring's. `sharing` buffers share a page.
    fn check<F: RxFormat>(ring: &mut RxRing<F>, cx: &Poll<'_>, sharing: usize) -> Result {
        let (len, size) = (F::LAYOUT.len(), F::LAYOUT.size());
        // A page is given to the NIC as a whole.
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
            if buffer.len() != len || !is_filled(&buffer, number)? {
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

    /// The expected result of a descriptor.
    #[derive(Debug, PartialEq, Eq)]
    enum Expected {
        Single,
        /// A frame of these buffers, and of that number of packets.
        Whole(&'static [u8], u32),
        Pending,
        Bad,
    }

    /// Receives frames whose buffers take turns, and descriptors that make no sense.
    fn check_chained(ring: &mut ChainRing<Linked>, cx: &Poll<'_>) -> Result {
        const LEN: u16 = 100;
        let first = ring.tail() + 1;
        let write =
            |ring: &ChainRing<Linked>, number: usize, link: Continuation, len, packets: u64| {
                let at = |number: usize| (first + number) % 16;
                let (info, status) = match link {
                    Continuation::End => (0, END),
                    Continuation::Following => (0, 0),
                    // Numbers of this test, unless they are out of range.
                    Continuation::At(next @ 0..16) => (LINKED, (at(next) as u64) << 4),
                    Continuation::At(next) => (LINKED, (next as u64) << 4),
                };
                ring.write_back(
                    cx,
                    first + number,
                    [info | packets << 8, status | done(len)],
                );
            };

        for number in 0..BUFFERS {
            ring.write_buffer(cx, first + number, number as u8)
                .ok_or(ENOENT)?;
        }
        // A frame may go on in another poll.
        write(ring, 0, Continuation::At(2), LEN, 2);
        expect(ring, cx, &[Expected::Pending])?;
        for (number, link, len, packets) in [
            (1, Continuation::At(3), LEN, 1),
            (2, Continuation::End, LEN, 1),
            (3, Continuation::At(5), LEN, 3),
            (4, Continuation::End, LEN, 0),
            (5, Continuation::End, LEN, 0),
            (6, Continuation::Following, LEN, 0),
            // A buffer without data.
            (7, Continuation::End, 0, 0),
            // Itself, one that the NIC has not got, none, and one of another frame, which may be
            // the one that is lied about.
            (8, Continuation::At(8), LEN, 1),
            (9, Continuation::At(15), LEN, 1),
            (10, Continuation::At(0xffff), LEN, 1),
            (11, Continuation::At(13), LEN, 1),
            (12, Continuation::At(13), LEN, 1),
            (13, Continuation::End, LEN, 1),
            (14, Continuation::Following, LEN, 1),
        ] {
            write(ring, number, link, len, packets);
        }
        expect(
            ring,
            cx,
            &[
                Expected::Pending,
                Expected::Whole(&[0, 2], 3),
                Expected::Pending,
                Expected::Single,
                Expected::Whole(&[1, 3, 5], 4),
                Expected::Pending,
                Expected::Bad,
                Expected::Bad,
                Expected::Bad,
                Expected::Bad,
                Expected::Pending,
                Expected::Bad,
                Expected::Bad,
                Expected::Pending,
            ],
        )?;
        if ring.refill(cx)? != BUFFERS {
            return Err(ENOBUFS);
        }
        // It had no other buffer, and goes on with the next one that it gets.
        ring.write_buffer(cx, first + BUFFERS, BUFFERS as u8)
            .ok_or(ENOENT)?;
        write(ring, BUFFERS, Continuation::End, LEN, 0);
        expect(ring, cx, &[Expected::Whole(&[14, 15], 1)])?;
        if ring.refill(cx)? == 1 {
            Ok(())
        } else {
            Err(ENOBUFS)
        }
    }

    /// Takes all descriptors, which have to be these.
    fn expect(ring: &mut ChainRing<Linked>, cx: &Poll<'_>, expected: &[Expected]) -> Result {
        let mut polling = ring.poll(cx)?;

        for one in expected {
            let piece = polling.next().ok_or(ENODATA)?.piece;
            let is_right = match (piece, one) {
                (Piece::Single(_), Expected::Single)
                | (Piece::Pending, Expected::Pending)
                | (Piece::Bad, Expected::Bad) => true,
                (Piece::Whole(skb, packets), Expected::Whole(buffers, number)) => {
                    let each = skb.len() as usize / buffers.len();
                    let begins = |(place, byte): (usize, &u8)| {
                        let mut found = u8::MAX;
                        // SAFETY: The packet has that many bytes, and `found` takes one.
                        unsafe {
                            bindings::skb_copy_bits(
                                skb.as_raw(),
                                (place * each) as c_int,
                                (&raw mut found).cast(),
                                1,
                            )
                        };
                        found == *byte
                    };
                    packets == *number && each == 100 && buffers.iter().enumerate().all(begins)
                }
                _ => false,
            };
            if !is_right {
                return Err(EILSEQ);
            }
        }
        if polling.next().is_some() {
            return Err(EBUSY);
        }
        Ok(())
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
            ..Plan::new(1)
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
        fn buffers_of_frames_take_turns() -> Result {
            assert_eq!(receive(BufferKind::Chained)?, (1, 0));
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
            Poll,
            RxStopped, //
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

        pub(in super::super) fn rewind(&mut self, _stopped: RxStopped<'_>) -> Result {
            Ok(())
        }

        pub(in super::super) fn tell(&mut self, _napi: &Napi) -> Result {
            Ok(())
        }

        pub(in super::super) fn check(&mut self, _cx: &Poll<'_>) -> Result {
            Ok(())
        }
    }
}

pub(super) use self::imp::Rings;
