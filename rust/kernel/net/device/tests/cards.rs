// SPDX-License-Identifier: GPL-2.0

//! Tests of limits that no card has.

use super::super::{
    registration::Registration,
    tx_path::{
        self,
        Direct, //
    },
    Device,
    Driver,
    Info,
    MacAddress,
    Opening,
    Parent,
    Rtnl, //
};

use crate::{
    bindings,
    device::{
        self,
        Bound, //
    },
    net::{
        napi::{
            Poll,
            Polled, //
        },
        queue::{
            TxQueue,
            Xmit, //
        },
        skbuff::SkBuff, //
    },
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

/// A bus device.
struct Function {
    is_master: Atomic<u32>,
}

static FUNCTION: Function = Function {
    is_master: Atomic::new(0),
};

// SAFETY: There is one, which is static.
unsafe impl Parent for Function {
    fn as_device(&self) -> Option<&device::Device<Bound>> {
        None
    }

    fn allow_dma(&self) {
        self.is_master.store(1, Relaxed);
    }

    fn forbid_dma(&self) -> bool {
        self.is_master.store(0, Relaxed);
        true
    }
}

/// The driver.
struct Card;

struct Plan {
    info: Info,
}

#[vtable]
impl Driver for Card {
    type Bus = Function;
    type Setup = Arc<Plan>;
    type Data<'bound> = Arc<Plan>;
    type Poller<'bound> = ();
    type Tx<'bound> = ();

    fn probe<'bound>(
        _bus: &'bound Function,
        plan: Arc<Plan>,
    ) -> Result<(Info, impl PinInit<Arc<Plan>, Error>)> {
        Ok((plan.info, Ok(plan)))
    }

    fn open<'bound>(cx: &mut Opening<'_, 'bound, Self>) -> Result {
        cx.add_virtual_queue_vector(|_| Ok(((), ()))).map(|_| ())
    }

    fn start<'bound>(_: Pin<&Arc<Plan>>, _: &Device, _: &mut Rtnl) -> Result {
        Ok(())
    }

    fn quiesce<'bound>(_: Pin<&Arc<Plan>>, _: &Device, _: &mut Rtnl) -> Result {
        Ok(())
    }

    fn reset<'bound>(_: Pin<&Arc<Plan>>, _: &Device, _: &mut Rtnl) -> Result {
        Ok(())
    }

    fn poll<'bound>(_: Pin<&Arc<Plan>>, _: &mut (), _: &Poll<'_>) -> Polled {
        Polled::Idle { received: 0 }
    }

    fn rearm<'bound>(_: Pin<&Arc<Plan>>, _: u16) {}

    fn start_xmit<'bound>(
        _: Pin<&Arc<Plan>>,
        _: &mut (),
        _: &TxQueue<'_>,
        skb: SkBuff,
        _: bool,
    ) -> Xmit {
        skb.consume();
        Xmit::Taken
    }
}

fn plan(info: Info) -> Result<Arc<Plan>> {
    Ok(Arc::new(Plan { info }, GFP_KERNEL)?)
}

fn info() -> Info {
    Info::new(MacAddress::from([2, 0, 0, 0, 0, 3]))
}

/// Registers a device of the driver.
fn register(plan: &Arc<Plan>) -> Result<Registration<Card>> {
    let (info, data) = Card::probe(&FUNCTION, plan.clone())?;
    let mut registration = Registration::<Card>::new(
        &FUNCTION,
        &info,
        data,
        tx_path::new::<Card, Direct>, //
    )?;

    // IPv6 would send packets of its own.
    let no_addrconf = bindings::netdev_priv_flags_IFF_NO_ADDRCONF;
    // SAFETY: The device is valid, and not registered yet.
    unsafe { bindings::netdev_add_priv_flags(registration.dev.as_ptr(), no_addrconf) };
    registration.register(&info)?;
    Ok(registration)
}

#[macros::kunit_tests(rust_net_cards)]
mod cases {
    use super::*;

    /// The stack takes the length of the longest headers off the limit.
    #[test]
    fn no_limit_of_a_packet_is_below_its_headers() -> Result {
        let limit = |max_segmented_len| -> Result {
            let info = Info {
                max_segmented_len,
                ..info()
            };
            register(&plan(info)?).map(drop)
        };

        for too_little in [0, 100, Info::MIN_SEGMENTED_LEN - 1] {
            assert_eq!(limit(too_little), Err(EINVAL));
        }
        limit(Info::MIN_SEGMENTED_LEN)
    }
}
