// SPDX-License-Identifier: GPL-2.0

//! Tests of several queues: their number, and the spreading of packets and CPUs over them.

use super::{
    super::{
        online_cpus,
        rss_key, //
    },
    dummy::{
        Event,
        Fail, //
    },
    fixture::Fixture,
    UP, //
};

use crate::{
    bindings,
    prelude::*,
    sync::atomic::Relaxed, //
};

/// The number of queue vectors, and the maximum.
fn count(device: &Fixture) -> Option<(u32, u32)> {
    let channels = device.channels()?;

    Some((channels.combined_count, channels.max_combined))
}

#[macros::kunit_tests(rust_net_channels)]
mod cases {
    use super::*;

    #[test]
    fn fewer_queues_and_all_again() -> Result {
        let device = Fixture::new(2)?;
        let log = &device.log;

        assert_eq!(count(&device), Some((2, 2)));
        device.up()?;
        assert!(log.take(UP));

        assert_eq!(device.set_channels(1), Some(0));
        assert!(log.take(&[
            Event::Quiesce,
            Event::TxDropped,
            Event::TxDropped,
            Event::PollerDropped,
            Event::PollerDropped,
            Event::Open,
            Event::Start
        ]));
        assert_eq!(count(&device), Some((1, 2)));

        // While it is down, nothing but the number changes.
        device.down();
        assert!(log.take(&[Event::Quiesce, Event::TxDropped, Event::PollerDropped]));
        assert_eq!(device.set_channels(2), Some(0));
        assert!(log.take(&[]));
        device.up()?;
        assert!(log.take(UP));
        device.interrupt(1);
        assert!(log.take(&[Event::Poll, Event::Rearm]));
        Ok(())
    }

    #[test]
    fn impossible_numbers_are_refused() -> Result {
        let device = Fixture::new(2)?;

        device.up()?;
        assert!(device.log.take(UP));
        for count in [0, 3, 0x1_0001, u32::MAX] {
            assert!(device.set_channels(count).is_some_and(|errno| errno < 0));
        }
        assert_eq!(count(&device), Some((2, 2)));
        assert!(device.log.take(&[]));
        Ok(())
    }

    #[test]
    fn what_fails_is_undone() -> Result {
        let device = Fixture::new(2)?;
        let log = &device.log;

        assert_eq!(device.set_channels(1), Some(0));
        device.up()?;
        log.fail.store(Fail::SecondVector as u32, Relaxed);
        assert_eq!(device.set_channels(2), Some(ENOMEM.to_errno()));
        assert_eq!(count(&device), Some((1, 2)));

        // It is up, with the queue that it had.
        log.forget(Event::Poll);
        device.interrupt(0);
        assert_eq!(log.count(Event::Poll), 1);
        Ok(())
    }

    #[test]
    #[cfg(CONFIG_XPS)]
    fn each_cpu_has_a_queue() -> Result {
        let device = Fixture::new(2)?;
        let others = online_cpus() >= 2;

        assert!(online_cpus() >= 1);
        device.up()?;
        assert_eq!(device.xps_queue(0), Some(0));
        if others {
            assert_eq!(device.xps_queue(1), Some(1));
        }

        // The other CPU loses its queue, and gets it back.
        assert_eq!(device.set_channels(1), Some(0));
        assert_eq!(device.xps_queue(0), Some(0));
        if others {
            assert_eq!(device.xps_queue(1), None);
        }
        assert_eq!(device.set_channels(2), Some(0));
        assert_eq!(device.xps_queue(0), Some(0));
        if others {
            assert_eq!(device.xps_queue(1), Some(1));
        }
        Ok(())
    }

    #[test]
    fn ports_can_be_hashed() -> Result {
        let device = Fixture::new(1)?;
        let (udp, tcp) = (bindings::UDP_V4_FLOW, bindings::TCP_V4_FLOW);
        let addresses = bindings::RXH_IP_SRC | bindings::RXH_IP_DST;
        let all = addresses | bindings::RXH_L4_B_0_1 | bindings::RXH_L4_B_2_3;

        assert_eq!(device.rxfh_fields(udp), Some(Ok(addresses)));
        assert_eq!(device.set_rxfh_fields(udp, all), Some((Ok(()), false)));
        assert_eq!(device.rxfh_fields(udp), Some(Ok(all)));
        assert_eq!(device.rxfh_fields(tcp), Some(Ok(addresses)));
        assert_eq!(
            device.set_rxfh_fields(udp, addresses),
            Some((Ok(()), false))
        );
        assert_eq!(device.rxfh_fields(udp), Some(Ok(addresses)));

        // A flow that the driver refuses, half of the ports, and a flow that is not IP: all of them
        // with a reason.
        let ether = bindings::ETHER_FLOW;
        assert_eq!(device.set_rxfh_fields(tcp, all), Some((Err(EBUSY), true)));
        let half = addresses | bindings::RXH_L4_B_0_1;
        assert_eq!(device.set_rxfh_fields(udp, half), Some((Err(EINVAL), true)));
        assert_eq!(
            device.set_rxfh_fields(ether, all),
            Some((Err(EINVAL), true))
        );
        assert_eq!(device.rxfh_fields(bindings::ETHER_FLOW), Some(Err(EINVAL)));
        Ok(())
    }

    #[test]
    fn the_key_stays_the_same() {
        let key = rss_key::<40>();

        assert!(key.iter().any(|byte| *byte != 0));
        assert_eq!(key, rss_key::<40>());
        assert_eq!(key[..8], rss_key::<8>());
    }
}
