// SPDX-License-Identifier: GPL-2.0

//! Tests of packets in flight.

#[crate::prelude::kunit_tests(rust_net_inflight)]
pub(super) mod cases {
    use super::super::*;
    use crate::{
        bindings,
        net::{
            skb_free::{
                tests::context::in_poll,
                BulkStats,
                SkbFreeList, //
            },
            skbuff::{
                SkBuff,
                UniqueSkBuff, //
            }, //
        }, //
    };
    use core::ptr::NonNull;

    /// A device that can do DMA.
    pub(in super::super) struct TestDevice(NonNull<bindings::platform_device>);

    // SAFETY: A device may be used from any context.
    unsafe impl Send for TestDevice {}

    impl TestDevice {
        pub(in super::super) fn new() -> Result<Self> {
            let info = bindings::platform_device_info {
                name: c"rust_net_inflight".as_char_ptr(),
                id: bindings::PLATFORM_DEVID_AUTO,
                dma_mask: u64::MAX,
                ..Default::default()
            };
            // SAFETY: `info` is valid.
            let pdev = unsafe { bindings::platform_device_register_full(&info) };
            let pdev = crate::error::from_err_ptr(pdev)?;
            Ok(Self(NonNull::new(pdev).ok_or(ENODEV)?))
        }

        pub(in super::super) fn device(&self) -> &Device<Bound> {
            // SAFETY: The device is valid. No driver binds to this name, and mapping for DMA does
            // not need one.
            unsafe { Device::from_raw(&raw mut (*self.0.as_ptr()).dev) }
        }

        /// Makes all memory out of reach for the device, or none.
        fn set_reach(&self, mask: u64) {
            // SAFETY: The platform bus has given the device a mask, which nobody else uses now.
            unsafe { *(*self.0.as_ptr()).dev.dma_mask = mask };
        }
    }

    impl Drop for TestDevice {
        fn drop(&mut self) {
            // SAFETY: We registered it.
            unsafe { bindings::platform_device_unregister(self.0.as_ptr()) };
        }
    }

    pub(in super::super) const LIMITS: Limits = Limits {
        segment_len: 1024,
        packet_len: 1 << 16,
        descriptors: 8,
    };

    /// As [`pair`], without a network device.
    fn free_pair(
        dev: &Device<Bound>,
        descriptors: usize,
        limits: Limits,
    ) -> Result<(TxProducer<'_>, TxConsumer<'_>)> {
        let len = RingSize::new(descriptors).ok_or(EINVAL)?;

        // SAFETY: There is no network device.
        unsafe { pair_of(dev, core::ptr::null_mut(), None, len, limits) }
    }

    pub(in super::super) fn linear(len: usize) -> Result<SkBuff> {
        let mut skb = UniqueSkBuff::alloc(len as u32, GFP_ATOMIC)?;
        let bytes = KVec::from_elem(0x5au8, len, GFP_ATOMIC)?;
        skb.put(&bytes)?;
        Ok(skb.into())
    }

    /// A packet with `head` linear bytes and `frags` bytes in fragments of a page each.
    pub(in super::super) fn scattered(head: usize, frags: usize) -> Result<SkBuff> {
        let mut error = 0;
        // SAFETY: The flags allow the context.
        let skb = unsafe {
            bindings::alloc_skb_with_frags(head, frags, 0, &mut error, bindings::GFP_ATOMIC)
        };
        let skb = NonNull::new(skb).ok_or(ENOMEM)?;
        // SAFETY: The packet is new and ours.
        let mut skb = unsafe { UniqueSkBuff::from_new(skb) };
        let bytes = KVec::from_elem(0x5au8, head, GFP_ATOMIC)?;
        skb.put(&bytes)?;
        // SAFETY: The fragments have been allocated with this many bytes.
        unsafe {
            (*skb.as_raw()).data_len = frags as u32;
            (*skb.as_raw()).len += frags as u32;
        }
        Ok(skb.into())
    }

    /// Descriptors written by the driver, as `(slot, len, first, last)`; contexts have no length.
    #[derive(Default)]
    struct Written {
        len: usize,
        entries: [(usize, u32, bool, bool); 8],
    }

    impl Written {
        fn note(&mut self, slot: usize, entry: TxDesc) {
            let entry = match entry {
                TxDesc::Context(nth) => (slot, 0, nth == 0, false),
                TxDesc::Segment(s) => (slot, s.len, s.first, s.last),
            };
            if let Some(place) = self.entries.get_mut(self.len) {
                *place = entry;
            }
            self.len += 1;
        }

        fn is(&self, entries: &[(usize, u32, bool, bool)]) -> bool {
            self.entries.get(..self.len) == Some(entries)
        }
    }

    /// Completes sent packets in a poll function; returns the consumer.
    fn complete<'a>(
        rx: TxConsumer<'a>,
        limit: usize,
        done: impl Fn(usize) -> bool,
    ) -> Result<(TxConsumer<'a>, Completed, u64)> {
        struct Job<'a, F> {
            rx: TxConsumer<'a>,
            done: F,
            result: Option<(Completed, u64)>,
        }

        /// A pointer that may be sent to the softirq, during which this context waits.
        #[derive(Clone, Copy)]
        struct Sent(*mut c_void);
        // SAFETY: See above.
        unsafe impl Send for Sent {}

        impl<F: Fn(usize) -> bool> Job<'_, F> {
            /// # Safety
            ///
            /// `this` is a valid `Self` that nobody else uses.
            unsafe fn run(this: *mut c_void, limit: usize, cx: &crate::net::napi::Poll<'_>) {
                // SAFETY: By the safety requirements.
                let this = unsafe { &mut *this.cast::<Self>() };
                let stats = BulkStats::new();
                let mut free = SkbFreeList::new(cx, &stats);
                let completed = this.rx.complete(&mut free, limit, |slot| (this.done)(slot));
                drop(free);
                this.result = Some((completed, stats.packets() + stats.alone()));
            }
        }

        fn runner<'a, F: Fn(usize) -> bool>(
            _: &Job<'a, F>,
        ) -> unsafe fn(*mut c_void, usize, &crate::net::napi::Poll<'_>) {
            Job::<'a, F>::run
        }

        let mut job = Job {
            rx,
            done,
            result: None,
        };
        let run = runner(&job);
        let sent = Sent((&raw mut job).cast());
        in_poll(64, move |cx| {
            let sent = sent;
            // SAFETY: `job` stays where it is until `in_poll` returns, and is used here only.
            unsafe { run(sent.0, limit, cx) }
        })?;
        let (completed, freed) = job.result.ok_or(EINVAL)?;
        Ok((job.rx, completed, freed))
    }

    #[test]
    fn refuses_limits_that_make_no_sense() -> Result {
        let device = TestDevice::new()?;
        let dev = device.device();

        let nothing = Limits {
            segment_len: 0,
            ..LIMITS
        };
        assert!(free_pair(dev, 8, nothing).is_err_and(|e| e == EINVAL));
        let nothing = Limits {
            packet_len: 0,
            ..LIMITS
        };
        assert!(free_pair(dev, 8, nothing).is_err_and(|e| e == EINVAL));
        let nothing = Limits {
            descriptors: 0,
            ..LIMITS
        };
        assert!(free_pair(dev, 8, nothing).is_err_and(|e| e == EINVAL));
        Ok(())
    }

    #[test]
    fn a_queue_is_woken_before_its_ring_is_empty() {
        let limits = Limits {
            descriptors: 40,
            ..LIMITS
        };

        assert_eq!(limits.wake_at(512), 144);
        // There is room for a packet and more, and it can be reached: one descriptor is unused.
        assert_eq!(limits.wake_at(64), 52);
        assert_eq!(LIMITS.wake_at(16), 12);
    }

    #[test]
    fn a_queue_is_stopped_while_a_list_of_packets_fits() {
        let limits = Limits {
            descriptors: 40,
            ..LIMITS
        };

        assert_eq!(limits.stop_below(512, true), 40);
        assert_eq!(limits.stop_below(512, false), 104);
        // The most that is spent on lists, and a part of a short ring.
        assert_eq!(limits.stop_below(4096, false), 104);
        assert_eq!(limits.stop_below(64, false), 46);
    }

    #[test]
    fn a_queue_that_is_woken_is_not_stopped_again_at_once() {
        for descriptors in 1..=40 {
            let limits = Limits {
                descriptors,
                ..LIMITS
            };

            for len in descriptors + 1..600 {
                let wake = limits.wake_at(len);
                assert!(limits.stop_below(len, true) <= limits.stop_below(len, false));
                assert!(limits.stop_below(len, false) <= wake && wake < len);
            }
        }
    }

    #[test]
    fn a_packet_goes_there_and_back() -> Result {
        let device = TestDevice::new()?;
        let (mut tx, rx) = free_pair(device.device(), 8, LIMITS)?;
        let mut written = Written::default();

        assert_eq!((tx.free(), rx.free()), (7, 7));
        let sent = tx.submit(linear(60)?, 0, |slot, entry| written.note(slot, entry));
        let sent = sent.map_err(|_| EIO)?;
        assert!(written.is(&[(0, 60, true, true)]));
        assert_eq!((sent.descriptors, sent.bytes, sent.next_slot), (1, 60, 1));
        assert_eq!((tx.free(), rx.free()), (6, 6));

        // Not yet.
        let (rx, done, freed) = complete(rx, 64, |_| false)?;
        assert_eq!((done, freed), (Completed::default(), 0));

        let (rx, done, freed) = complete(rx, 64, |slot| slot == 0)?;
        assert_eq!((done.packets, done.bytes, done.descriptors), (1, 60, 1));
        assert_eq!(freed, 1);
        assert_eq!((tx.free(), rx.free()), (7, 7));
        assert!(rx.records.is_empty());
        Ok(())
    }

    #[test]
    fn long_and_scattered_packets_are_split() -> Result {
        let device = TestDevice::new()?;
        let (mut tx, rx) = free_pair(device.device(), 16, LIMITS)?;
        let mut written = Written::default();

        let skb = scattered(100, 4096)?;
        let sent = tx.submit(skb, 1, |slot, entry| written.note(slot, entry));
        let sent = sent.map_err(|_| EIO)?;
        assert!(written.is(&[
            (0, 0, true, false),
            (1, 100, true, false),
            (2, 1024, false, false),
            (3, 1024, false, false),
            (4, 1024, false, false),
            (5, 1024, false, true),
        ]));
        assert_eq!((sent.descriptors, sent.bytes), (6, 4196));

        // Only the last descriptor counts.
        let (rx, done, _) = complete(rx, 64, |slot| slot < 5)?;
        assert_eq!(done.packets, 0);
        let (_, done, freed) = complete(rx, 64, |slot| slot == 5)?;
        assert_eq!((done.packets, done.bytes, done.descriptors), (1, 4196, 6));
        assert_eq!(freed, 1);
        Ok(())
    }

    #[test]
    fn a_packet_without_linear_part_is_its_fragments() -> Result {
        let device = TestDevice::new()?;
        let (mut tx, rx) = free_pair(device.device(), 16, LIMITS)?;
        let mut written = Written::default();

        let sent = tx.submit(scattered(0, 1500)?, 0, |slot, entry| {
            written.note(slot, entry)
        });
        assert!(sent.is_ok_and(|sent| sent.bytes == 1500));
        assert!(written.is(&[(0, 1024, true, false), (1, 476, false, true)]));
        drop((tx, rx));
        Ok(())
    }

    #[test]
    fn only_a_packet_that_is_split_is_longer_than_others() -> Result {
        let device = TestDevice::new()?;

        // With one descriptor, and with several.
        for packet_len in [500, 1500] {
            let limits = Limits {
                packet_len,
                ..LIMITS
            };
            let (mut tx, rx) = free_pair(device.device(), 16, limits)?;
            let mut submit = |len: u32, gso_size: u16| -> Result<Option<Refusal>> {
                let skb = linear(len as usize)?;

                // SAFETY: The packet is ours.
                unsafe { (*skb.shared_info()).gso_size = gso_size };
                Ok(tx.submit(skb, 0, |_, _| ()).err().map(|r| r.reason))
            };

            assert_eq!(submit(packet_len, 0)?, None);
            assert_eq!(submit(packet_len + 1, 0)?, Some(Refusal::TooLong));
            assert_eq!(submit(packet_len + 1, 100)?, None);
            drop((tx, rx));
        }
        Ok(())
    }

    #[test]
    fn refuses_what_the_nic_cannot_take() -> Result {
        let device = TestDevice::new()?;
        let (mut tx, _rx) = free_pair(device.device(), 16, LIMITS)?;
        let mut asked = 0;
        let mut refusal = |skb: SkBuff, contexts: usize| {
            let raw = skb.as_raw();
            let result = tx.submit(skb, contexts, |_, _| asked += 1);
            // The very packet comes back.
            result
                .err()
                .filter(|r| r.skb.as_raw() == raw)
                .map(|r| r.reason)
        };

        assert_eq!(
            refusal(UniqueSkBuff::alloc(64, GFP_KERNEL)?.into(), 0),
            Some(Refusal::Empty)
        );
        assert_eq!(
            refusal(linear(8 * 1024 + 1)?, 0),
            Some(Refusal::TooManySegments)
        );
        assert_eq!(refusal(linear(60)?, 8), Some(Refusal::TooManySegments));
        assert_eq!(
            refusal(linear(60)?, usize::MAX),
            Some(Refusal::TooManySegments)
        );

        let skb = linear(60)?;
        let more = linear(40)?;
        // SAFETY: Both packets are ours; the second becomes part of the first.
        unsafe {
            (*skb.shared_info()).frag_list = more.into_raw().as_ptr();
            (*skb.as_raw()).data_len += 40;
            (*skb.as_raw()).len += 40;
        }
        assert_eq!(refusal(skb, 0), Some(Refusal::FragList));
        assert_eq!(asked, 0);
        assert_eq!((tx.free(), tx.next_slot()), (15, 0));
        Ok(())
    }

    #[test]
    fn a_full_ring_gives_packets_back() -> Result {
        let device = TestDevice::new()?;
        let (mut tx, rx) = free_pair(device.device(), 4, LIMITS)?;

        for _ in 0..3 {
            assert!(tx.submit(linear(60)?, 0, |_, _| ()).is_ok());
        }
        let refused = tx.submit(linear(60)?, 0, |_, _| ()).err();
        assert!(refused.is_some_and(|r| r.reason == Refusal::Full && r.skb.len() == 60));

        let (_, done, freed) = complete(rx, 2, |_| true)?;
        assert_eq!((done.packets, done.descriptors, freed), (2, 2, 2));
        assert_eq!(tx.free(), 2);
        assert!(tx.submit(linear(60)?, 0, |_, _| ()).is_ok());
        Ok(())
    }

    /// Many rounds through a ring, with packets of one to three descriptors.
    #[test]
    fn slots_and_packets_stay_together() -> Result {
        let device = TestDevice::new()?;
        let (mut tx, mut rx) = free_pair(device.device(), 16, LIMITS)?;
        let mut slot = 0;

        for round in 0..200 {
            let segments = 1 + round % 3;
            assert_eq!(tx.next_slot(), slot);
            let sent = tx.submit(linear(1000 * segments)?, 0, |_, _| ());
            assert!(sent.is_ok_and(|sent| sent.descriptors == segments));
            slot = (slot + segments) % 16;
            let last = (slot + 15) % 16;
            let (back, done, freed) = complete(rx, 64, |slot| slot == last)?;
            rx = back;
            assert_eq!(done.descriptors, segments);
            assert_eq!((done.packets, done.bytes, freed), (1, 1000 * segments, 1));
        }
        assert_eq!(tx.free(), 15);
        Ok(())
    }

    /// The memory that the packets reference, which must be the only trace of them.
    fn watched(count: usize) -> Result<KVec<SkBuff>> {
        let mut skbs = KVec::with_capacity(count, GFP_KERNEL)?;
        for _ in 0..count {
            skbs.push(linear(60)?, GFP_KERNEL)?;
        }
        Ok(skbs)
    }

    /// Makes a second owner of a packet.
    fn share(skb: &SkBuff) -> Result<SkBuff> {
        // SAFETY: The packet is valid, so its reference count can be raised.
        unsafe { bindings::refcount_inc(&raw mut (*skb.as_raw()).users) };
        let skb = NonNull::new(skb.as_raw()).ok_or(EINVAL)?;
        // SAFETY: The new reference is ours.
        Ok(unsafe { SkBuff::from_raw(skb) })
    }

    #[test]
    fn dropping_both_ends_frees_what_is_in_flight() -> Result {
        let device = TestDevice::new()?;
        let skbs = watched(3)?;

        for producer_first in [true, false] {
            let (mut tx, rx) = free_pair(device.device(), 8, LIMITS)?;
            for skb in &skbs {
                assert!(tx.submit(share(skb)?, 0, |_, _| ()).is_ok());
            }
            assert!(skbs.iter().all(SkBuff::is_shared));
            if producer_first {
                drop(tx);
                drop(rx);
            } else {
                drop(rx);
                // Nobody will complete this one, but it is not lost.
                assert!(tx.submit(linear(60)?, 0, |_, _| ()).is_ok());
                drop(tx);
            }
            assert!(!skbs.iter().any(SkBuff::is_shared));
        }
        Ok(())
    }

    #[test]
    fn what_is_left_was_sent_or_is_lost() -> Result {
        let device = TestDevice::new()?;
        let skbs = watched(2)?;
        let (mut tx, rx) = free_pair(device.device(), 16, LIMITS)?;

        for skb in &skbs {
            assert!(tx.submit(share(skb)?, 0, |_, _| ()).is_ok());
        }
        assert!(tx.submit(linear(3000)?, 0, |_, _| ()).is_ok());
        drop(tx);

        let finished = rx.finish_all(|slot| slot == 1);
        let sent = Completed {
            packets: 1,
            bytes: 60,
            descriptors: 1,
            ..Completed::default()
        };
        let lost = Completed {
            packets: 2,
            bytes: 3060,
            descriptors: 4,
            ..Completed::default()
        };
        assert_eq!(finished, Finished { sent, lost });
        assert!(!skbs.iter().any(SkBuff::is_shared));
        Ok(())
    }

    #[test]
    fn a_packet_that_is_split_counts_when_it_has_been_sent() -> Result {
        let device = TestDevice::new()?;
        let (mut tx, rx) = free_pair(device.device(), 32, LIMITS)?;
        let split = Split {
            more: 2,
            headers: 54,
        };
        let sum = |packets| SplitSum {
            packets,
            bytes: 3000 * packets,
            more_packets: 2 * packets,
            more_bytes: 108 * packets,
        };

        for _ in 0..4 {
            let submitted = tx.submit_split(linear(3000)?, NonZero::<usize>::MIN, split, |_, _| ());
            assert!(submitted.is_ok_and(|one| one.descriptors == 4 && one.bytes == 3000));
        }
        // One with as many descriptors, and one with a single one.
        assert!(tx.submit(linear(3000)?, 1, |_, _| ()).is_ok());
        assert!(tx.submit(linear(60)?, 0, |_, _| ()).is_ok());
        drop(tx);

        let (rx, done, _) = complete(rx, 64, |slot| slot < 8)?;
        assert_eq!((done.packets, done.bytes, done.split), (2, 6000, sum(2)));
        // The third is lost.
        let finished = rx.finish_all(|slot| slot != 11);
        assert_eq!((finished.sent.packets, finished.sent.split), (3, sum(1)));
        assert_eq!((finished.lost.packets, finished.lost.split), (1, sum(1)));
        Ok(())
    }

    #[test]
    fn what_takes_one_descriptor_and_what_does_not() -> Result {
        let device = TestDevice::new()?;
        let (mut tx, rx) = free_pair(device.device(), 8, LIMITS)?;
        let mut several = |skb: SkBuff| {
            let raw = skb.as_raw();
            let refused = tx.submit_one(skb, |_, _| ()).err();
            refused.is_some_and(|r| r.reason == Refusal::Several && r.skb.as_raw() == raw)
        };

        assert!(several(UniqueSkBuff::alloc(64, GFP_KERNEL)?.into()));
        assert!(several(linear(1025)?));
        assert!(several(scattered(60, 40)?));
        for flag in [
            bindings::SKBTX_SW_TSTAMP,
            bindings::SKBTX_HW_TSTAMP_NOBPF,
            bindings::SKBTX_BPF,
        ] {
            let skb = linear(60)?;

            // SAFETY: The packet is ours.
            unsafe { (*skb.shared_info()).tx_flags |= flag as u8 };
            assert!(several(skb));
        }
        assert!(rx.records.is_empty());

        let mut written = None;
        let sent = tx.submit_one(linear(1024)?, |slot, segment| {
            written = Some((slot, segment.len, segment.first, segment.last));
        });
        assert_eq!(written, Some((0, 1024, true, true)));
        assert!(sent.is_ok_and(|sent| (sent.descriptors, sent.next_slot) == (1, 1)));
        assert_eq!(tx.next_slot(), 1);
        Ok(())
    }

    /// The second mapping fails: the first one is undone and the packet comes back.
    #[test]
    fn a_failing_mapping_undoes_the_others() -> Result {
        let device = TestDevice::new()?;
        let (mut tx, rx) = free_pair(device.device(), 16, LIMITS)?;

        // SAFETY: This is the context of a test. The suppression ends below.
        let (test, quiet) = unsafe {
            let test = bindings::kunit_get_current_test();
            (test, bindings::kunit_start_suppress_warning(test))
        };
        let result = tx.submit(scattered(100, 4096)?, 0, |_, _| device.set_reach(0xff));
        device.set_reach(u64::MAX);
        // SAFETY: This ends the suppression that was started above.
        unsafe { bindings::kunit_end_suppress_warning(test, quiet) };

        let refused = result.err().ok_or(EINVAL)?;
        assert_eq!(refused.reason, Refusal::Mapping);
        assert_eq!(refused.skb.len(), 4196);
        assert_eq!((tx.free(), tx.next_slot()), (15, 0));
        assert!(rx.records.is_empty());

        // The same packet is fine when the device can reach it.
        assert!(tx.submit(refused.skb, 0, |_, _| ()).is_ok());
        assert_eq!(rx.free(), 10);
        Ok(())
    }
}
