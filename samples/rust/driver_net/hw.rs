// SPDX-License-Identifier: GPL-2.0

//! The registers that this driver needs, and its accesses to them.
//!
//! Names are those of the "Intel 82599 10 GbE Controller Datasheet", chapter 8.

use kernel::{
    io::{
        poll::read_poll_timeout,
        register,
        register::Register, //
    },
    net::device::MacAddress,
    pci::CheckedBar,
    prelude::*,
    time::{
        delay::sleep_at_least,
        Delta, //
    }, //
};

use crate::ring;

/// Size of the register space.
const BAR_SIZE: usize = 0x20000;
/// A read that was lost returns all ones. STATUS never has this value.
pub(crate) type Bar0<'bound> = CheckedBar<'bound, BAR_SIZE, { STATUS::OFFSET }>;

/// One interrupt for the queue pair, one for the link.
pub(crate) const VECTORS: u16 = 2;
pub(crate) const QUEUE_VECTOR: u16 = 0;
pub(crate) const EVENT_VECTOR: u16 = 1;

/// Size of a receive buffer, in KiB as the NIC counts it.
pub(crate) const BUFFER_KIB: u16 = 2;

register! {
    /// Device Control.
    CTRL(u32) @ 0x00000 {
        26:26   rst => bool;
        3:3     lrst => bool;
        2:2     pcie_master_disable => bool;
    }

    /// Device Status.
    STATUS(u32) @ 0x00008 {
        19:19   pcie_master_enable_status => bool;
    }

    /// Extended Interrupt Cause. Writing a bit clears it.
    EICR(u32) @ 0x00800 {
        20:20   lsc => bool;
    }

    /// Extended Interrupt Auto Clear: causes that a message clears.
    EIAC(u32) @ 0x00810 {
        15:0    rtx_queue;
    }

    /// Extended Interrupt Mask Set.
    EIMS(u32) @ 0x00880 {
        20:20   lsc => bool;
        0:0     queue => bool;
    }

    /// Extended Interrupt Mask Clear.
    EIMC(u32) @ 0x00888 {}

    /// Extended Interrupt Auto Mask: causes that a message masks.
    EIAM(u32) @ 0x00890 {
        15:0    rtx_queue;
    }

    /// General Purpose Interrupt Enable.
    GPIE(u32) @ 0x00898 {
        31:31   pba_support => bool;
        30:30   eiame => bool;
        5:5     ocd => bool;
        4:4     multiple_msix => bool;
    }

    /// Interrupt Vector Allocation of the first queues.
    IVAR(u32) @ 0x00900 {
        15:15   tx_valid => bool;
        13:8    tx_vector;
        7:7     rx_valid => bool;
        5:0     rx_vector;
    }

    /// Interrupt Vector Allocation of other causes.
    IVAR_MISC(u32) @ 0x00a00 {
        15:15   other_valid => bool;
        14:8    other_vector;
    }

    /// Receive ring of queue 0: base address, length, head, tail, control.
    RDBAL(u32) @ 0x01000 {}
    RDBAH(u32) @ 0x01004 {}
    RDLEN(u32) @ 0x01008 {}
    RDT(u32) @ 0x01018 {}
    RXDCTL(u32) @ 0x01028 {
        25:25   enable => bool;
    }

    /// Split Receive Control: how queue 0 uses its buffers.
    SRRCTL(u32) @ 0x02100 {
        27:25   desctype;
        13:8    bsizeheader;
        4:0     bsizepacket;
    }

    /// Receive DMA Control.
    RDRXCTL(u32) @ 0x02f00 {
        3:3     dmaidone => bool;
        1:1     crcstrip => bool;
    }

    /// Receive Control.
    RXCTRL(u32) @ 0x03000 {
        0:0     rxen => bool;
    }

    /// Highlander Control 0.
    HLREG0(u32) @ 0x04240 {
        10:10   txpaden => bool;
        1:1     rxcrcstrp => bool;
        0:0     txcrcen => bool;
    }

    /// Auto-Negotiation Control.
    AUTOC(u32) @ 0x042a0 {
        12:12   restart_an => bool;
    }

    /// Link Status.
    LINKS(u32) @ 0x042a4 {
        30:30   link_up => bool;
    }

    /// DMA Tx Control.
    DMATXCTL(u32) @ 0x04a80 {
        0:0     te => bool;
    }

    /// Filter Control.
    FCTRL(u32) @ 0x05080 {
        10:10   bam => bool;
    }

    /// Receive Address, of entry 0.
    RAL(u32) @ 0x05400 {}
    RAH(u32) @ 0x05404 {}

    /// Transmit ring of queue 0: base address, length, tail, control.
    TDBAL(u32) @ 0x06000 {}
    TDBAH(u32) @ 0x06004 {}
    TDLEN(u32) @ 0x06008 {}
    TDT(u32) @ 0x06018 {}
    TXDCTL(u32) @ 0x06028 {
        25:25   enable => bool;
        22:16   wthresh;
        14:8    hthresh;
        6:0     pthresh;
    }
}

/// Waits until a condition holds, which fails with a NIC that does not answer.
fn wait(condition: impl FnMut() -> Result<bool>) -> Result {
    read_poll_timeout(
        condition,
        |holds| *holds,
        Delta::from_micros(100),
        Delta::from_millis(100),
    )
    .map(|_| ())
}

/// Resets the NIC (datasheet 4.2.1). Afterwards, it neither interrupts nor accesses memory.
pub(crate) fn reset(bar: &Bar0<'_>) -> Result {
    bar.write_reg(EIMC::from(u32::MAX));

    // No new transactions. If the old ones do not end in time, the reset ends them.
    let _ = bar.update(RXCTRL, |r| r.with_rxen(false));
    let _ = bar.update(CTRL, |r| r.with_pcie_master_disable(true));
    let _ = wait(|| Ok(!bar.try_read(STATUS)?.pcie_master_enable_status()));

    // The reset of the link resets all else as well.
    bar.update(CTRL, |r| r.with_lrst(true))?;
    // The registers must be left alone for a while.
    sleep_at_least(Delta::from_millis(10));
    wait(|| {
        let ctrl = bar.try_read(CTRL)?;

        Ok(!ctrl.rst() && !ctrl.lrst())
    })?;
    bar.write_reg(EIMC::from(u32::MAX));
    wait(|| Ok(bar.try_read(RDRXCTL)?.dmaidone()))
}

/// The address that the NIC has loaded from its EEPROM.
pub(crate) fn permanent_address(bar: &Bar0<'_>) -> MacAddress {
    let [a, b, c, d] = bar.read(RAL).into_raw().to_le_bytes();
    let [e, f, ..] = bar.read(RAH).into_raw().to_le_bytes();

    MacAddress::from([a, b, c, d, e, f])
}

/// Tells the NIC where the rings are. It does not use them before [`start`].
pub(crate) fn place_rings(bar: &Bar0<'_>, rx: u64, tx: u64) {
    const LEN: u32 = ring::LEN.bytes();

    bar.write_reg(RDBAL::from(rx as u32));
    bar.write_reg(RDBAH::from((rx >> 32) as u32));
    bar.write_reg(RDLEN::from(LEN));
    bar.write_reg(TDBAL::from(tx as u32));
    bar.write_reg(TDBAH::from((tx >> 32) as u32));
    bar.write_reg(TDLEN::from(LEN));
}

/// Starts the rings, the engines and the interrupts (datasheet 4.6).
pub(crate) fn start(bar: &Bar0<'_>) -> Result {
    // Both registers must agree: frames arrive without their frame check sequence.
    bar.update(HLREG0, |r| {
        r.with_txcrcen(true).with_txpaden(true).with_rxcrcstrp(true)
    })?;
    bar.update(RDRXCTL, |r| r.with_crcstrip(true))?;
    bar.update(FCTRL, |r| r.with_bam(true))?;

    bar.update(DMATXCTL, |r| r.with_te(true))?;
    bar.write_reg(
        TXDCTL::zeroed()
            .with_const_pthresh::<32>()
            .with_const_hthresh::<1>()
            .with_const_wthresh::<1>()
            .with_enable(true),
    );
    wait(|| Ok(bar.try_read(TXDCTL)?.enable()))?;

    bar.write_reg(
        SRRCTL::zeroed()
            .with_const_desctype::<1>()
            .with_const_bsizeheader::<4>()
            .with_const_bsizepacket::<{ BUFFER_KIB as u32 }>(),
    );
    bar.write_reg(RXDCTL::zeroed().with_enable(true));
    wait(|| Ok(bar.try_read(RXDCTL)?.enable()))?;
    // The tail may only move when the queue is enabled. All buffers but one are the NIC's.
    rx_doorbell(bar, ring::LEN.get() - 1);
    bar.update(RXCTRL, |r| r.with_rxen(true))?;

    bar.write_reg(
        GPIE::zeroed()
            .with_multiple_msix(true)
            .with_pba_support(true)
            .with_eiame(true)
            .with_ocd(true),
    );
    bar.write_reg(
        IVAR::zeroed()
            .with_const_rx_vector::<{ QUEUE_VECTOR as u32 }>()
            .with_rx_valid(true)
            .with_const_tx_vector::<{ QUEUE_VECTOR as u32 }>()
            .with_tx_valid(true),
    );
    bar.write_reg(
        IVAR_MISC::zeroed()
            .with_const_other_vector::<{ EVENT_VECTOR as u32 }>()
            .with_other_valid(true),
    );
    // The message of the queue vector clears and masks its cause until `rearm_queue()`.
    bar.write_reg(EIAC::zeroed().with_const_rtx_queue::<1>());
    bar.write_reg(EIAM::zeroed().with_const_rtx_queue::<1>());
    bar.write_reg(EIMS::zeroed().with_lsc(true).with_queue(true));

    bar.update(AUTOC, |r| r.with_restart_an(true))
}

/// Tells the NIC how far the receive ring is filled.
pub(crate) fn rx_doorbell(bar: &Bar0<'_>, tail: usize) {
    bar.write_reg(RDT::from(tail as u32));
}

/// Tells the NIC how far the transmit ring is filled.
pub(crate) fn tx_doorbell(bar: &Bar0<'_>, tail: usize) {
    bar.write_reg(TDT::from(tail as u32));
}

/// Unmasks the queue vector.
pub(crate) fn rearm_queue(bar: &Bar0<'_>) {
    bar.write_reg(EIMS::zeroed().with_queue(true));
}

/// Acknowledges a change of the link.
pub(crate) fn rearm_event(bar: &Bar0<'_>) {
    bar.write_reg(EICR::zeroed().with_lsc(true));
    bar.write_reg(EIMS::zeroed().with_lsc(true));
}

/// Whether the link is up.
pub(crate) fn link_is_up(bar: &Bar0<'_>) -> bool {
    // Loss of the link is latched until it is read: the second read is the present state.
    bar.read(LINKS);
    bar.try_read(LINKS).is_ok_and(|links| links.link_up())
}
