// SPDX-License-Identifier: GPL-2.0

//! Tests of queue vectors of all sorts: with one interrupt, with two, and without any.

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
    fn each_vector_has_its_queues() -> Result {
        let irqs = [Irq::new()?, Irq::new()?];
        let device = Device::new(Plan {
            irqs: [irqs[0].0, irqs[1].0, 0, 0],
            ..Plan::new(2)
        })?;
        let plan = &device.plan;

        device.up()?;
        assert_eq!(device.real_queues(), (2, 2));
        for (queue, irq) in (0..).zip(&irqs) {
            assert_eq!(device.interrupt_of(queue), Some(c_int::try_from(irq.0)?));
        }

        plan.stop.store(1, Relaxed);
        device.transmit(1)?;
        device.raise(&irqs[0]);
        assert!(device.is_stopped(1));
        device.raise(&irqs[1]);
        assert!(!device.is_stopped(1));
        assert_eq!(plan.completed[0].load(Relaxed), 0);
        assert_eq!(plan.completed[1].load(Relaxed), 1);
        // Counted from 1.
        let mapping = plan.mapping.each_ref().map(|queue| queue.load(Relaxed));
        assert_eq!(mapping[..2], [1, 2]);

        // Neither interrupt is left when the device is down.
        device.down();
        device.raise(&irqs[0]);
        device.raise(&irqs[1]);
        assert_eq!(plan.polls(), [1, 1, 0, 0]);
        Ok(())
    }

    #[test]
    fn two_interrupts_for_a_pair() -> Result {
        let (rx, tx) = (Irq::new()?, Irq::new()?);
        let device = Device::new(Plan {
            irqs: [rx.0, tx.0, 0, 0],
            is_split: true,
            ..Plan::new(1)
        })?;
        let plan = &device.plan;

        device.up()?;
        assert_eq!(device.real_queues(), (1, 1));
        device.raise(&rx);
        assert_eq!(plan.polls(), [1, 0, 0, 0]);
        device.raise(&tx);
        assert_eq!(plan.polls(), [2, 0, 0, 0]);
        assert_eq!(plan.interrupts(), [2, 0, 0, 0]);

        // The second one is in use elsewhere: neither is left.
        device.down();
        let other = Device::new(Plan {
            irqs: [tx.0, 0, 0, 0],
            ..Plan::new(1)
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
    fn a_poll_without_an_interrupt_counts_none() -> Result {
        let irq = Irq::new()?;
        let device = Device::new(Plan {
            irqs: [irq.0, 0, 0, 0],
            ..Plan::new(1)
        })?;
        let counts = || (device.plan.polls()[0], device.plan.interrupts()[0]);

        device.up()?;
        device.raise(&irq);
        assert_eq!(counts(), (1, 1));
        // SAFETY: The device is up, so the queue is linked to its instance.
        device.settle(|| unsafe {
            bindings::napi_schedule((*bindings::netdev_get_tx_queue(device.dev(), 0)).napi);
        });
        assert_eq!(counts(), (2, 1));
        device.raise(&irq);
        assert_eq!(counts(), (3, 2));
        Ok(())
    }

    #[test]
    fn impossible_numbers_are_refused() -> Result {
        assert_eq!(Device::new(Plan::new(0)).err(), Some(EINVAL));

        let device = Device::new(Plan {
            adds: Some(2),
            ..Plan::new(1)
        })?;
        assert_eq!(device.up(), Err(ENOSPC));
        Ok(())
    }

    #[test]
    fn no_interrupt() -> Result {
        let device = Device::new(Plan::new(2))?;

        device.up()?;
        device.transmit(1)?;
        assert_eq!(device.plan.sent[1].load(Relaxed), 1);
        assert_eq!(device.plan.polls(), [0; 4]);
        device.down();
        Ok(())
    }

    #[test]
    fn no_vector_sets_the_affinity_of_an_interrupt_that_it_does_not_get() -> Result {
        let irqs = [Irq::new()?, Irq::new()?];
        let device = Device::new(Plan {
            irqs: [irqs[0].0, irqs[1].0, 0, 0],
            is_split: true,
            ..Plan::new(2)
        })?;

        // The second vector wants one of the first, which frees it then. If that were watched by
        // the second one, the core would warn.
        assert_eq!(device.up(), Err(EBUSY));
        Ok(())
    }
}
