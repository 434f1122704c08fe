// SPDX-License-Identifier: GPL-2.0

//! The registers of a transmit ring.

use kernel::{
    device::{
        self,
        Bound, //
    },
    io::register::Array,
    net::xdp::XdpTxAddress,
    num::Bounded,
    prelude::*,
    time::Delta, //
};

use crate::{
    desc::TX_WRITE_BACK,
    mmio::{
        self,
        Bar0, //
    },
    regs::queue::*, //
};

/// The register values that describe a transmit ring to the NIC.
#[derive(Clone, Copy)]
pub(crate) struct TxRegisters {
    pub(crate) queue: TxNumber,
    pub(crate) base: u64,
    pub(crate) bytes: u32,
    /// See [`TX_WRITE_BACK`].
    pub(crate) write_back: Bounded<u32, 7>,
}

impl TxRegisters {
    /// Those of a ring whose packets are all reported.
    pub(crate) fn new(queue: TxNumber, base: u64, bytes: u32) -> Self {
        Self {
            queue,
            base,
            bytes,
            write_back: Bounded::<u32, 7>::new::<TX_WRITE_BACK>(),
        }
    }

    /// The same, if some packets are not.
    pub(crate) fn unreported(self) -> Self {
        Self {
            write_back: Bounded::<u32, 7>::new::<0>(),
            ..self
        }
    }

    /// Those of the ring for frames that are redirected to the port.
    pub(crate) fn of_xdp(pair: Pair, ring: XdpTxAddress) -> Self {
        Self::new(pair.xdp_xmit(), ring.base, ring.bytes)
    }

    /// Sets up the ring's registers and enables the queue (datasheet 4.6.8.1).
    pub(crate) fn start(self, dev: &device::Device<Bound>, bar: &Bar0<'_>) -> Result {
        let at = self.queue.at();

        // A reset may leave a limit on the rate of the queue.
        bar.write_reg(RTTDQSEL::zeroed().with_txdq_idx(Bounded::<u32, 7>::from_expr(at as u32)));
        bar.write_reg(RTTBCNRC::zeroed());

        bar.write(TXDCTL::at(at), TXDCTL::zeroed());
        bar.write(TDBAL::at(at), ((self.base & 0xffff_ffff) as u32).into());
        bar.write(TDBAH::at(at), ((self.base >> 32) as u32).into());
        bar.write(TDLEN::at(at), self.bytes.into());
        bar.write(TDH::at(at), TDH::zeroed());
        bar.write(TDT::at(at), TDT::zeroed());

        // Prefetch descriptors early.
        bar.write(
            TXDCTL::at(at),
            TXDCTL::zeroed()
                .with_const_pthresh::<32>()
                .with_const_hthresh::<1>()
                .with_wthresh(self.write_back)
                .with_enable(true),
        );
        mmio::wait_for(
            || bar.try_read(TXDCTL::at(self.queue.at())),
            |r| r.enable(),
            Delta::from_millis(100),
        )
        .inspect_err(|_| dev_err!(dev, "transmit queue {} was not enabled in time\n", at))
    }
}

/// Stops a queue while others are running, and waits until the NIC does not access its ring or what
/// is in it (datasheet 4.6.8.2).
///
/// Without a link, this fails if there are frames that the NIC has not sent.
pub(crate) fn stop(bar: &Bar0<'_>, queue: TxNumber) -> Result {
    mmio::wait_for(
        || {
            let (head, tail) = (TDH::at(queue.at()), TDT::at(queue.at()));
            Ok((
                bar.try_read(head)?.into_raw(),
                bar.try_read(tail)?.into_raw(),
            ))
        },
        |(head, tail)| head == tail,
        Delta::from_millis(100),
    )?;
    bar.update(TXDCTL::at(queue.at()), |r| {
        r.with_enable(false).with_swflsh(true)
    })?;
    mmio::wait_for(
        || bar.try_read(TXDCTL::at(queue.at())),
        |r| !r.enable(),
        Delta::from_millis(100),
    )
}
