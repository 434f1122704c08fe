// SPDX-License-Identifier: GPL-2.0

//! Tests of virtual devices with queue vectors.

use super::{
    super::{
        tests::fixture::Fixture,
        Device,
        Driver,
        Immediate,
        Info,
        Locks,
        MacAddress,
        Opening,
        VirtualDevices,
        VirtualModule, //
    },
    NoParent, //
};

use crate::{
    driver::registrations::Suspension,
    net::{
        napi::{
            Poll,
            Polled,
            Scheduler, //
        },
        queue::{
            TxQueue,
            Xmit, //
        },
        skbuff::TxSkBuff, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc,
        SetOnce, //
    }, //
};

/// The devices that are gone.
static GONE: Atomic<u32> = Atomic::new(0);

struct Port;

struct Data {
    /// It has a description with which it cannot be registered.
    is_bad: bool,
}

impl Drop for Data {
    fn drop(&mut self) {
        GONE.fetch_add(1, Relaxed);
    }
}

#[vtable]
impl Driver for Port {
    type Bus = NoParent;
    type Setup = Data;
    type Data<'bound> = Data;
    type Poller<'bound> = ();
    type Tx<'bound> = ();
    type Doorbell = Immediate;

    fn probe(_bus: &NoParent, data: Data) -> Result<(Info, impl PinInit<Data, Error>)> {
        let mut info = Info::new(MacAddress::from([0; 6]));

        if data.is_bad {
            // Longer than the core can express.
            info.tx_timeout_ms = u32::MAX;
        }
        Ok((info, Ok(data)))
    }

    fn open<'bound>(_cx: &mut Opening<'_, 'bound, Self>) -> Result {
        Err(ENODEV)
    }

    fn start(_data: Pin<&Data>, _dev: &Device, _locks: &mut Locks<'_>) -> Result {
        Ok(())
    }

    fn quiesce(_data: Pin<&Data>, _dev: &Device, _locks: &mut Locks<'_>) -> Result {
        Ok(())
    }

    fn poll(_data: Pin<&Data>, _poller: &mut (), _cx: &Poll<'_>) -> Polled {
        Polled::Idle { received: 0 }
    }

    fn rearm(_data: Pin<&Data>, _vector: u16) {}

    fn start_xmit<'call>(
        _data: Pin<&Data>,
        _tx: &mut (),
        _queue: &TxQueue<'_>,
        _skb: TxSkBuff<'call>,
        _more: bool,
    ) -> Xmit<'call> {
        Xmit::Taken
    }
}

/// A module with a device that cannot be registered.
struct Bad;

impl VirtualModule for Bad {
    fn init(devices: &mut VirtualDevices) -> Result {
        devices.add_with_queues::<Port>(Data { is_bad: true })
    }
}

#[macros::kunit_tests(rust_net_virtual_queues)]
mod cases {
    use super::*;

    #[test]
    fn a_bad_description_ends_the_device() {
        GONE.store(0, Relaxed);
        // SAFETY: There are no devices.
        assert!(unsafe { VirtualDevices::new::<Bad>(&SetOnce::new()) }.is_err());
        assert_eq!(GONE.load(Relaxed), 1);
    }

    /// A scheduler is nothing that a NIC accesses: it can be bound again, although the rest of the
    /// vector is kept from being freed.
    #[test]
    fn a_scheduler_goes_on_to_the_next_vector() -> Result {
        static SCHEDULER: SetOnce<Arc<Scheduler>> = SetOnce::new();

        let device = Fixture::new(1)?;

        SCHEDULER.populate(Scheduler::new()?);
        let scheduler = SCHEDULER.as_ref().ok_or(ENOENT)?;
        device
            .log
            .on_napi
            .populate(|napi| napi.bind(SCHEDULER.as_ref().ok_or(ENOENT)?));

        device.up()?;
        assert!(scheduler.schedule());
        // The parent cannot keep its NIC from memory.
        device.suspend(Suspension::Failure)?;
        assert!(!scheduler.schedule());
        device.resume()?;
        assert!(device.device().is_running());
        assert!(scheduler.schedule());

        device.down();
        assert!(!scheduler.schedule());
        Ok(())
    }
}
