// SPDX-License-Identifier: GPL-2.0

//! Tests of the transmit path on which CPUs combine.

use super::{
    super::tests::{
        dummy::{
            Event,
            OnXmit, //
        },
        fixture::Fixture,
        restart, //
    },
    Combining,
    LIST_LIMIT, //
};

use crate::{
    bindings,
    kthread,
    net::skbuff::SkBuff,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

mod setup;

use setup::{
    bh_disabled,
    device,
    numbered,
    BUSY,
    COMBINE,
    OK, //
};

#[macros::kunit_tests(rust_net_combining)]
mod cases {
    use super::*;

    #[test]
    fn the_core_takes_no_lock() -> Result {
        let lltx = |device: &Fixture| {
            // SAFETY: The device is registered. Any bits are valid for the flags.
            let flags = unsafe { (*device.dev()).__bindgen_anon_1.priv_flags_fast };
            let sharing = bindings::netdev_priv_flags_IFF_TX_SKB_SHARING;
            (flags.lltx() != 0, flags.priv_flags() as u32 & sharing != 0)
        };

        assert_eq!(lltx(&device()?), (true, false));
        assert_eq!(lltx(&Fixture::new(1)?), (false, true));
        Ok(())
    }

    #[test]
    fn one_alone_sends_at_once() -> Result {
        let device = device()?;

        for _ in 0..3 {
            assert_eq!(device.transmit()?, OK);
            assert!(device.log.take(&[Event::Xmit, Event::Told]));
        }
        Ok(())
    }

    #[test]
    fn packets_of_others_share_a_doorbell() -> Result {
        let device = device()?;
        let turn = device.begin(1)?;

        for number in 1..=4 {
            assert_eq!(device.send(1, number)?, OK);
        }
        assert!(device.log.take(&[]));
        device.finish(turn, false)?;
        assert_eq!(device.taken(), 5);
        assert!(device.in_order());
        assert!(device.log.forget(Event::Xmit));
        assert!(device.log.take(&[Event::Told]));
        Ok(())
    }

    #[test]
    fn a_long_turn_tells_the_card_now_and_then() -> Result {
        let device = device()?;
        let turn = device.begin(1)?;

        for number in 1..=99 {
            assert_eq!(device.send(1, number)?, OK);
        }
        device.finish(turn, false)?;
        assert_eq!((device.taken(), device.told()), (100, 4));
        Ok(())
    }

    #[test]
    fn a_sender_that_promises_more_leaves_the_doorbell_to_it() -> Result {
        let device = device()?;

        device.finish(device.begin(1)?, true)?;
        assert!(device.log.take(&[Event::Xmit]));
        // Another packet may come first.
        assert_eq!(device.send(1, 1)?, OK);
        assert!(device.log.take(&[Event::Xmit, Event::Told]));

        // Promises without end.
        for number in 2..=64 {
            device.finish(device.begin(number)?, true)?;
        }
        assert_eq!((device.taken(), device.told()), (65, 2));
        Ok(())
    }

    #[test]
    fn a_queue_beside_others_makes_no_promises() -> Result {
        let device = Fixture::with_path::<Combining>(2)?;

        device.log.flags.store(COMBINE, Relaxed);
        device.up()?;
        device.set_limit(1 << 20);
        assert_eq!(device.transmit()?, OK);
        assert_eq!(device.told(), 1);
        Ok(())
    }

    #[test]
    fn a_promise_is_kept_by_what_is_mapped_to_no_queue() -> Result {
        let device = device()?;

        device.transmit_list([0, 7], false)?;
        assert!(device.log.take(&[Event::Xmit, Event::Xmit, Event::Told]));
        assert_eq!(device.stats().tx_dropped, 0);
        Ok(())
    }

    #[test]
    fn what_a_poll_forwards_waits_for_its_end() -> Result {
        let device = device()?;

        device.log.forward.store(3, Relaxed);
        device.interrupt(0);
        assert!(device.log.take(&[
            Event::Poll,
            Event::Xmit,
            Event::Xmit,
            Event::Told,
            Event::Xmit,
            Event::Kick,
            Event::Rearm
        ]));
        Ok(())
    }

    #[test]
    fn what_finds_no_room_is_sent_when_there_is() -> Result {
        let device = device()?;
        let turn = device.begin(1)?;

        for number in 1..=5 {
            assert_eq!(device.send(1, number)?, OK);
        }
        device.log.room.store(2, Relaxed);
        device.finish(turn, false)?;
        assert_eq!(device.taken(), 2);
        assert!(device.is_stopped());
        assert_eq!(device.send(1, 6)?, BUSY);
        assert_eq!(device.send_blindly(1, 6)?, BUSY);

        // There are no senders, but completions.
        device.interrupt(0);
        assert_eq!(device.taken(), 4);
        assert!(device.is_stopped());
        device.interrupt(0);
        assert_eq!(device.taken(), 6);
        // The ring is full again.
        assert!(device.is_stopped());
        device.interrupt(0);
        assert!(!device.is_stopped());

        device.log.room.store(0, Relaxed);
        assert_eq!(device.send(1, 6)?, OK);
        assert!(device.in_order());
        assert_eq!(device.stats().tx_dropped, 0);
        Ok(())
    }

    #[test]
    fn what_is_held_shares_a_doorbell() -> Result {
        let device = device()?;
        let turn = device.begin(1)?;

        for number in 1..=5 {
            assert_eq!(device.send(1, number)?, OK);
        }
        device.log.room.store(1, Relaxed);
        device.finish(turn, false)?;
        assert_eq!((device.taken(), device.told()), (1, 1));
        device.log.room.store(0, Relaxed);
        device.interrupt(0);
        assert_eq!((device.taken(), device.told()), (6, 2));
        assert!(!device.is_stopped());
        Ok(())
    }

    #[test]
    fn a_late_packet_is_held_behind_the_others() -> Result {
        let device = device()?;

        device.on_xmit(OnXmit::TakeAndStop);
        assert_eq!(device.send(1, 1)?, OK);
        // Both saw the queue before it was stopped.
        device.finish(device.begin(1)?, false)?;
        device.finish(device.begin(2)?, false)?;
        assert_eq!(device.taken(), 1);

        device.on_xmit(OnXmit::Take);
        device.interrupt(0);
        assert_eq!(device.taken(), 3);
        assert!(device.in_order());
        assert!(!device.is_stopped());
        Ok(())
    }

    #[test]
    fn what_the_driver_gives_back_goes_first() -> Result {
        let device = device()?;

        assert_eq!(device.send(1, 1)?, OK);
        let turn = device.begin(1)?;
        assert_eq!(device.send(1, 2)?, OK);
        device.on_xmit(OnXmit::BusyAndStop);
        device.finish(turn, false)?;
        assert_eq!(device.taken(), 1);

        device.on_xmit(OnXmit::Take);
        device.interrupt(0);
        assert_eq!(device.taken(), 3);
        assert!(device.in_order());
        assert_eq!(device.stats().tx_dropped, 0);
        Ok(())
    }

    #[test]
    fn busy_needs_a_stopped_queue() -> Result {
        let device = device()?;

        device.on_xmit(OnXmit::Busy);
        assert_eq!(device.transmit()?, OK);
        assert_eq!(device.stats().tx_dropped, 1);
        device.log.flags.store(0, Relaxed);
        assert_eq!(device.transmit()?, OK);
        assert_eq!(device.stats().tx_dropped, 2);
        Ok(())
    }

    #[test]
    fn a_sender_that_finds_the_list_full_is_told() -> Result {
        let device = device()?;
        let turn = device.begin(1)?;

        for number in 1..=LIST_LIMIT as u32 {
            assert_eq!(device.send(1, number)?, OK);
        }
        assert_eq!(device.send(1, LIST_LIMIT as u32 + 1)?, BUSY);
        device.finish(turn, false)?;
        assert_eq!(device.taken(), LIST_LIMIT as u32 + 1);
        assert_eq!(device.send(1, LIST_LIMIT as u32 + 1)?, OK);
        assert!(device.in_order());
        assert_eq!(device.stats().tx_dropped, 0);
        Ok(())
    }

    #[test]
    fn what_others_share_is_not_put_on_a_list() -> Result {
        let device = device()?;
        let skb = numbered(1, 1)?;

        // SAFETY: The packet is ours. The second reference is dropped below.
        let other = unsafe {
            let raw = core::ptr::NonNull::new_unchecked(skb.as_raw());
            Atomic::<i32>::from_ptr((&raw mut (*skb.as_raw()).users).cast::<i32>())
                .fetch_add(1, Relaxed);
            SkBuff::from_raw(raw)
        };
        assert_eq!(bh_disabled(|| Ok(device.start_xmit(skb)))?, OK);
        assert_eq!(device.stats().tx_dropped, 1);
        assert!(!other.is_shared());
        Ok(())
    }

    #[test]
    fn going_down_drops_what_is_on_the_list() -> Result {
        let device = device()?;
        let turn = device.begin(1)?;

        for number in 1..=3 {
            assert_eq!(device.send(1, number)?, OK);
        }
        device.down();
        device.finish(turn, false)?;
        assert_eq!(device.taken(), 0);
        assert_eq!(device.stats().tx_dropped, 4);
        Ok(())
    }

    #[test]
    fn going_down_drops_what_is_held() -> Result {
        let device = device()?;
        let turn = device.begin(1)?;

        for number in 1..=3 {
            assert_eq!(device.send(1, number)?, OK);
        }
        device.on_xmit(OnXmit::TakeAndStop);
        device.finish(turn, false)?;
        device.down();
        assert_eq!(device.taken(), 1);
        assert_eq!(device.stats().tx_dropped, 3);
        // Two of the driver, and those that combining adds.
        assert_eq!(device.count_statistics(), Some(7));

        // None of it is left.
        device.on_xmit(OnXmit::Take);
        device.up()?;
        assert_eq!(device.send(1, 4)?, OK);
        assert_eq!(device.taken(), 2);
        Ok(())
    }

    #[test]
    fn a_restart_drops_what_is_held() -> Result {
        let device = device()?;
        let turn = device.begin(1)?;

        assert_eq!(device.send(1, 1)?, OK);
        device.on_xmit(OnXmit::TakeAndStop);
        device.finish(turn, false)?;
        device.on_xmit(OnXmit::Take);
        device.time_out();
        assert_eq!(device.stats().tx_dropped, 1);
        assert!(!device.is_stopped());
        assert_eq!(device.send(2, 1)?, OK);
        assert_eq!(device.taken(), 2);
        Ok(())
    }

    #[test]
    fn without_combining_packets_go_one_by_one() -> Result {
        let device = device()?;

        device.log.flags.store(0, Relaxed);
        for _ in 0..2 {
            assert_eq!(device.transmit()?, OK);
            assert!(device.log.take(&[Event::Xmit, Event::Told]));
        }
        device.on_xmit(OnXmit::BusyAndStop);
        assert_eq!(device.transmit()?, BUSY);
        // The core has not seen it.
        assert_eq!(device.send_blindly(1, 1)?, BUSY);

        device.on_xmit(OnXmit::Take);
        device.interrupt(0);
        assert!(!device.is_stopped());
        assert_eq!(device.transmit()?, OK);
        Ok(())
    }

    #[test]
    fn order_is_kept_when_combining_is_switched_off() -> Result {
        let device = device()?;
        let turn = device.begin(1)?;

        assert_eq!(device.send(1, 1)?, OK);
        device.log.flags.store(0, Relaxed);
        assert_eq!(device.send(1, 2)?, OK);
        assert_eq!(device.taken(), 0);
        device.finish(turn, false)?;
        assert_eq!(device.send(1, 3)?, OK);
        assert_eq!(device.taken(), 4);
        assert!(device.in_order());
        Ok(())
    }

    // The lock of a queue sleeps with it.
    #[cfg(not(CONFIG_PREEMPT_RT))]
    #[test]
    fn netpoll_neither_waits_nor_works_for_others() -> Result {
        let device = device()?;
        let turn = device.begin(1)?;

        assert_eq!(device.send(1, 1)?, OK);
        assert_eq!(device.send_by_netpoll(false, 2, 1)?, OK);
        assert_eq!(device.taken(), 1);
        device.finish(turn, false)?;
        assert_eq!(device.taken(), 3);

        // With the lock held by the interrupted context.
        assert_eq!(device.send_by_netpoll(true, 2, 2)?, BUSY);

        device.on_xmit(OnXmit::TakeAndStop);
        assert_eq!(device.send_by_netpoll(false, 2, 2)?, OK);
        assert_eq!(device.send_by_netpoll(false, 2, 3)?, BUSY);
        assert!(device.in_order());
        Ok(())
    }

    #[cfg(CONFIG_NETPOLL)]
    #[test]
    fn netpoll_wakes_the_queue_or_leaves_it_to_others() -> Result {
        let device = device()?;
        let turn = device.begin(1)?;

        for number in 1..=4 {
            assert_eq!(device.send(1, number)?, OK);
        }
        device.on_xmit(OnXmit::TakeAndStop);
        device.finish(turn, false)?;
        device.poll_by_netpoll(false)?;
        assert_eq!(device.taken(), 2);

        device.poll_by_netpoll(true)?;
        // There is nothing to complete any more, but the wakeup is still due.
        device.polled();
        assert_eq!(device.taken(), 3);
        assert!(device.in_order());
        Ok(())
    }

    #[test]
    fn queues_stay_stopped_while_down() -> Result {
        restart::stays_stopped_while_down::<Combining>(COMBINE)
    }

    /// All CPUs send, with a ring that is full most of the time if there is little room.
    fn all_cpus_send(room: usize, toggle: bool) -> Result {
        const COUNT: u32 = 200;
        let device = &device()?;
        let cpus = kthread::online_cpus().count();
        let threads = (2 * cpus).min(6);
        let running = &Atomic::new(threads as i32);
        let failed = &Atomic::new(0i32);

        device.log.room.store(room, Relaxed);
        kthread::scope(|scope| {
            for thread in 0..threads {
                let cpu = kthread::online_cpus().nth(thread % cpus).ok_or(EINVAL)?;

                scope.spawn_on(cpu, c"net-send", move || {
                    for number in 1..=COUNT {
                        loop {
                            match device.send(thread + 1, number) {
                                Ok(OK) => break,
                                Ok(BUSY) => fsleep(Delta::from_micros(50)),
                                _ => {
                                    failed.fetch_add(1, Relaxed);
                                    break;
                                }
                            }
                        }
                    }
                    running.fetch_add(-1, Relaxed);
                })?;
            }
            while running.load(Relaxed) != 0 {
                if toggle {
                    let flags = device.log.flags.load(Relaxed);
                    device.log.flags.store(flags ^ COMBINE, Relaxed);
                }
                device.interrupt(0);
                fsleep(Delta::from_micros(20));
            }
            Ok::<_, Error>(())
        })?;
        // The packets that are held need room as well.
        while device.is_stopped() {
            device.interrupt(0);
        }

        assert_eq!(failed.load(Relaxed), 0);
        assert_eq!(device.taken(), threads as u32 * COUNT);
        assert!(device.in_order());
        assert_eq!(device.stats().tx_dropped, 0);
        Ok(())
    }

    #[test]
    fn all_cpus_send_to_a_large_ring() -> Result {
        all_cpus_send(0, false)
    }

    #[test]
    fn all_cpus_send_to_a_small_ring() -> Result {
        all_cpus_send(8, false)
    }

    #[test]
    fn all_cpus_send_while_combining_is_switched() -> Result {
        all_cpus_send(8, true)
    }
}
