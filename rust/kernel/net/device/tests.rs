// SPDX-License-Identifier: GPL-2.0

//! Tests of network devices, with a driver that needs no hardware.

mod buffers;
#[cfg(CONFIG_PCI)]
mod bus;
mod channels;
mod clones;
pub(in crate::net::device) mod dummy;
mod early;
mod ethtool;
mod features;
pub(in crate::net::device) mod fixture;
mod flow_rules;
mod irq;
#[cfg(CONFIG_NET_SELFTESTS = "y")]
mod loopback;
#[cfg(all(CONFIG_KUNIT = "y", CONFIG_PAGE_POOL))]
mod new_skbs;
mod nics;
mod ops_lock;
mod plain;
mod pool;
#[cfg(CONFIG_PTP_1588_CLOCK = "y")]
mod ptp_clock;
mod queues;
mod reconfigure;
mod registered;
pub(in crate::net::device) mod restart;
mod rings;
mod rss;
mod rx_queue;
mod self_test;
mod suspend;
mod tx_rings;
mod unbind;
mod validate;
mod wake;
mod wake_up;
#[cfg(CONFIG_PAGE_POOL)]
mod xdp;

use self::{
    dummy::{
        Event,
        Fail,
        OnXmit, //
    },
    fixture::Fixture, //
};

use super::MacAddress;

#[cfg(not(CONFIG_PREEMPT_RT))]
use crate::softirq::BhGuard;

use crate::{
    bindings,
    prelude::*,
    sync::atomic::Relaxed, //
};

pub(in crate::net::device) const UP: &[Event] = &[Event::Open, Event::Start];
const DOWN: &[Event] = &[Event::Quiesce, Event::TxDropped, Event::PollerDropped];

#[macros::kunit_tests(rust_net_device)]
mod cases {
    use super::*;

    #[test]
    fn goes_up_and_down_in_order() -> Result {
        let mut device = Fixture::new(1)?;
        let log = device.log.clone();

        assert!(log.take(&[]));
        for _ in 0..3 {
            device.up()?;
            assert!(log.take(UP));
            device.down();
            assert!(log.take(DOWN));
        }

        device.registration = None;
        assert!(log.take(&[Event::DataDropped]));
        Ok(())
    }

    /// As where a case has failed, and left its device.
    #[test]
    fn devices_do_not_need_the_names_of_others() -> Result {
        let left = Fixture::new(1)?;
        let device = Fixture::new(1)?;

        assert!(left.dev() != device.dev());
        device.up()
    }

    #[test]
    fn unregistering_takes_down() -> Result {
        let mut device = Fixture::new(1)?;
        let log = device.log.clone();

        device.up()?;
        assert!(log.take(UP));
        assert_eq!(device.transmit()?, 0);
        assert!(log.take(&[Event::Xmit]));

        // With a packet in the ring.
        device.registration = None;
        assert!(log.take(&[
            Event::Quiesce,
            Event::TxDropped,
            Event::PollerDropped,
            Event::DataDropped
        ]));
        Ok(())
    }

    #[test]
    fn moves_packets() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.up()?;
        assert!(log.take(UP));

        assert_eq!(device.transmit()?, 0);
        assert_eq!(device.transmit()?, 0);
        assert!(log.take(&[Event::Xmit, Event::Xmit]));
        assert_eq!(device.stats().rx_packets, 0);

        device.interrupt(0);
        assert!(log.take(&[Event::Poll, Event::Rearm]));
        assert_eq!(device.stats().rx_packets, 2);

        // A busy poller is polled again, and not rearmed in between.
        log.busy.store(1, Relaxed);
        device.interrupt(0);
        assert!(log.take(&[Event::Poll, Event::Poll, Event::Rearm]));
        Ok(())
    }

    #[test]
    fn no_packet_counts_more_bytes_than_the_longest() -> Result {
        use crate::net::skbuff::SkBuff;

        let device = Fixture::new(1)?;

        device.up()?;
        device.log.claim.store(u32::MAX, Relaxed);
        assert_eq!(device.transmit()?, 0);
        assert!(!cfg!(CONFIG_BQL) || device.queued_bytes() == SkBuff::MAX_LEN);
        Ok(())
    }

    #[test]
    fn netpoll_does_not_complete() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.up()?;
        assert_eq!(device.transmit()?, 0);
        assert!(log.take(&[Event::Open, Event::Start, Event::Xmit]));

        assert_eq!(device.poll_once(0), Some(0));
        assert!(log.take(&[Event::PollNetpoll]));
        Ok(())
    }

    #[test]
    fn netpoll_does_not_interfere() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.up()?;
        log.reenter.store(1, Relaxed);
        device.interrupt(0);
        assert!(log.take(&[Event::Open, Event::Start, Event::Poll, Event::Rearm]));
        Ok(())
    }

    // Otherwise the lock of the queue keeps it out.
    #[cfg(all(CONFIG_NETPOLL, not(CONFIG_SMP)))]
    #[test]
    fn netpoll_does_not_share_the_producer() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.up()?;
        log.nested.store(1, Relaxed);
        assert_eq!(device.transmit()?, 0);
        assert_eq!(log.refused.load(Relaxed), 1);
        assert!(log.take(&[Event::Open, Event::Start, Event::Xmit]));
        Ok(())
    }

    #[test]
    fn no_packet_without_a_producer() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.up()?;
        device.down();
        assert!(log.take(&[
            Event::Open,
            Event::Start,
            Event::Quiesce,
            Event::TxDropped,
            Event::PollerDropped
        ]));

        // As if the core called too late, and for a queue that does not exist.
        for queue in [0, 7] {
            assert_eq!(
                device.transmit_late(queue)?,
                Some(bindings::netdev_tx::NETDEV_TX_OK)
            );
        }
        assert!(log.take(&[]));
        assert_eq!(device.stats().tx_dropped, 2);
        Ok(())
    }

    #[test]
    fn busy_needs_a_stopped_queue() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.up()?;
        log.on_xmit.store(OnXmit::Busy as u32, Relaxed);
        assert_eq!(device.transmit()?, bindings::netdev_tx::NETDEV_TX_OK.0);
        assert_eq!(device.stats().tx_dropped, 1);

        log.on_xmit.store(OnXmit::BusyAndStop as u32, Relaxed);
        assert_eq!(device.transmit()?, bindings::netdev_tx::NETDEV_TX_BUSY.0);
        assert_eq!(device.stats().tx_dropped, 1);

        // Once the queue is stopped, the driver is not called.
        assert!(log.take(&[Event::Open, Event::Start, Event::Xmit, Event::Xmit]));
        assert_eq!(device.transmit()?, bindings::netdev_tx::NETDEV_TX_BUSY.0);
        assert!(log.take(&[]));
        Ok(())
    }

    #[test]
    fn busy_although_woken_by_now() -> Result {
        let device = Fixture::new(1)?;

        device.up()?;
        device
            .log
            .on_xmit
            .store(OnXmit::BusyAndWoken as u32, Relaxed);
        assert_eq!(device.transmit()?, bindings::netdev_tx::NETDEV_TX_BUSY.0);
        assert_eq!(device.stats().tx_dropped, 0);
        Ok(())
    }

    /// As a filter of a queueing discipline maps packets.
    #[test]
    fn what_is_mapped_to_another_queue_goes_through_the_one_that_is_locked() -> Result {
        let device = Fixture::new(2)?;
        let log = &device.log;

        device.up()?;
        device.set_limit(1 << 20);
        log.doorbells.store(1, Relaxed);
        assert!(log.take(UP));

        // One that is not locked, and one that there is not.
        for queue in [1, 7] {
            device.transmit_list([0, queue], true)?;
            // The first packet relies on the second one for the doorbell.
            assert!(log.take(&[Event::Xmit, Event::Xmit, Event::Told]));
        }
        assert_eq!(device.stats().tx_dropped, 0);
        Ok(())
    }

    #[cfg(not(CONFIG_PREEMPT_RT))]
    #[test]
    fn no_packet_goes_through_a_queue_that_others_may_have_locked() -> Result {
        let device = Fixture::new(2)?;
        let log = &device.log;

        device.up()?;
        assert!(log.take(UP));

        device.transmit_list([1, 1], false)?;
        assert_eq!(device.stats().tx_dropped, 2);

        // As if code that was interrupted had the lock of the other queue.
        let _bh = BhGuard::new().ok_or(EBUSY)?;
        // SAFETY: The device has this queue, and nobody takes its lock.
        let own = |cpu| unsafe {
            (*bindings::netdev_get_tx_queue(device.dev(), 1)).xmit_lock_owner = cpu;
        };
        // CAST: Numbers of CPUs are small.
        //
        // SAFETY: There are no requirements.
        own(unsafe { bindings::raw_smp_processor_id() } as c_int);
        let sent = device.transmit_list([7, 7], true);
        own(-1);
        sent?;
        assert_eq!(device.stats().tx_dropped, 4);
        assert!(log.take(&[]));
        Ok(())
    }

    #[test]
    fn completing_too_much_does_no_harm() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.up()?;
        assert_eq!(device.transmit()?, 0);
        log.overcount.store(1, Relaxed);
        device.interrupt(0);

        log.overcount.store(0, Relaxed);
        assert_eq!(device.transmit()?, 0);
        device.interrupt(0);
        assert_eq!(device.stats().rx_packets, 2);
        Ok(())
    }

    #[cfg(CONFIG_PAGE_POOL)]
    #[test]
    fn rx_ring_goes_with_its_vector() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.allow_dma()?;
        log.rx_ring.store(1, Relaxed);
        device.up()?;
        log.use_ring.store(1, Relaxed);
        device.interrupt(0);
        assert_eq!(log.ring_errors.load(Relaxed), 0);
        assert!(log.take(&[
            Event::Open,
            Event::Start,
            Event::Poll,
            Event::PoolUsable,
            Event::Rearm
        ]));
        // User-Mode Linux keeps no list of mapped pages (`PP_DMA_INDEX_BITS` is 0). Behind its
        // mappings is nothing that could be taken away.
        let listed = !cfg!(CONFIG_UML);
        assert_eq!(device.data().kept.is_mapped(), Some(listed));

        // The driver keeps its handle and a packet, but the device is about to be unbound.
        device.down();
        assert_eq!(device.data().kept.is_mapped(), Some(false));
        assert!(log.take(DOWN));

        // It is of no use to another instance, even at the same address.
        log.rx_ring.store(0, Relaxed);
        device.up()?;
        device.interrupt(0);
        assert!(log.take(&[
            Event::Open,
            Event::Start,
            Event::Poll,
            Event::PoolRefused,
            Event::Rearm
        ]));
        // Nor does a NIC get its address.
        assert_eq!(log.ring_errors.load(Relaxed), 0);
        Ok(())
    }

    #[cfg(CONFIG_PAGE_POOL)]
    #[test]
    fn rx_ring_without_handle_keeps_its_buffers() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.allow_dma()?;
        log.rx_ring.store(1, Relaxed);
        device.up()?;
        log.drop_ring.store(1, Relaxed);
        device.interrupt(0);

        // The NIC may still write to them.
        assert_eq!(log.ring_errors.load(Relaxed), 0);
        assert_eq!(log.lacking[0].load(Relaxed), 15);
        assert_eq!(log.lacking[1].load(Relaxed), 15);
        device.down();
        Ok(())
    }

    #[test]
    fn completion_wakes_the_queue() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.up()?;
        assert_eq!(device.transmit()?, 0);
        log.on_xmit.store(OnXmit::BusyAndStop as u32, Relaxed);
        assert_eq!(device.transmit()?, bindings::netdev_tx::NETDEV_TX_BUSY.0);

        log.on_xmit.store(OnXmit::Take as u32, Relaxed);
        device.interrupt(0);
        assert_eq!(device.transmit()?, 0);
        Ok(())
    }

    #[test]
    fn failures_undo_what_was_done() -> Result {
        let device = Fixture::new(2)?;
        let log = &device.log;

        let both_gone = [
            Event::TxDropped,
            Event::TxDropped,
            Event::PollerDropped,
            Event::PollerDropped,
        ];

        for (fail, events) in [
            (Fail::Open, &[Event::Open, Event::Quiesce][..]),
            (
                Fail::SecondVector,
                &[
                    Event::Open,
                    Event::Quiesce,
                    Event::TxDropped,
                    Event::PollerDropped,
                ][..],
            ),
        ] {
            log.fail.store(fail as u32, Relaxed);
            assert!(device.up().is_err());
            assert!(log.take(events));
        }

        log.fail.store(Fail::Start as u32, Relaxed);
        assert_eq!(device.up(), Err(EIO));
        assert_eq!(log.count(Event::Start), 1);
        assert!(log.forget(Event::Open) && log.forget(Event::Start) && log.forget(Event::Quiesce));
        assert!(log.take(&both_gone));

        // The second vector wants an interrupt that is in use.
        log.fail.store(Fail::No as u32, Relaxed);
        log.irq[1].store(log.irq[0].load(Relaxed), Relaxed);
        assert_eq!(device.up(), Err(EBUSY));
        assert!(log.forget(Event::Open) && log.forget(Event::Quiesce));
        assert!(log.take(&both_gone));

        // Nothing is left of the failures.
        log.irq[1].store(device.irqs[1].0, Relaxed);
        device.up()?;
        assert!(log.take(UP));
        device.interrupt(1);
        assert!(log.take(&[Event::Poll, Event::Rearm]));
        Ok(())
    }

    #[test]
    fn mtu_restarts_if_asked() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        let set = |mtu| device.set_mtu(mtu);
        let mtu = || device.device().mtu();

        assert!(set(9001).is_err());
        assert_eq!(mtu(), 1500);

        device.up()?;
        set(2000)?;
        assert!(log.take(UP));
        assert_eq!(mtu(), 2000);

        log.restart_mtu.store(1, Relaxed);
        set(3000)?;
        assert_eq!(mtu(), 3000);
        assert!(log.take(&[
            Event::Quiesce,
            Event::TxDropped,
            Event::PollerDropped,
            Event::Open,
            Event::Start
        ]));

        // A failure is undone, and if that fails as well the device can still be closed.
        log.fail.store(Fail::Start as u32, Relaxed);
        assert!(set(4000).is_err());
        assert_eq!(mtu(), 3000);
        device.down();
        log.fail.store(Fail::No as u32, Relaxed);
        device.up()?;
        Ok(())
    }

    #[test]
    fn address_is_checked() -> Result {
        let device = Fixture::new(1)?;
        let set = |octets| device.set_address(octets);
        let address = || device.device().mac_address();

        assert_eq!(address(), MacAddress::from([2, 0, 0, 0, 0, 1]));
        set([2, 0, 0, 0, 0, 7])?;
        assert_eq!(address(), MacAddress::from([2, 0, 0, 0, 0, 7]));

        // A multicast address, and one that the driver refuses.
        assert_eq!(set([3, 0, 0, 0, 0, 7]), Err(EADDRNOTAVAIL));
        assert_eq!(set([2, 0, 0, 0, 0, 0xff]), Err(EBUSY));
        assert_eq!(address(), MacAddress::from([2, 0, 0, 0, 0, 7]));
        Ok(())
    }

    #[test]
    fn timeout_restarts() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        device.up()?;
        assert!(log.take(UP));

        device.time_out();
        assert!(log.take(&[
            Event::Timeout,
            Event::Quiesce,
            Event::TxDropped,
            Event::PollerDropped,
            Event::Open,
            Event::Start
        ]));

        // Not if it has been closed meanwhile.
        device.down();
        assert!(log.take(DOWN));
        device.time_out();
        assert!(log.take(&[Event::Timeout]));
        Ok(())
    }

    #[test]
    fn event_thread_runs_until_down() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;

        log.event_irq.store(device.irqs[2].0, Relaxed);
        device.up()?;
        assert!(log.take(UP));

        device.irqs[2].raise();
        device.irqs[2].synchronize();
        assert!(log.take(&[Event::ThreadRan]));

        device.irqs[2].raise();
        device.down();
        // The thread may have run before the NIC was turned off.
        log.forget(Event::ThreadRan);
        assert!(log.take(DOWN));
        device.irqs[2].raise();
        assert!(log.take(&[]));
        Ok(())
    }

    #[test]
    fn addresses_reach_the_driver() -> Result {
        let device = Fixture::new(1)?;

        device.up()?;
        device.join([3, 0, 0, 0, 0, 1])?;

        assert!(device.addresses_come());

        // And again if the NIC has forgotten them.
        device.log.addresses.store(0, Relaxed);
        device.time_out();
        assert!(device.addresses_come());
        Ok(())
    }
}
