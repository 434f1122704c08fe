// SPDX-License-Identifier: GPL-2.0

//! Tests of queue vectors of all sorts: with separate interrupts, without any, and of unequal
//! numbers of queues.

use super::{
    irq::Irq,
    plain::{
        PlainDevice, //
        Plan,
    }, //
};

use crate::{
    bindings,
    prelude::*,
    sync::atomic::Relaxed, //
};

type Device = PlainDevice<false>;

impl Device {
    /// The interrupt of a transmit queue's vector, as far as the core knows of it.
    fn interrupt_of(&self, queue: u16) -> Option<c_int> {
        // SAFETY: The device is registered, and has this queue. The tests alone set it down.
        unsafe {
            let napi = (*bindings::netdev_get_tx_queue(self.dev(), queue.into())).napi;
            napi.as_ref().map(|napi| napi.irq)
        }
    }
}

#[macros::kunit_tests(rust_net_queues)]
mod cases {
    use super::*;

    #[test]
    fn receive_and_transmit_interrupts() -> Result {
        let (rx, tx) = (Irq::new()?, Irq::new()?);
        let device = Device::new(Plan {
            irqs: [rx.0, tx.0, 0, 0],
            ..Plan::new(0, 1, 1)
        })?;
        let plan = &device.plan;

        device.up()?;
        assert_eq!(device.real_queues(), (1, 1));
        device.raise(&rx);
        assert_eq!(plan.polls(), [1, 0, 0, 0]);

        // Only the vector of the transmit queue completes its packets, and wakes it.
        plan.stop.store(1, Relaxed);
        device.transmit(0)?;
        assert!(device.is_stopped(0));
        device.raise(&rx);
        assert!(device.is_stopped(0));
        assert_eq!(plan.completed[0].load(Relaxed), 0);
        device.raise(&tx);
        assert!(!device.is_stopped(0));
        assert_eq!(plan.completed[0].load(Relaxed), 1);
        assert_eq!(plan.polls(), [2, 1, 0, 0]);

        // Neither is left when the device is down.
        device.down();
        device.raise(&rx);
        device.raise(&tx);
        assert_eq!(plan.polls(), [2, 1, 0, 0]);
        Ok(())
    }

    #[test]
    fn two_interrupts_for_a_pair() -> Result {
        let (rx, tx) = (Irq::new()?, Irq::new()?);
        let device = Device::new(Plan {
            irqs: [rx.0, tx.0, 0, 0],
            is_split: true,
            ..Plan::new(1, 0, 0)
        })?;
        let plan = &device.plan;

        device.up()?;
        assert_eq!(device.real_queues(), (1, 1));
        device.raise(&rx);
        assert_eq!(plan.polls(), [1, 0, 0, 0]);
        device.raise(&tx);
        assert_eq!(plan.polls(), [2, 0, 0, 0]);

        // The second one is in use elsewhere: neither is left.
        device.down();
        let other = Device::new(Plan {
            irqs: [tx.0, 0, 0, 0],
            ..Plan::new(1, 0, 0)
        })?;
        other.up()?;
        assert_eq!(device.up(), Err(EBUSY));
        other.down();
        device.up()?;
        device.raise(&tx);
        assert_eq!(plan.polls(), [3, 0, 0, 0]);
        Ok(())
    }

    #[test]
    fn more_transmit_queues() -> Result {
        let irqs = [Irq::new()?, Irq::new()?, Irq::new()?];
        let device = Device::new(Plan {
            irqs: [irqs[0].0, irqs[1].0, irqs[2].0, 0],
            ..Plan::new(1, 0, 2)
        })?;
        let plan = &device.plan;

        device.up()?;
        assert_eq!(device.real_queues(), (1, 3));
        for queue in 0..3 {
            device.transmit(queue)?;
        }
        device.raise(&irqs[2]);
        let completed = || plan.completed.each_ref().map(|count| count.load(Relaxed));
        assert_eq!(completed(), [0, 0, 1, 0]);
        device.raise(&irqs[0]);
        device.raise(&irqs[1]);
        assert_eq!(completed(), [1, 1, 1, 0]);

        let channels = device.channels();
        assert_eq!((channels.max_combined, channels.combined_count), (1, 1));
        assert_eq!((channels.max_tx, channels.tx_count), (2, 2));
        assert_eq!((channels.max_rx, channels.rx_count), (0, 0));
        device.down();
        Ok(())
    }

    #[test]
    fn more_receive_queues() -> Result {
        let irqs = [Irq::new()?, Irq::new()?, Irq::new()?];
        let device = Device::new(Plan {
            irqs: [irqs[0].0, irqs[1].0, irqs[2].0, 0],
            ..Plan::new(0, 2, 1)
        })?;
        let plan = &device.plan;

        device.up()?;
        assert_eq!(device.real_queues(), (2, 1));
        for irq in &irqs {
            device.raise(irq);
        }
        // Counted from 1; the vector of the transmit queue has none.
        let mapping = plan.mapping.each_ref().map(|queue| queue.load(Relaxed));
        assert_eq!(mapping[..3], [1, 2, 0]);

        // The third vector has no place in the core's table of configurations.
        device.down();
        device.up()?;
        device.transmit(0)?;
        device.raise(&irqs[2]);
        assert_eq!(plan.completed[0].load(Relaxed), 1);
        Ok(())
    }

    #[test]
    fn impossible_numbers_are_refused() -> Result {
        assert_eq!(Device::new(Plan::new(0, 0, 1)).err(), Some(EINVAL));
        assert_eq!(Device::new(Plan::new(0, 1, 0)).err(), Some(EINVAL));
        assert_eq!(Device::new(Plan::new(1, u16::MAX, 0)).err(), Some(EINVAL));

        let device = Device::new(Plan {
            adds: Some([0, 2, 1]),
            ..Plan::new(0, 1, 1)
        })?;
        assert_eq!(device.up(), Err(ENOSPC));
        Ok(())
    }

    /// With as many queues, there are more vectors.
    #[test]
    fn vectors_of_other_kinds_are_refused() -> Result {
        let irqs = [Irq::new()?, Irq::new()?, Irq::new()?, Irq::new()?];

        for (has, adds) in [
            ((2, 0, 0), [0, 2, 2]),
            ((1, 1, 0), [0, 2, 1]),
            ((1, 0, 1), [0, 0, 2]),
            ((1, 1, 1), [2, 0, 0]),
        ] {
            let (pairs, rx_only, tx_only) = has;
            let device = Device::new(Plan {
                irqs: irqs.each_ref().map(|irq| irq.0),
                adds: Some(adds),
                ..Plan::new(pairs, rx_only, tx_only)
            })?;

            assert_eq!(device.up(), Err(ENOSPC));
        }
        Ok(())
    }

    #[test]
    fn no_interrupt() -> Result {
        let device = Device::new(Plan::new(0, 1, 2))?;

        device.up()?;
        device.transmit(1)?;
        assert_eq!(device.plan.sent[1].load(Relaxed), 1);
        assert_eq!(device.plan.polls(), [0; 4]);
        device.down();
        Ok(())
    }

    /// Which sets their affinity.
    #[test]
    fn the_core_knows_of_interrupts() -> Result {
        let irqs = [Irq::new()?, Irq::new()?];
        let device = Device::new(Plan {
            irqs: [irqs[0].0, irqs[1].0, 0, 0],
            ..Plan::new(2, 0, 0)
        })?;
        device.up()?;
        for (queue, irq) in (0..).zip(&irqs) {
            assert_eq!(device.interrupt_of(queue), Some(c_int::try_from(irq.0)?));
        }
        Ok(())
    }

    #[test]
    fn no_vector_sets_the_affinity_of_an_interrupt_that_it_does_not_get() -> Result {
        let irqs = [Irq::new()?, Irq::new()?];
        let device = Device::new(Plan {
            irqs: [irqs[0].0, irqs[1].0, 0, 0],
            is_split: true,
            ..Plan::new(2, 0, 0)
        })?;

        // The second vector wants one of the first, which frees it then. If that were watched by
        // the second one, the core would warn.
        assert_eq!(device.up(), Err(EBUSY));
        Ok(())
    }
}
