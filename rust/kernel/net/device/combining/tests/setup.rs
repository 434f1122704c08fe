// SPDX-License-Identifier: GPL-2.0

//! Devices for the tests of the combining path.

use super::super::{
    super::{
        ops,
        tests::{
            dummy::{
                Data,
                Dummy,
                Event,
                OnXmit,
                Tx, //
            },
            fixture::{
                self,
                Fixture, //
            },
            UP, //
        }, //
    },
    Combine,
    Combining,
    CombiningQueue,
    LIST_LIMIT, //
};

use crate::{
    bindings,
    error::to_result,
    irq::IrqReturn,
    net::{
        combiner::{
            Pushed,
            Turn, //
        },
        skbuff::{
            SkBuff,
            UniqueSkBuff,
            UnsharedSkBuff, //
        }, //
    },
    prelude::*,
    softirq::BhGuard,
    sync::atomic::Relaxed, //
};

pub(super) const OK: i32 = bindings::netdev_tx::NETDEV_TX_OK.0;
pub(super) const BUSY: i32 = bindings::netdev_tx::NETDEV_TX_BUSY.0;

/// The private flag by which the dummy driver combines.
pub(super) const COMBINE: u32 = 1;

impl Combine for Dummy {
    fn combines<'bound>(data: Pin<&Data<'bound>>) -> bool {
        data.log.flags.load(Relaxed) & COMBINE != 0
    }

    fn kick<'bound>(data: Pin<&Data<'bound>>, _tx: &mut Tx) {
        data.log.add(Event::Kick);
    }
}

/// A device that is up and combines.
pub(super) fn device() -> Result<Fixture> {
    let device = Fixture::with_path::<Combining>(1)?;

    device.log.flags.store(COMBINE, Relaxed);
    device.up()?;
    assert!(device.log.take(UP));
    device.set_limit(1 << 20);
    device.log.doorbells.store(1, Relaxed);
    Ok(device)
}

/// A packet that holds its sender and sequence number, see [`fixture::number_of`].
pub(super) fn numbered(sender: usize, number: u32) -> Result<SkBuff> {
    let mut skb = UniqueSkBuff::alloc(128, GFP_ATOMIC)?;

    skb.put(&[0xff; 12])?;
    // CAST: There are few senders.
    skb.put(&[0x88, 0xb5, sender as u8])?;
    skb.put(&number.to_le_bytes())?;
    skb.put(&[0; 41])?;
    Ok(skb.into())
}

/// Runs `f` with bottom halves disabled.
pub(super) fn bh_disabled<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    let _bh = BhGuard::new().ok_or(EBUSY)?;
    f()
}

impl Fixture {
    fn queue(&self) -> Result<CombiningQueue<'_, Dummy>> {
        // SAFETY: The device is registered, with a path of this type.
        let (inner, path) = unsafe {
            let inner = ops::inner::<Dummy>(self.dev());
            (inner, inner.path_as::<Combining>())
        };

        CombiningQueue::new(path, inner, 0).ok_or(ENODEV)
    }

    /// Becomes the combiner, with a packet of sender 7, and does nothing.
    pub(super) fn begin(&self, number: u32) -> Result<Turn<'_, UnsharedSkBuff>> {
        let skb = UnsharedSkBuff::new(numbered(7, number)?).map_err(|_| EINVAL)?;

        match self.queue()?.state.list.push(skb, LIST_LIMIT) {
            Pushed::First(turn) => Ok(turn),
            _ => Err(EBUSY),
        }
    }

    /// Works the list off.
    pub(super) fn finish(&self, turn: Turn<'_, UnsharedSkBuff>, promised: bool) -> Result {
        let queue = self.queue()?;

        bh_disabled(|| {
            // SAFETY: Bottom halves are disabled, and we do not hold the lock.
            unsafe { queue.lock() }.work(turn, promised);
            Ok(())
        })
    }

    pub(super) fn send(&self, sender: usize, number: u32) -> Result<i32> {
        Ok(fixture::transmit(numbered(sender, number)?, self.dev()))
    }

    pub(super) fn taken(&self) -> u32 {
        self.log.taken.load(Relaxed)
    }

    pub(super) fn told(&self) -> u32 {
        self.log.told.load(Relaxed)
    }

    pub(super) fn on_xmit(&self, what: OnXmit) {
        self.log.on_xmit.store(what as u32, Relaxed);
    }

    /// Whether all packets that were taken were in order.
    pub(super) fn in_order(&self) -> bool {
        self.log.disorder.load(Relaxed) == 0
    }

    /// Calls `f` in an interrupt handler, which has interrupted the owner of the queue's lock if
    /// `locked`.
    pub(super) fn in_interrupt(&self, locked: bool, f: &mut dyn FnMut()) -> Result {
        type Callback<'a> = &'a mut dyn FnMut();

        /// # Safety
        ///
        /// `cookie` must point to a `Callback`.
        unsafe extern "C" fn handler(_: c_int, cookie: *mut c_void) -> bindings::irqreturn_t {
            // SAFETY: By the safety requirements. The code that raises the interrupt waits for us.
            unsafe { (*cookie.cast::<Callback<'_>>())() };
            bindings::irqreturn_t(IrqReturn::Handled as c_uint)
        }

        let irq = &self.irqs[2];
        let mut callback: Callback<'_> = f;
        let cookie = (&raw mut callback).cast::<c_void>();

        // SAFETY: The handler is freed before its data, and gets the cookie that it expects.
        to_result(unsafe {
            bindings::request_irq(
                irq.0,
                Some(handler),
                0,
                c"rust_net_test".as_char_ptr(),
                cookie,
            )
        })?;
        let raised = bh_disabled(|| {
            let queue = self.queue()?;
            // SAFETY: Bottom halves are disabled, and we do not hold the lock.
            let _locked = locked.then(|| unsafe { queue.lock() });
            irq.raise();
            Ok(())
        });
        // SAFETY: It was requested above.
        unsafe { bindings::free_irq(irq.0, cookie) };
        raised
    }

    /// Transmits as netpoll does: with interrupts disabled.
    #[cfg(not(CONFIG_PREEMPT_RT))]
    pub(super) fn send_by_netpoll(&self, locked: bool, sender: usize, number: u32) -> Result<i32> {
        let mut result = Err(EINVAL);
        let mut send = || {
            result = numbered(sender, number).map(|skb| self.start_xmit(skb));
        };

        self.in_interrupt(locked, &mut send)?;
        result
    }

    /// Polls as netpoll does.
    #[cfg(CONFIG_NETPOLL)]
    pub(super) fn poll_by_netpoll(&self, locked: bool) -> Result {
        let mut poll = || {
            // SAFETY: The queue exists and the device is up. There is no other poll.
            unsafe {
                let napi = (*bindings::netdev_get_tx_queue(self.dev(), 0)).napi;
                assert_eq!((*napi).poll.map(|poll| poll(napi, 0)), Some(0));
            }
        };
        self.in_interrupt(locked, &mut poll)
    }

    /// Transmits without a look at the queue, as a sender that raced with the stop.
    pub(super) fn send_blindly(&self, sender: usize, number: u32) -> Result<i32> {
        bh_disabled(|| Ok(self.start_xmit(numbered(sender, number)?)))
    }

    /// Calls `ndo_start_xmit`.
    pub(super) fn start_xmit(&self, skb: SkBuff) -> i32 {
        let skb = skb.into_raw();

        // SAFETY: The device is registered and combines. The packet is given away; if it is
        // returned, we free it.
        unsafe {
            let Some(xmit) = (*(*self.dev()).netdev_ops).ndo_start_xmit else {
                return BUSY;
            };
            let result = xmit(skb.as_ptr(), self.dev()).0;
            if result == BUSY {
                drop(SkBuff::from_raw(skb));
            }
            result
        }
    }
}
