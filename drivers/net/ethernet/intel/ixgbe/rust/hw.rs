// SPDX-License-Identifier: GPL-2.0

//! The port as a whole: reset, configuration, and the receive and transmit engines.

use kernel::{
    device::{
        self,
        Bound, //
    },
    io::register::Array,
    prelude::*,
    time::{
        delay::sleep_at_least,
        Delta, //
    }, //
};

use crate::{
    flow_director::{
        self,
        Mode, //
    },
    link::{
        self,
        Link, //
    },
    mmio::{
        flush,
        wait_for,
        Bar0, //
    },
    regs::{
        queue::*,
        *, //
    },
    rx::FrameLimit, //
};

/// Size of the receive packet buffer, in KiB.
pub(crate) const RX_PACKET_BUFFER: u32 = 512;

/// Size of the transmit packet buffer, in KiB.
const TX_PACKET_BUFFER: u32 = 160;

/// Room for one packet of the maximum size in the transmit packet buffer, in KiB.
const TX_MAX_PACKET: u32 = 10;

/// Masks all interrupts.
pub(crate) fn mask_interrupts(bar: &Bar0<'_>) {
    bar.write_reg(EIMC::from(u32::MAX));
    bar.write(EIMC_EX::at(0), u32::MAX.into());
    bar.write(EIMC_EX::at(1), u32::MAX.into());
    flush(bar);
}

/// Stops the device from accessing memory (datasheet 5.2.5.3.2, Master Disable).
///
/// On success, no DMA is pending and none will start. After a timeout, the caller has to reset the
/// device to be sure of that.
fn disable_master(bar: &Bar0<'_>) -> Result {
    bar.update(CTRL, |r| r.with_pcie_master_disable(true))?;
    wait_for(
        || bar.try_read(STATUS),
        |r| !r.pcie_master_enable_status(),
        Delta::from_millis(80),
    )
}

/// Resets the port (datasheet 4.2.1.6 and 4.2.1.7) and waits until it can be configured.
///
/// On success, all DMA has ended and all interrupts are masked.
pub(crate) fn reset(dev: &device::Device<Bound>, bar: &Bar0<'_>) -> Result {
    if bar.is_gone() {
        return Err(ENODEV);
    }
    // The reset does that, too.
    let _ = bar.update(RXCTRL, |r| r.with_rxen(false));
    mask_interrupts(bar);

    // If transactions do not drain, two resets are needed: the first one keeps new transactions
    // from starting, the second one cleans up after those that were still pending.
    let resets = if disable_master(bar).is_ok() {
        1
    } else {
        crate::flush::transmit(dev, bar);
        2
    };

    for _ in 0..resets {
        // Leave a link that is up alone, since the firmware may use it. The reset of a link that is
        // down resets all else as well.
        let link_up = link::state(bar) != Link::Down;
        bar.update(CTRL, |r| r.with_rst(link_up).with_lrst(!link_up))?;
        flush(bar);
        // The datasheet wants a delay before the next register access.
        sleep_at_least(Delta::from_millis(1));
        wait_for(
            || bar.try_read(CTRL),
            |r| !r.rst() && !r.lrst(),
            Delta::from_millis(100),
        )
        .inspect_err(|_| dev_err!(dev, "reset did not complete; power-cycle the NIC\n"))?;

        // Let the firmware reload its configuration.
        sleep_at_least(Delta::from_millis(50));
    }

    // The reset restored the default masks.
    mask_interrupts(bar);
    bar.read(EICR);

    wait_for(
        || bar.try_read(EEC),
        |r| r.auto_rd(),
        Delta::from_millis(100),
    )
    .inspect_err(|_| dev_err!(dev, "EEPROM auto-read did not complete\n"))?;

    wait_for(
        || bar.try_read(RDRXCTL),
        |r| r.dmaidone(),
        Delta::from_millis(100),
    )
    .inspect_err(|_| dev_err!(dev, "receive DMA did not initialize after reset\n"))?;

    // The machine sleeps on, whatever the EEPROM says, unless users have chosen packets.
    bar.update(WUC, |r| r.with_apme(false).with_apmpme(false))?;
    bar.write_reg(WUFC::zeroed());
    bar.write_reg(WUS::from(u32::MAX));
    Ok(())
}

/// Configures everything that all queues share (datasheet 4.6.7 and 4.6.8). The engines stay off.
///
/// In a mode that takes memory, the flow director gets it. With `lro`, queues may aggregate
/// packets.
pub(crate) fn configure(bar: &Bar0<'_>, mode: Mode, lro: bool) -> Result {
    bar.update(CTRL_EXT, |r| r.with_ns_dis(true))?;

    // There is one traffic class; it gets all of the packet buffers.
    bar.write(
        RXPBSIZE::at(0),
        if mode.takes_memory() {
            RXPBSIZE::zeroed().with_const_size::<{ RX_PACKET_BUFFER - flow_director::MEMORY }>()
        } else {
            RXPBSIZE::zeroed().with_const_size::<RX_PACKET_BUFFER>()
        },
    );
    bar.write(
        TXPBSIZE::at(0),
        TXPBSIZE::zeroed().with_const_size::<TX_PACKET_BUFFER>(),
    );
    bar.write(
        TXPBTHRESH::at(0),
        TXPBTHRESH::zeroed().with_const_thresh::<{ TX_PACKET_BUFFER - TX_MAX_PACKET }>(),
    );
    for tc in 1..8 {
        // PANIC: `try_at()` never fails here, but the compiler cannot prove it in a loop.
        if let (Some(rx), Some(tx), Some(thresh)) = (
            RXPBSIZE::try_at(tc),
            TXPBSIZE::try_at(tc),
            TXPBTHRESH::try_at(tc),
        ) {
            bar.write(rx, RXPBSIZE::zeroed());
            bar.write(tx, TXPBSIZE::zeroed());
            bar.write(thresh, TXPBTHRESH::zeroed());
        }
    }

    // The NIC coalesces without the NFS filters only (datasheet 7.11.1).
    bar.update(RFCTL, |r| {
        r.with_rsc_dis(!lro).with_nfsr_dis(true).with_nfsw_dis(true)
    })?;
    if lro {
        bar.update(RSCDBU, |r| r.with_rscackdis(true))?;
        // It has to know the segments. Nothing is split by that: the format of descriptors has one
        // buffer.
        bar.write(
            PSRTYPE,
            PSRTYPE::zeroed()
                .with_l2hdr(true)
                .with_ipv4hdr(true)
                .with_ipv6hdr(true)
                .with_udphdr(true)
                .with_tcphdr(true),
        );
    }
    bar.update(RXCSUM, |r| r.with_pcsd(true))?;

    // The layout of the transmit queues may only change while the arbiter is disabled.
    bar.update(RTTDCS, |r| r.with_arbdis(true))?;
    bar.write_reg(MTQC::zeroed());
    bar.write_reg(DTXMXSZRQ::zeroed().with_const_max_bytes_num_req::<0xfff>());
    bar.update(RTTDCS, |r| r.with_arbdis(false))?;

    // Strip the frame check sequence. The datasheet requires the other bits of RDRXCTL.
    bar.update(HLREG0, |r| {
        r.with_txcrcen(true)
            .with_rxcrcstrp(true)
            .with_jumboen(true)
            .with_txpaden(true)
    })?;
    bar.update(RDRXCTL, |r| {
        r.with_crcstrip(true)
            .with_rscackc(true)
            .with_fcoe_wrfix(true)
            .with_const_rscfrstsize::<0>()
    })
}

/// Tells the firmware whether a driver controls the port.
pub(crate) fn set_driver_loaded(bar: &Bar0<'_>, loaded: bool) -> Result {
    bar.update(CTRL_EXT, |r| r.with_drv_load(loaded))
}

/// Sets the limit to the length of received frames.
pub(crate) fn set_frame_limit(bar: &Bar0<'_>, limit: FrameLimit) -> Result {
    bar.update(MAXFRS, |r| r.with_mfs(limit.bytes()))
}

/// Enables reception.
///
/// The security block stops the receive path meanwhile: frames that arrive while the engine starts
/// could hang it.
pub(crate) fn enable_rx(bar: &Bar0<'_>) -> Result {
    bar.update(SECRXCTRL, |r| r.with_rx_dis(true))?;
    // If the block does not drain in time, start the engine all the same.
    let _ = wait_for(
        || bar.try_read(SECRXSTAT),
        |r| r.secrx_rdy(),
        Delta::from_millis(40),
    );
    bar.update(RXCTRL, |r| r.with_rxen(true))?;
    bar.update(SECRXCTRL, |r| r.with_rx_dis(false))?;
    flush(bar);
    Ok(())
}

/// Enables transmission.
pub(crate) fn enable_tx(bar: &Bar0<'_>) -> Result {
    bar.update(DMATXCTL, |r| r.with_te(true))
}

/// Stops reception and transmission, and waits until all DMA has ended.
///
/// If the queues do not stop in time, the device is reset, which ends all DMA. This covers all
/// possible queues, not only those that this driver has started. If the reset fails too, the device
/// may still access memory.
pub(crate) fn stop(dev: &device::Device<Bound>, bar: &Bar0<'_>) -> Result {
    mask_interrupts(bar);

    let rx_off = bar.update(RXCTRL, |r| r.with_rxen(false));
    for pair in Pair::first(MAX_PAIRS) {
        bar.write(RXDCTL::at(pair.at()), RXDCTL::zeroed().with_swflsh(true));
    }
    for queue in TxNumber::all() {
        bar.write(TXDCTL::at(queue.at()), TXDCTL::zeroed().with_swflsh(true));
    }
    flush(bar);

    // Without a link, transmit queues with packets do not stop. The next reset clears them.
    let transmits = link::state(bar) != Link::Down;
    let any_is_enabled = || -> Result<bool> {
        for pair in Pair::first(MAX_PAIRS) {
            if bar.try_read(RXDCTL::at(pair.at()))?.enable() {
                return Ok(true);
            }
        }
        for queue in TxNumber::all() {
            if transmits && bar.try_read(TXDCTL::at(queue.at()))?.enable() {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let queues_stopped = wait_for(any_is_enabled, |enabled| !enabled, Delta::from_millis(100));
    let tx_off = bar.update(DMATXCTL, |r| r.with_te(false));
    let drained = disable_master(bar);

    if bar.is_gone() {
        return Err(ENODEV);
    }
    if rx_off.and(queues_stopped).and(tx_off).and(drained).is_ok() {
        return Ok(());
    }
    dev_warn!(dev, "queues did not stop in time, resetting\n");
    reset(dev, bar)
}
