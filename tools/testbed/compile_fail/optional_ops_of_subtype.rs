//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A function for any lifetime is one for a certain lifetime, too: a subtype. A driver for the one
//! type is not a driver for the other: their callbacks take different private data.

#![forbid(unsafe_code)]

use kernel::{
    net::{
        device::{
            self,
            Driver,
            Immediate,
            Info,
            Locks,
            MacAddress,
            NoParent,
            Opening,
            OptionalOps, //
        },
        napi::{
            Poll,
            Polled, //
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

pub struct Nic<F>(pub F);

pub type Any = for<'a> fn(&'a ());
pub type Certain = fn(&'static ());

//~ pub fn callbacks(ops: OptionalOps<Nic<Any>>) -> OptionalOps<Nic<Any>> {
pub fn callbacks(ops: OptionalOps<Nic<Certain>>) -> OptionalOps<Nic<Any>> {
    ops
}

type Data<'a> = Pin<&'a ()>;

#[vtable]
impl<F: 'static> Driver for Nic<F> {
    type Bus = NoParent;
    type Setup = ();
    type Data<'bound> = ();
    type Poller<'bound> = ();
    type Tx<'bound> = ();
    type Doorbell = Immediate;

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
}
