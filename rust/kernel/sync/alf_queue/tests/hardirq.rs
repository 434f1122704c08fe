// SPDX-License-Identifier: GPL-2.0

//! Tests of queues shared with a hard interrupt handler.

#[crate::prelude::kunit_tests(rust_alf_queue_hardirq)]
mod cases {
    use super::super::super::*;
    use crate::{
        impl_has_hr_timer,
        softirq::BhGuard,
        sync::{
            atomic::{
                Atomic,
                Relaxed, //
            },
            ArcBorrow, //
        },
        time::{
            delay::{
                fsleep,
                udelay, //
            },
            hrtimer::{
                HrTimer,
                HrTimerCallback,
                HrTimerCallbackContext,
                HrTimerPointer,
                HrTimerRestart,
                RelativePinnedHardMode, //
            },
            Delta,
            Instant,
            Monotonic, //
        }, //
    };

    /// This bit marks the handler's numbers.
    const HANDLER: u32 = 1 << 31;

    /// A timer that uses the queue in hard interrupts.
    #[pin_data]
    struct Ticks {
        queue: Mpmc<u32, HardInterrupt>,
        /// Number of interrupts so far, and the number to reach.
        ticks: Atomic<u32>,
        wanted: u32,
        /// Number of elements that the handler has pushed and popped.
        put: Atomic<u32>,
        taken: Atomic<u32>,
        /// Number of errors.
        wrong: Atomic<u32>,
        #[pin]
        timer: HrTimer<Self>,
    }

    impl_has_hr_timer! {
        impl HasHrTimer<Self> for Ticks {
            mode: RelativePinnedHardMode<Monotonic>, field: self.timer
        }
    }

    impl Ticks {
        fn new(capacity: usize, wanted: u32) -> Result<Arc<Self>> {
            let queue = Mpmc::new_from(u32::MAX - 20, capacity, GFP_KERNEL)?;
            Arc::pin_init(
                pin_init!(Self {
                    queue,
                    ticks: Atomic::new(0),
                    wanted,
                    put: Atomic::new(0),
                    taken: Atomic::new(0),
                    wrong: Atomic::new(0),
                    timer <- HrTimer::new(),
                }),
                GFP_KERNEL,
            )
        }
    }

    impl HrTimerCallback for Ticks {
        type Pointer<'a> = Arc<Self>;

        fn run(
            this: ArcBorrow<'_, Self>,
            mut timer: HrTimerCallbackContext<'_, Self>,
        ) -> HrTimerRestart {
            // There is no token for softirqs here, but one for hard interrupts.
            if BhGuard::new().is_some() {
                this.wrong.add(1u32, Relaxed);
            }
            let done = with_interrupts_off(|cx| {
                let tick = this.ticks.load(Relaxed);
                let mut chunk = Chunk::from([HANDLER | (2 * tick), HANDLER | (2 * tick + 1)]);
                if this.queue.push_bulk(cx, &mut chunk).is_ok() {
                    this.put.add(2u32, Relaxed);
                }
                if this.queue.pop(cx).is_some() {
                    this.taken.add(1u32, Relaxed);
                }
            });
            if done.is_none() {
                this.wrong.add(1u32, Relaxed);
            }
            if this.ticks.fetch_add(1u32, Relaxed) + 1 >= this.wanted {
                return HrTimerRestart::NoRestart;
            }
            timer.forward_now(Delta::from_micros(50));
            HrTimerRestart::Restart
        }
    }

    /// Waits for this many interrupts, up to a limit of time.
    fn wait_for(ticks: &Ticks, wanted: u32) {
        for _ in 0..2_000 {
            if ticks.ticks.load(Relaxed) >= wanted {
                break;
            }
            fsleep(Delta::from_millis(1));
        }
    }

    #[test]
    fn handlers_wait_until_interrupts_are_on_again() -> Result {
        let ticks = Ticks::new(4, 1)?;
        let timer = ticks.clone();

        let (handle, early, first) = with_interrupts_off(|cx| {
            let handle = timer.start(Delta::from_micros(10));
            // Long enough for an interrupt on this CPU, if interrupts were enabled.
            udelay(Delta::from_millis(1));
            // Leaving the nested call does not enable them either.
            let first = with_interrupts_off(|cx| ticks.queue.push(cx, 1));
            for _ in 0..20 {
                udelay(Delta::from_millis(1));
            }
            let early = ticks.ticks.load(Relaxed);
            let _ = ticks.queue.pop(cx);
            (handle, early, first)
        })
        .ok_or(EINVAL)?;
        assert_eq!((early, first), (0, Some(Ok(()))));

        wait_for(&ticks, 1);
        drop(handle);
        assert_eq!(ticks.ticks.load(Relaxed), 1);
        assert_eq!(ticks.wrong.load(Relaxed), 0);
        // The handler has pushed two and popped one.
        let left = with_interrupts_off(|cx| (ticks.queue.pop(cx), ticks.queue.pop(cx)));
        assert_eq!(left, Some((Some(HANDLER | 1), None)));
        Ok(())
    }

    #[test]
    fn a_handler_and_those_it_interrupts_share_a_queue() -> Result {
        const WANTED: u32 = 200;

        let ticks = Ticks::new(8, WANTED)?;
        let handle = ticks.clone().start(Delta::from_micros(50));
        let (mut put, mut taken, mut next) = (0u32, 0u32, 0u32);
        let (mut wrong, mut handlers_next) = (0u32, 0u32);
        let start = Instant::<Monotonic>::now();

        // While the handler is active, up to a limit of time.
        while ticks.ticks.load(Relaxed) < WANTED && start.elapsed() < Delta::from_secs(60) {
            if with_interrupts_off(|cx| ticks.queue.push(cx, put)) == Some(Ok(())) {
                put += 1;
            }
            let mut chunk = Chunk::<u32, 4>::new();
            with_interrupts_off(|cx| ticks.queue.pop_bulk(cx, &mut chunk, 3));
            for &number in chunk.as_slice() {
                taken += 1;
                // The handler pops elements, too, so there are gaps, but numbers never decrease.
                let expected = if number & HANDLER == 0 {
                    &mut next
                } else {
                    &mut handlers_next
                };
                if (number & !HANDLER) < *expected {
                    wrong += 1;
                }
                *expected = (number & !HANDLER) + 1;
            }
        }
        drop(handle);

        assert_eq!(ticks.ticks.load(Relaxed), WANTED);
        assert_eq!((wrong, ticks.wrong.load(Relaxed)), (0, 0));
        let put = put + ticks.put.load(Relaxed);
        let taken = taken + ticks.taken.load(Relaxed);
        assert_eq!(put, taken + ticks.queue.len() as u32);
        assert!(ticks.put.load(Relaxed) > 0 && ticks.taken.load(Relaxed) > 0);
        Ok(())
    }
}
