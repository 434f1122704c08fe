//@ error: E0080 `set_rss` needs `rss`
// SPDX-License-Identifier: GPL-2.0

//! A table that is to be set has the size that the core has asked for. Without an answer, it would
//! have none.

#![forbid(unsafe_code)]

use kernel::{
    device::{
        Bound,
        Device, //
    },
    net::{
        device::{
            self,
            controls::{
                Controls,
                ExtAck,
                RssChange, //
            },
            Driver,
            Immediate,
            Info,
            Locks,
            MacAddress,
            Opening,
            OpsLocked,
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

pub struct Card;

pub const OPS: OptionalOps<Card> = OptionalOps::NONE.with_controls();

type Data<'a> = Pin<&'a ()>;
type Table<'a> = Option<&'a mut [u32]>;
type Key<'a> = Option<&'a mut [u8]>;

#[vtable]
impl Controls for Card {
    const RSS_ENTRIES: usize = 128;

    //~ fn rss<'bound>(_: Data<'_>, _: Table<'_>, _: Key<'_>, _: &mut OpsLocked<'_>) {}
    const REGISTERS: usize = 0;

    fn set_rss<'bound>(
        _: Data<'_>,
        _: &device::Device,
        _: RssChange<'_>,
        _: &mut OpsLocked<'_>,
        _: &ExtAck<'_>,
    ) -> Result {
        Ok(())
    }
}

#[vtable]
impl Driver for Card {
    type Bus = Device<Bound>;
    type Setup = ();
    type Data<'bound> = ();
    type Poller<'bound> = ();
    type Tx<'bound> = ();
    type Doorbell = Immediate;

    fn probe<'bound>(_: &'bound Device<Bound>, (): ()) -> Result<(Info, impl PinInit<(), Error>)> {
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
