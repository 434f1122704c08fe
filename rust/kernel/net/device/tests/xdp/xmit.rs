// SPDX-License-Identifier: GPL-2.0

//! Tests of frames that are redirected to the device.

use super::{
    device,
    formats::MAX_PARTS,
    nic::{
        DONE,
        MORE, //
    },
    *, //
};

use super::super::super::{
    Device,
    Locks, //
};

use crate::{
    cpu::CpuId,
    net::xdp::{
        frame::XdpFrame,
        tx::XdpTxRing, //
    },
    page::Page,
    sync::atomic::Atomic,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use core::ptr::NonNull;

mod cpus;

const FLUSH: u32 = bindings::XDP_XMIT_FLUSH;
const HEADROOM: u32 = 256;

/// A frame in pages of its own, of which the test has references, too.
struct Frame(KVec<Page>);

impl Frame {
    /// One with so many bytes in each of its buffers.
    fn new(lens: &[u32]) -> Result<Self> {
        let mut pages = KVec::with_capacity(lens.len(), GFP_KERNEL)?;

        for _ in lens {
            pages.push(Page::alloc_page(GFP_KERNEL)?, GFP_KERNEL)?;
        }
        let this = Self(pages);
        let mut frame = bindings::xdp_frame {
            data: this.start().wrapping_byte_add(HEADROOM as usize),
            len: lens[0],
            headroom: HEADROOM - size_of::<bindings::xdp_frame>() as u32,
            frame_sz: bindings::PAGE_SIZE as u32,
            ..Default::default()
        };
        frame.set_mem_type(bindings::xdp_mem_type_MEM_TYPE_PAGE_ORDER0);
        if lens.len() > 1 {
            frame.flags = bindings::xdp_buff_flags_XDP_FLAGS_HAS_FRAGS;
        }
        // SAFETY: The pages are ours. There is room for a frame in the first one, and behind that
        // for the list of the others.
        unsafe {
            this.start()
                .cast::<u8>()
                .write_bytes(7, bindings::PAGE_SIZE);
            this.raw().write(frame);
            if lens.len() > 1 {
                let info = &mut *bindings::xdp_get_shared_info_from_frame(this.raw().as_ptr());

                info.nr_frags = (lens.len() - 1) as u8;
                info.__bindgen_anon_2.__bindgen_anon_1.xdp_frags_size = lens[1..].iter().sum();
                for (place, (page, len)) in
                    info.frags.iter_mut().zip(this.0.iter().zip(lens).skip(1))
                {
                    *place = bindings::skb_frag_t {
                        netmem: bindings::page_to_netmem(page.as_ptr()),
                        len: *len,
                        offset: 64,
                    };
                }
            }
        }
        for page in &this.0 {
            // SAFETY: It is valid.
            unsafe { bindings::get_page(page.as_ptr()) };
        }
        Ok(this)
    }

    /// So many with 60 bytes.
    fn many(count: usize) -> Result<KVec<Self>> {
        let mut frames = KVec::with_capacity(count, GFP_KERNEL)?;

        for _ in 0..count {
            frames.push(Self::new(&[60])?, GFP_KERNEL)?;
        }
        Ok(frames)
    }

    /// The beginning of the first page.
    fn start(&self) -> *mut c_void {
        // SAFETY: It is valid.
        unsafe { bindings::page_address(self.0[0].as_ptr()) }
    }

    fn raw(&self) -> NonNull<bindings::xdp_frame> {
        NonNull::new(self.start().cast()).unwrap_or(NonNull::dangling())
    }

    /// Whether none but the test has the pages.
    fn is_back(&self) -> bool {
        self.0
            .iter()
            // SAFETY: It is valid.
            .all(|page| unsafe { bindings::page_count(page.as_ptr()) } == 1)
    }

    /// Returns a frame that the device has not taken.
    fn give_back(&self) -> Result {
        check(!self.is_back())?;
        // SAFETY: It is ours.
        drop(unsafe { XdpFrame::from_raw(self.raw()) });
        check(self.is_back())
    }

    /// The first bytes of the frame.
    fn bytes(&self) -> [u8; 20] {
        // SAFETY: The page is ours.
        unsafe {
            self.start()
                .wrapping_byte_add(HEADROOM as usize)
                .cast::<[u8; 20]>()
                .read()
        }
    }
}

/// The ring of a vector.
fn ring(device: &XdpDevice, vector: u16) -> Result<&XdpTxRing> {
    let inner = device.registration.as_ref().ok_or(ENODEV)?.inner();
    let target = inner.targets.get(vector).ok_or(ENETDOWN)?;

    // SAFETY: It exists until the device goes down.
    Ok(unsafe { target.0.cast().as_ref() })
}

/// Runs `f` on one CPU, and returns the number of the vector whose ring that has.
fn here(device: &XdpDevice, f: impl FnOnce(&XdpTxRing) -> Result) -> Result<u16> {
    // SAFETY: Tests run in process context.
    unsafe { bindings::local_bh_disable() };
    let vector = (CpuId::current().as_u32() % 2) as u16;
    let result = ring(device, vector).and_then(f);
    // SAFETY: Disabled above.
    unsafe { bindings::local_bh_enable() };
    result.map(|()| vector)
}

/// Redirects frames to a device, as the core does with bottom halves disabled.
fn send(device: &XdpDevice, frames: &[Frame], flags: u32) -> c_int {
    let dev = device.dev();
    let mut raw = [core::ptr::null_mut(); 16];

    for (place, frame) in raw.iter_mut().zip(frames) {
        *place = frame.raw().as_ptr();
    }
    // SAFETY: The device is registered, and the frames are valid.
    unsafe {
        let xmit = (*(*dev).netdev_ops).ndo_xdp_xmit;
        xmit.map_or(0, |xmit| {
            xmit(dev, frames.len() as c_int, raw.as_mut_ptr(), flags)
        })
    }
}

/// Has the poll function of a vector run.
fn poll(device: &XdpDevice, vector: u16) -> Result {
    let inner = device.registration.as_ref().ok_or(ENODEV)?.inner();

    Locks::with(inner.dev(), |locks| {
        let vector = inner.rx_vector(vector, locks.ops()).ok_or(ENODEV)?;

        // SAFETY: It exists while the device is up, which does not change with the locks held.
        unsafe {
            bindings::local_bh_disable();
            bindings::napi_schedule(vector.as_ref().napi().as_raw());
            bindings::local_bh_enable();
        }
        Ok::<_, Error>(())
    })?;
    device.wait_for_polls();
    Ok(())
}

/// A device that is up and has a link.
fn target() -> Result<XdpDevice> {
    let device = XdpDevice::new()?;

    device.up()?;
    link(&device, true);
    Ok(device)
}

pub(super) fn link(device: &XdpDevice, is_up: bool) {
    // SAFETY: The device is registered.
    let dev = unsafe { Device::from_raw(device.dev()) };

    if is_up {
        dev.carrier_on();
    } else {
        dev.carrier_off();
    }
}

/// Doorbells and the tail since this was called last.
pub(super) fn doorbells(device: &XdpDevice) -> [usize; 2] {
    device
        .plan
        .doorbells
        .each_ref()
        .map(|one| one.xchg(0, Relaxed))
}

/// Frames that were sent, their bytes, and those that were refused and lost, likewise.
fn counts(device: &XdpDevice) -> [u64; 4] {
    device
        .plan
        .counts
        .each_ref()
        .map(|one| one.xchg(0, Relaxed))
}

/// The number of frames that are redirected.
static COUNT: Atomic<usize> = Atomic::new(0);

/// Has a program redirect frames to its own device, from within the loop that receives them.
fn redirect_to_itself(count: usize) -> Result<(XdpDevice, Program)> {
    let (device, program) = device(redirect)?;

    link(&device, true);
    // SAFETY: The device is registered.
    TARGET.store(unsafe { (*device.dev()).ifindex } as u32, Relaxed);
    COUNT.store(count, Relaxed);
    device.run(|ring, _, program, cx| {
        for index in 0..COUNT.load(Relaxed) {
            let buff = receive(ring, index % 16, cx)?;
            let verdict = run(&mut ring.poll(cx)?, program, buff, cx)?;

            check(matches!(verdict, Verdict::Redirected))?;
            ring.refill(cx)?;
        }
        Ok(())
    })?;
    Ok((device, program))
}

/// The vector with frames, of which the NIC sends all.
fn all_sent(device: &XdpDevice) -> Result<u16> {
    let vector = u16::from(!ring(device, 0)?.has_frames());

    for index in 0..16 {
        ring(device, vector)?.write_back(index, DONE);
    }
    Ok(vector)
}

/// The number of pages that the poll function of the first queue gets without a lock.
static CACHED: Atomic<u32> = Atomic::new(0);

/// That number.
fn cached(device: &XdpDevice) -> Result<u32> {
    device.run(|ring, _, _, _| {
        // SAFETY: The ring is in use.
        CACHED.store(unsafe { (*ring.pool().as_ptr()).alloc.count }, Relaxed);
        Ok(())
    })?;
    Ok(CACHED.load(Relaxed))
}

#[macros::kunit_tests(rust_net_xdp_xmit)]
mod cases {
    use super::*;

    #[test]
    fn frames_are_sent_and_returned() -> Result {
        let (device, frames) = (target()?, [60, 100, 1514].map(|len| Frame::new(&[len])));
        let [first, second, third] = frames;
        let frames = [first?, second?, third?];

        let vector = here(&device, |ring| {
            check(send(&device, &frames, FLUSH) == 3)?;
            check(ring.in_use() == 3)?;
            for (index, len) in [60, 100, 1514].into_iter().enumerate() {
                let words = ring.words(index);

                check(words[0] % bindings::PAGE_SIZE as u64 == u64::from(HEADROOM))?;
                check(words[1] == len << 32)?;
                check(!frames[index].is_back())?;
                ring.write_back(index, DONE);
            }
            Ok(())
        })?;
        assert_eq!((doorbells(&device), counts(&device)), ([1, 3], [0; 4]));
        poll(&device, vector)?;
        assert!(frames.iter().all(Frame::is_back));
        assert_eq!(counts(&device), [3, 1674, 0, 0]);
        assert!(!ring(&device, vector)?.has_frames());
        Ok(())
    }

    #[test]
    fn the_nic_is_told_at_the_end_of_a_batch() -> Result {
        let (device, frames) = (target()?, Frame::many(5)?);

        here(&device, |ring| {
            check(send(&device, &frames[..2], 0) == 2)?;
            check(send(&device, &frames[2..4], 0) == 2)?;
            check(doorbells(&device) == [0, 0])?;
            // It cannot have sent what it does not know of.
            ring.write_back(0, DONE);
            // SAFETY: Bottom halves are disabled.
            unsafe { ring.complete::<Wide>(|_| ()) };
            check(ring.in_use() == 4)?;
            check(send(&device, &frames[4..], FLUSH) == 1)?;
            check(doorbells(&device) == [1, 5])?;
            check(send(&device, &[], FLUSH) == 0)?;
            check(doorbells(&device) == [0, 0])
        })?;
        Ok(())
    }

    #[test]
    fn frames_that_are_not_sent_stay() -> Result {
        let (device, frames) = (target()?, Frame::many(3)?);

        let vector = here(&device, |ring| {
            check(send(&device, &frames, FLUSH) == 3)?;
            ring.write_back(0, DONE);
            // Not in its turn.
            ring.write_back(2, DONE);
            Ok(())
        })?;
        poll(&device, vector)?;
        assert_eq!(
            [0, 1, 2].map(|one| frames[one].is_back()),
            [true, false, false]
        );
        ring(&device, vector)?.write_back(1, DONE);
        poll(&device, vector)?;
        assert!(frames.iter().all(Frame::is_back));
        assert_eq!(counts(&device), [3, 180, 0, 0]);
        Ok(())
    }

    #[test]
    fn a_full_ring_takes_what_it_has_room_for() -> Result {
        let (device, frames) = (target()?, Frame::many(18)?);

        here(&device, |ring| {
            check(send(&device, &frames[..16], FLUSH) == 15)?;
            check((doorbells(&device), counts(&device)) == ([1, 15], [0, 0, 1, 0]))?;
            frames[15].give_back()?;
            check(send(&device, &frames[16..], FLUSH) == 0)?;
            check((doorbells(&device), counts(&device)) == ([0, 0], [0, 0, 2, 0]))?;
            // Room is found when it is needed.
            ring.write_back(0, DONE);
            ring.write_back(1, DONE);
            check(send(&device, &frames[16..], FLUSH) == 2)?;
            check((doorbells(&device), counts(&device)) == ([1, 1], [2, 120, 0, 0]))?;
            check(frames[0].is_back() && frames[1].is_back() && !frames[2].is_back())
        })?;
        Ok(())
    }

    #[test]
    fn a_sender_takes_back_what_was_sent() -> Result {
        let (device, frames) = (target()?, Frame::many(3)?);

        here(&device, |ring| {
            check(send(&device, &frames[..2], FLUSH) == 2)?;
            ring.write_back(0, DONE);
            check(send(&device, &frames[2..], FLUSH) == 1)?;
            check(frames[0].is_back() && !frames[1].is_back())?;
            check((ring.in_use(), counts(&device)) == (2, [1, 60, 0, 0]))
        })?;
        Ok(())
    }

    #[test]
    fn a_frame_may_have_several_buffers() -> Result {
        let (device, frames) = (
            target()?,
            [Frame::new(&[200, 3000, 5])?, Frame::new(&[60])?],
        );

        let vector = here(&device, |ring| {
            check(send(&device, &frames, FLUSH) == 2)?;
            check((ring.in_use(), doorbells(&device)) == (4, [1, 4]))?;
            for (index, len, offset, more) in
                [(0, 200, HEADROOM, MORE), (1, 3000, 64, MORE), (2, 5, 64, 0)]
            {
                let words = ring.words(index);

                check(words[0] % bindings::PAGE_SIZE as u64 == u64::from(offset))?;
                check(words[1] == len << 32 | (3205 - len) << 16 | more)?;
            }
            // The first descriptors say nothing.
            ring.write_back(0, DONE);
            ring.write_back(1, DONE);
            ring.write_back(3, DONE);
            // SAFETY: Bottom halves are disabled.
            unsafe { ring.complete::<Wide>(|_| ()) };
            check(ring.in_use() == 4 && !frames[0].is_back())?;
            ring.write_back(2, DONE);
            Ok(())
        })?;
        poll(&device, vector)?;
        assert!(frames.iter().all(Frame::is_back));
        assert_eq!(counts(&device), [2, 3265, 0, 0]);
        Ok(())
    }

    #[test]
    fn a_frame_that_the_nic_cannot_send_is_not_taken() -> Result {
        let device = target()?;
        let refused = [
            // More buffers than there are descriptors, and than the NIC sends.
            Frame::new(&[60; 16])?,
            Frame::new(&[60; MAX_PARTS + 1])?,
            // Too long, and too short where nothing can be added.
            Frame::new(&[60, 9000])?,
            Frame::new(&[14, 1])?,
            // Parts that are none.
            Frame::new(&[0, 60])?,
            Frame::new(&[60, 0, 60])?,
        ];

        here(&device, |ring| {
            for frame in &refused {
                check(send(&device, core::slice::from_ref(frame), FLUSH) == 0)?;
                check((ring.in_use(), counts(&device)) == (0, [0, 0, 1, 0]))?;
                frame.give_back()?;
            }
            check(doorbells(&device) == [0, 0])?;
            let longest = [Frame::new(&[60; MAX_PARTS])?];
            check(send(&device, &longest, FLUSH) == 1 && ring.in_use() == MAX_PARTS)
        })?;
        Ok(())
    }

    #[test]
    fn short_frames_are_padded() -> Result {
        let (device, frame) = (target()?, [Frame::new(&[14])?]);

        here(&device, |ring| {
            check(send(&device, &frame, FLUSH) == 1)?;
            check(ring.words(0)[1] == 17 << 32)?;
            let bytes = frame[0].bytes();
            check(bytes[..14] == [7; 14] && bytes[14..17] == [0; 3] && bytes[17..] == [7; 3])
        })?;
        Ok(())
    }

    #[test]
    fn a_device_that_is_down_takes_none() -> Result {
        let (device, frames) = (XdpDevice::new()?, Frame::many(1)?);
        let refused = |device: &XdpDevice| {
            // SAFETY: Tests run in process context.
            unsafe { bindings::local_bh_disable() };
            let result = send(device, &frames, FLUSH);
            // SAFETY: Disabled above.
            unsafe { bindings::local_bh_enable() };
            result
        };

        assert_eq!(refused(&device), ENETDOWN.to_errno());
        device.up()?;
        // There is no link.
        assert_eq!(refused(&device), ENETDOWN.to_errno());
        link(&device, true);
        device.down();
        assert_eq!(refused(&device), ENETDOWN.to_errno());
        frames[0].give_back()
    }

    #[test]
    fn flags_that_are_not_known_are_refused() -> Result {
        let (device, frames) = (target()?, Frame::many(1)?);

        here(&device, |ring| {
            check(send(&device, &frames, FLUSH | 2) == EINVAL.to_errno())?;
            check((ring.in_use(), doorbells(&device)) == (0, [0, 0]))?;
            frames[0].give_back()
        })?;
        Ok(())
    }

    #[test]
    fn a_link_that_goes_away_leaves_nothing_untold() -> Result {
        let (device, frames) = (target()?, Frame::many(2)?);

        here(&device, |_| {
            check(send(&device, &frames[..1], 0) == 1)?;
            link(&device, false);
            check(send(&device, &frames[1..], FLUSH) == ENETDOWN.to_errno())?;
            check(doorbells(&device) == [1, 1])?;
            frames[1].give_back()
        })?;
        Ok(())
    }

    #[test]
    fn frames_return_when_the_device_goes_down() -> Result {
        let (device, frames) = (target()?, Frame::many(4)?);

        here(&device, |ring| {
            check(send(&device, &frames[..3], FLUSH) == 3)?;
            check(send(&device, &frames[3..], 0) == 1)?;
            ring.write_back(0, DONE);
            Ok(())
        })?;
        device.down();
        assert!(frames.iter().all(Frame::is_back));
        assert_eq!(counts(&device), [1, 60, 0, 3]);
        Ok(())
    }

    #[test]
    fn a_program_redirects_to_its_own_device() -> Result {
        // The core has the device take 16 in the loop, of which there is room for 15.
        let (device, _program) = redirect_to_itself(17)?;

        assert_eq!(doorbells(&device), [1, 15]);
        assert_eq!(counts(&device), [0, 0, 2, 0]);
        let vector = all_sent(&device)?;
        poll(&device, vector)?;
        assert_eq!(counts(&device), [15, 900, 0, 0]);
        device.down();
        assert!(!device.has_pools());
        Ok(())
    }

    #[test]
    fn pages_of_a_queue_that_is_not_polled_take_the_lock() -> Result {
        let (device, _program) = redirect_to_itself(3)?;
        let before = cached(&device)?;
        let target = ring(&device, all_sent(&device)?)?;
        let mut sent = 0;

        // SAFETY: Tests run in process context, where interrupts are enabled.
        unsafe {
            bindings::local_bh_disable();
            target.complete::<Wide>(|counts| sent = counts.packets);
            bindings::local_bh_enable();
        }
        assert_eq!((sent, cached(&device)?), (3, before));
        Ok(())
    }

    #[test]
    fn frames_of_a_pool_that_is_gone_return_to_it() -> Result {
        let (device, _program) = redirect_to_itself(3)?;

        assert_eq!(doorbells(&device), [1, 3]);
        device.restart_rx(0)?;
        let vector = all_sent(&device)?;
        poll(&device, vector)?;
        assert_eq!(counts(&device), [3, 180, 0, 0]);
        device.down();
        // The core looks for those that are gone once a second.
        for _ in 0..30 {
            if !device.has_pools() {
                break;
            }
            fsleep(Delta::from_millis(100));
        }
        assert!(!device.has_pools());
        Ok(())
    }

    #[test]
    fn pools_go_with_frames_that_are_not_sent() -> Result {
        let (device, _program) = redirect_to_itself(3)?;

        device.down();
        assert_eq!(counts(&device), [0, 0, 0, 3]);
        assert!(!device.has_pools());
        Ok(())
    }
}
