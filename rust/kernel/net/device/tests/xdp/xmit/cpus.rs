// SPDX-License-Identifier: GPL-2.0

//! Tests of rings that several CPUs send by.

use super::*;

use crate::{
    kthread,
    sync::atomic::{
        Acquire,
        Full, //
    },
    time::{
        Instant,
        Monotonic, //
    }, //
};

const ROUNDS: usize = 300;

/// Frames of each CPU in a round: the ring has room for those of both.
const FRAMES: usize = 7;

/// How long a CPU waits for the other one before the test fails.
const PATIENCE: Delta = Delta::from_secs(30);

/// A place where two threads wait for each other, any number of times.
struct Meeting(Atomic<u32>);

impl Meeting {
    /// Returns whether the other one has come, too.
    fn meet(&self) -> bool {
        let since = Instant::<Monotonic>::now();
        let all = (self.0.fetch_add(1u32, Full) | 1) + 1;

        while self.0.load(Acquire) < all {
            if since.elapsed() > PATIENCE {
                return false;
            }
            // SAFETY: May be called in process context at any time.
            unsafe { bindings::yield_() };
        }
        true
    }
}

/// Sends frames, one by one.
fn send_all(ring: &XdpTxRing, frames: &[Frame]) {
    for frame in frames {
        // SAFETY: The page is valid. The frame gets a reference of its own, and becomes the
        // ring's. Tests run in process context.
        unsafe {
            bindings::get_page(frame.0[0].as_ptr());
            bindings::local_bh_disable();
            ring.send::<Wide>(&[frame.raw()], true, |_, _| ());
            bindings::local_bh_enable();
        }
    }
}

/// Completes all that was sent.
fn complete_all(ring: &XdpTxRing) {
    for index in 0..16 {
        ring.write_back(index, DONE);
    }
    // SAFETY: Tests run in process context.
    unsafe {
        bindings::local_bh_disable();
        ring.complete::<Wide>(|_| ());
        bindings::local_bh_enable();
    }
}

#[macros::kunit_tests(rust_net_xdp_xmit_cpus)]
mod cases {
    use super::*;

    #[test]
    fn no_frame_of_two_senders_is_lost() -> Result {
        let Some((first, second)) = kthread::two_cpus_for_case() else {
            return Ok(());
        };
        let (device, frames) = (target()?, Frame::many(2 * FRAMES)?);
        let (ring, frames) = (ring(&device, 0)?, &frames);
        let meeting = Meeting(Atomic::new(0));
        let lost = Atomic::new(0u32);

        for frame in frames {
            // SAFETY: It is ours.
            drop(unsafe { XdpFrame::from_raw(frame.raw()) });
        }
        kthread::run_on_each([first, second].into_iter(), c"xdp_xmit", |cpu| {
            let is_first = cpu.as_u32() == first.as_u32();
            let place = if is_first { 0 } else { FRAMES };

            for _ in 0..ROUNDS {
                if !meeting.meet() {
                    return lost.store(u32::MAX, Relaxed);
                }
                send_all(ring, &frames[place..][..FRAMES]);
                if !meeting.meet() {
                    return lost.store(u32::MAX, Relaxed);
                }
                if is_first {
                    complete_all(ring);
                    if !frames.iter().all(Frame::is_back) {
                        lost.store(1, Relaxed);
                    }
                }
            }
        })?;
        assert_eq!((lost.load(Relaxed), ring.in_use()), (0, 0));
        Ok(())
    }
}
