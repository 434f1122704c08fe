// SPDX-License-Identifier: GPL-2.0

//! Tests of the memory of transmit rings.

use super::{
    super::{
        Device, //
        DmaStopped,
    },
    dummy::Fail,
    fixture::{
        self,
        Fixture, //
    },
    plain::{
        PlainDevice,
        Plan, //
    }, //
};

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    net::{
        inflight::{
            self,
            Descriptors,
            Finished,
            Limits,
            TxConsumer,
            TxProducer, //
        },
        napi::{
            Id,
            Napi,
            RxClosed, //
        },
        queue::RingSize,
        skbuff::SkBuff, //
    },
    new_spinlock,
    prelude::*,
    sync::{
        atomic::Relaxed,
        SpinLock, //
    }, //
};

const LIMITS: Limits = Limits {
    segment_len: 1024,
    packet_len: 1 << 16,
    descriptors: 8,
};

const LEN: RingSize = RingSize::of::<16>();

/// Drop both ends of a ring at once.
pub(super) const DROP: u32 = 1;
/// Keep a handle to its memory in the driver's data.
pub(super) const KEEP: u32 = 2;

type Ends<'a> = (Descriptors<'a>, TxProducer<'a>, TxConsumer<'a>);

/// Makes a ring of `napi`.
pub(super) fn make<'a>(dev: &'a device::Device<Bound>, napi: &Napi) -> Result<Ends<'a>> {
    let desc = Descriptors::new(dev, napi, LEN)?;
    let (producer, consumer) = inflight::pair(dev, napi, LEN, LIMITS)?;

    Ok((desc, producer, consumer))
}

/// A handle in the driver's data.
#[pin_data]
pub(super) struct Kept<'a> {
    #[pin]
    desc: SpinLock<Option<Descriptors<'a>>>,
}

impl<'a> Kept<'a> {
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            desc <- new_spinlock!(None),
        })
    }

    /// Makes the memory of a ring of `napi`.
    pub(super) fn make(&self, dev: &'a device::Device<Bound>, napi: &Napi) -> Result {
        let desc = Descriptors::new(dev, napi, LEN)?;

        *self.desc.lock() = Some(desc);
        Ok(())
    }

    /// Returns whether there was one.
    pub(super) fn drop_handle(&self) -> bool {
        // Elsewhere the lock is taken with bottom halves enabled, but not now.
        self.desc
            .try_lock()
            .is_some_and(|mut desc| desc.take().is_some())
    }
}

/// The number of references to a device. Each piece of its DMA memory has one.
pub(super) fn references(dev: &device::Device) -> i32 {
    // SAFETY: The device is valid, and the number is read only.
    unsafe { (&raw const (*dev.as_raw()).kobj.kref.refcount.refs.counter).read_volatile() }
}

#[macros::kunit_tests(rust_net_tx_rings)]
mod cases {
    use super::*;

    /// The number of rings whose memory exists when the NIC is stopped, if both ends of each were
    /// dropped before.
    fn kept(device: &Fixture, round: impl Fn() -> Result) -> Result<i32> {
        let log = &device.log;

        log.tx_ring.store(0, Relaxed);
        round()?;
        let without = log.references.load(Relaxed);
        log.tx_ring.store(DROP, Relaxed);
        round()?;
        let with = log.references.load(Relaxed);
        log.tx_ring.store(0, Relaxed);
        round()?;
        // It goes with the vectors.
        if log.references.load(Relaxed) == without {
            Ok(with - without)
        } else {
            Err(EBUSY)
        }
    }

    #[test]
    fn memory_goes_with_its_vector() -> Result {
        let device = Fixture::new(2)?;

        device.allow_dma()?;
        let kept = kept(&device, || {
            device.up()?;
            device.down();
            Ok(())
        })?;
        // A test that fails leaves its devices behind, and with them their names.
        drop(device);
        assert_eq!(kept, 2);
        Ok(())
    }

    #[test]
    fn memory_of_a_vector_that_fails_stays_until_the_nic_is_quiet() -> Result {
        let device = Fixture::new(2)?;

        device.allow_dma()?;
        let fail = &device.log.fail;
        fail.store(Fail::SecondVector as u32, Relaxed);
        let kept = kept(&device, || match device.up() {
            Err(error) if error == ENOMEM => Ok(()),
            _ => Err(EINVAL),
        })?;
        drop(device);
        assert_eq!(kept, 2);
        Ok(())
    }

    /// The driver may have told the NIC of memory that it has kept, and that no vector owns.
    #[test]
    fn memory_with_a_handle_outlives_its_vector() -> Result {
        let device = Fixture::new(1)?;
        let log = &device.log;
        let stopped = || {
            device.down();
            log.references.load(Relaxed)
        };

        device.allow_dma()?;
        device.up()?;
        let without = stopped();

        log.tx_ring.store(KEEP, Relaxed);
        device.up()?;
        let made = stopped();

        // The last handle goes in a softirq, while the NIC is not quiet.
        log.tx_ring.store(0, Relaxed);
        device.up()?;
        log.drop_tx_ring.store(1, Relaxed);
        device.interrupt(0);
        let is_dropped = log.drop_tx_ring.load(Relaxed) == 0;
        let dropped = stopped();

        device.up()?;
        let after = stopped();
        let errors = log.ring_errors.load(Relaxed);
        drop(device);
        assert_eq!((is_dropped, errors), (true, 0));
        assert_eq!([made, dropped, after].map(|n| n - without), [1, 1, 0]);
        Ok(())
    }

    /// How `make` fails for a device that is not the parent.
    fn refusal(
        make: impl FnOnce(&device::Device<Bound>, &Napi) -> Option<Error>,
    ) -> Result<Option<Error>> {
        let device = Fixture::new(1)?;
        let name = fixture::own_name("rust_net_test_other")?;
        let other = crate::faux::Registration::new(&name, None)?;
        let other: &device::Device<Bound> = other.as_ref().as_ref();

        device.allow_dma()?;
        device.up()?;
        // SAFETY: The device is up, and its only vector exists until it is down.
        let napi = unsafe {
            let queue = bindings::netdev_get_tx_queue(device.dev(), 0);
            // The instance is the first member.
            &*(*queue).napi.cast::<Napi>()
        };
        Ok(make(other, napi))
    }

    /// Puts a packet into flight on a device that is up, and drops the filling end. Returns the
    /// other one, and a second reference to the packet.
    fn send(device: &Fixture) -> Result<(TxConsumer<'_>, SkBuff)> {
        // SAFETY: The device is registered and up, and its only vector exists until it is down. The
        // parent is bound.
        let (dev, napi) = unsafe {
            let queue = bindings::netdev_get_tx_queue(device.dev(), 0);
            (
                device::Device::from_raw((*device.dev()).dev.parent),
                &*(*queue).napi.cast::<Napi>(),
            )
        };
        let (mut producer, consumer) = inflight::pair(dev, napi, LEN, LIMITS)?;
        let skb = fixture::packet(GFP_KERNEL)?.into_raw();

        // SAFETY: The packet is valid, and both references are ours.
        let (skb, other) = unsafe {
            bindings::refcount_inc(&raw mut (*skb.as_ptr()).users);
            (SkBuff::from_raw(skb), SkBuff::from_raw(skb))
        };
        producer.submit(skb, 0, |_, _| ()).map_err(|_| EBUSY)?;
        Ok((consumer, other))
    }

    #[test]
    fn packets_stay_until_the_nic_is_quiet() -> Result {
        let device = Fixture::new(1)?;

        device.allow_dma()?;
        device.up()?;
        let (consumer, skb) = send(&device)?;
        drop(consumer);
        let is_kept = skb.is_shared();
        device.down();
        drop(device);
        assert_eq!((is_kept, skb.is_shared()), (true, false));
        Ok(())
    }

    #[test]
    fn only_the_own_device_proves_that_dma_has_stopped() -> Result {
        let device = Fixture::new(1)?;
        let stopped = PlainDevice::<false>::new(Plan::new(1))?;

        device.allow_dma()?;
        device.up()?;
        let (consumer, skb) = send(&device)?;
        // SAFETY: The device is registered, and was never up.
        let other =
            unsafe { DmaStopped::new(Device::from_raw(stopped.dev()), RxClosed::new(Id::new())) };
        let finished = consumer.finish(&other, |_| true);
        let is_kept = skb.is_shared();
        drop(device);
        assert_eq!((finished, is_kept), (Finished::default(), true));
        Ok(())
    }

    #[test]
    fn memory_is_that_of_the_parent() -> Result {
        let refusal = refusal(|dev, napi| Descriptors::new(dev, napi, LEN).err())?;

        assert_eq!(refusal, Some(EINVAL));
        Ok(())
    }

    #[test]
    fn packets_are_mapped_for_the_parent() -> Result {
        let refusal = refusal(|dev, napi| inflight::pair(dev, napi, LEN, LIMITS).err())?;

        assert_eq!(refusal, Some(EINVAL));
        Ok(())
    }
}
