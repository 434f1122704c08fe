// SPDX-License-Identifier: GPL-2.0

//! The registers of a receive ring.

use kernel::{
    device::{
        self,
        Bound, //
    },
    io::register::Array,
    num::Bounded,
    prelude::*,
    time::{
        delay::sleep_at_least,
        Delta, //
    }, //
};

use super::FrameLimit;
use crate::{
    irq,
    mmio::{
        self,
        Bar0, //
    },
    regs::queue::*,
    tx::TxRegisters, //
};

/// Sets whether these many queues, which are running, drop frames when they have no buffers left.
pub(crate) fn set_drop(bar: &Bar0<'_>, pairs: u16, drop: bool) -> Result {
    for pair in Pair::first(pairs) {
        bar.update(SRRCTL::at(pair.at()), |r| r.with_drop_en(drop))?;
    }
    Ok(())
}

/// Stops a queue while others are running, and waits until the NIC accesses neither its ring nor
/// its buffers (datasheet 4.6.7.1.2).
///
/// Frames for it that arrive meanwhile, or wait in the packet buffer, are dropped. The filters may
/// go on to select it: those of one queue have no other to select.
pub(super) fn stop(bar: &Bar0<'_>, pair: Pair) -> Result {
    let at = pair.at();

    // The NIC writes back what it has received.
    bar.update(RXDCTL::at(at), |r| r.with_enable(false).with_swflsh(true))?;
    mmio::wait_for(
        || bar.try_read(RXDCTL::at(pair.at())),
        |r| !r.enable(),
        Delta::from_millis(100),
    )?;
    // The datasheet wants a delay before the memory is freed.
    sleep_at_least(Delta::from_micros(100));
    Ok(())
}

/// The register values that describe a receive ring to the NIC.
#[derive(Clone, Copy)]
pub(crate) struct RxRegisters {
    pub(super) pair: Pair,
    pub(super) base: u64,
    pub(super) bytes: u32,
    pub(super) tail: u32,
    pub(super) buffer_kib: u32,
    pub(super) longest: u16,
    pub(super) lro: bool,
    pub(super) strips: bool,
    /// Those of the transmit ring for frames that programs send back.
    pub(super) xdp_tx: Option<TxRegisters>,
    /// The queue has memory of users: its vector tells of what they have sent, too.
    pub(super) xsk: bool,
}

impl RxRegisters {
    /// Whether the NIC aggregates frames.
    pub(crate) fn lro(&self) -> bool {
        self.lro
    }

    /// Whether the ring has buffers for all frames up to a limit.
    pub(crate) fn takes(&self, limit: FrameLimit) -> bool {
        limit.longest() <= self.longest
    }

    /// The longest frames that there is room for in memory of users, if the ring has that.
    pub(crate) fn longest_of_users(&self) -> u16 {
        if self.xsk {
            self.longest
        } else {
            u16::MAX
        }
    }

    /// Sets up the ring's registers and enables the queue (datasheet 4.6.7.1).
    ///
    /// All buffers pass to the NIC. With `drop`, the queue drops frames when it has no buffers
    /// left, rather than stalling the other queues.
    pub(crate) fn start(self, dev: &device::Device<Bound>, bar: &Bar0<'_>, drop: bool) -> Result {
        let at = self.pair.at();

        // First: a frame that is received may leave at once.
        if let Some(tx) = self.xdp_tx {
            tx.start(dev, bar)?;
        }
        if self.xsk {
            irq::set_xdp_tx(bar, self.pair, true)?;
        }
        bar.write(RXDCTL::at(at), RXDCTL::zeroed());
        bar.write(RDBAL::at(at), ((self.base & 0xffff_ffff) as u32).into());
        bar.write(RDBAH::at(at), ((self.base >> 32) as u32).into());
        bar.write(RDLEN::at(at), self.bytes.into());
        bar.write(RDH::at(at), RDH::zeroed());
        bar.write(RDT::at(at), RDT::zeroed());

        bar.update(DCA_RXCTRL::at(at), |r| r.with_must_be_0(false))?;
        bar.write(
            SRRCTL::at(at),
            SRRCTL::zeroed()
                .with_drop_en(drop)
                .with_const_desctype::<1>()
                .with_const_bsizeheader::<4>()
                .with_bsizepacket(Bounded::<u32, 5>::from_expr(self.buffer_kib & 0x1f)),
        );

        if self.lro {
            bar.write(
                RSCCTL::at(at),
                RSCCTL::zeroed().with_rscen(true).with_const_maxdesc::<3>(),
            );
        }

        bar.write(
            RXDCTL::at(at),
            RXDCTL::zeroed().with_enable(true).with_vme(self.strips),
        );
        // Not `at` itself: the compiler would lose sight of its bounds if it had an address.
        mmio::wait_for(
            || bar.try_read(RXDCTL::at(self.pair.at())),
            |r| r.enable(),
            Delta::from_millis(100),
        )
        .inspect_err(|_| {
            dev_err!(
                dev,
                "receive queue {} was not enabled in time\n",
                self.pair.at()
            )
        })?;

        // The tail may only be written when the queue is enabled.
        bar.write(RDT::at(at), self.tail.into());
        if self.xsk {
            // It gets its first frames by its first poll.
            irq::raise_queue(bar, self.pair);
        }
        Ok(())
    }
}
