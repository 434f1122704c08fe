// SPDX-License-Identifier: GPL-2.0

//! Packets that the NIC cannot send, and getting rid of them.
//!
//! Without a link, the NIC stops: packets stay in the transmit queues, and some of their data in
//! the buffers of the PCIe block. A reset while transactions are pending may leave the NIC unable
//! to transmit (Specification Update, clarification 9).

use kernel::{
    device::{
        self,
        Bound, //
    },
    io::{
        register::Array,
        Io, //
    },
    pci,
    prelude::*,
    time::{
        delay::sleep_at_least,
        Delta, //
    }, //
};

use crate::{
    mmio::{
        self,
        Bar0, //
    },
    regs::{
        queue::*,
        *, //
    }, //
};

/// Offset of the PCIe Device Status in the NIC's configuration space.
const DEVICE_STATUS: usize = 0xaa;

/// The NIC has issued requests that are not completed.
const TRANSACTIONS_PENDING: u16 = 1 << 5;

/// Returns whether packets wait in a transmit queue.
pub(crate) fn is_pending(bar: &Bar0<'_>) -> bool {
    TxNumber::all().any(|queue| {
        let at = queue.at();

        bar.read(TDH::at(at)).into_raw() != bar.read(TDT::at(at)).into_raw()
    })
}

/// Waits until requests of the NIC are completed.
fn wait_for_transactions(dev: &device::Device<Bound>) -> Result {
    let pdev: &pci::Device<Bound> = dev.try_into()?;

    mmio::poll(
        || Ok(pdev.config_space().read16(DEVICE_STATUS)),
        |status| status & TRANSACTIONS_PENDING == 0,
        Delta::from_micros(100),
        Delta::from_millis(100),
    )
    .map(|_| ())
}

/// Clears what the NIC still holds of packets, before a reset. Reception must be off.
pub(crate) fn transmit(dev: &device::Device<Bound>, bar: &Bar0<'_>) {
    let (Ok(hlreg0), Ok(gcr_ext)) = (bar.try_read(HLREG0), bar.try_read(GCR_EXT)) else {
        return;
    };

    // Packets that the NIC can still send must not reach the wire, should the link come up.
    bar.write_reg(hlreg0.with_lpbk(true));
    mmio::flush(bar);
    sleep_at_least(Delta::from_millis(3));
    if wait_for_transactions(dev).is_err() {
        dev_warn!(dev, "PCIe transactions still pending\n");
    }

    bar.write_reg(gcr_ext.with_buffers_clear(true));
    mmio::flush(bar);
    sleep_at_least(Delta::from_micros(20));

    bar.write_reg(gcr_ext);
    bar.write_reg(hlreg0);
}
