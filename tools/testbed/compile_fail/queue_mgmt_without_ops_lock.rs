//@ error: E0080 queue management needs `OPS_LOCK`
// SPDX-License-Identifier: GPL-2.0

//! The core calls the operations of a device whose queues can be restarted under a lock of the
//! device, whatever its driver says.

#![forbid(unsafe_code)]

use kernel::{
    net::{
        device::{
            self,
            queue_mgmt::{
                QueueMgmtOps,
                RxQueueAlloc, //
            },
            Driver,
            Immediate,
            Info,
            Locks,
            MacAddress,
            NoParent,
            Opening,
            OpsLocked,
            OptionalOps, //
        },
        napi::{
            Poll,
            Polled,
            RxStopped, //
        },
        queue::{
            TxQueue,
            Xmit, //
        },
        skbuff::TxSkBuff, //
    },
    prelude::*, //
};

module! {
    type: Misused,
    name: "misused",
    authors: ["The skbulk authors"],
    description: "Misused",
    license: "GPL",
}

pub struct Misused;

impl kernel::Module for Misused {
    fn init(_: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}

pub struct Nic;

pub const OPS: OptionalOps<Nic> = OptionalOps::NONE.queue_mgmt();

type Data<'a> = Pin<&'a ()>;

impl QueueMgmtOps for Nic {
    type Rx<'bound> = ();

    fn rx<'a, 'bound: 'a>(poller: &'a mut ()) -> &'a mut () {
        poller
    }

    fn alloc_rx<'bound>(_: &mut RxQueueAlloc<'_, 'bound, Self>) -> Result {
        Ok(())
    }

    fn stop_rx<'bound>(
        _: Data<'_>,
        _: &device::Device,
        _: u16,
        _: &mut (),
        _: &mut OpsLocked<'bound>,
    ) -> Result {
        Ok(())
    }

    fn start_rx<'bound>(
        _: Data<'_>,
        _: &device::Device,
        _: RxStopped<'_>,
        _: u16,
        _: &mut (),
        _: &mut OpsLocked<'bound>,
    ) -> Result {
        Ok(())
    }
}

#[vtable]
impl Driver for Nic {
    type Bus = NoParent;
    type Setup = ();
    type Data<'bound> = ();
    type Poller<'bound> = ();
    type Tx<'bound> = ();
    type Doorbell = Immediate;

    //~ const OPS_LOCK: bool = true;
    const OPS_LOCK: bool = false;

    fn probe<'bound>(_: &'bound NoParent, (): ()) -> Result<(Info, impl PinInit<(), Error>)> {
        Ok((Info::new(MacAddress::from([2; 6])), Ok(())))
    }

    fn open<'bound>(_: &mut Opening<'_, 'bound, Self>) -> Result {
        Ok(())
    }

    fn start<'bound>(_: Data<'_>, _: &device::Device, _: &mut Locks<'_>) -> Result {
        Ok(())
    }

    fn quiesce<'bound>(_: Data<'_>, _: &device::Device, _: &mut Locks<'_>) -> Result {
        Ok(())
    }

    fn poll<'bound>(_: Data<'_>, _: &mut (), _: &Poll<'_>) -> Polled {
        Polled::Idle { received: 0 }
    }

    fn rearm<'bound>(_: Data<'_>, _: u16) {}

    fn start_xmit<'bound, 'call>(
        _: Data<'_>,
        _: &mut (),
        _: &TxQueue<'_>,
        _: TxSkBuff<'call>,
        _: bool,
    ) -> Xmit<'call> {
        Xmit::Taken
    }

    const OPS: OptionalOps<Self> = OPS;
}
