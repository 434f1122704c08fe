// SPDX-License-Identifier: GPL-2.0

//! The registers that this driver needs, and its accesses to them.
//!
//! Names are those of the "Intel 82574 GbE Controller Family Datasheet", chapter 10.

use kernel::{
    io::{
        poll::read_poll_timeout,
        register,
        register::{
            Array,
            Register, //
        }, //
    },
    net::device::{
        MacAddress,
        RingSizes,
        RxMode, //
    },
    pci::CheckedBar,
    prelude::*,
    time::{
        delay::sleep_at_least,
        Delta, //
    }, //
};

/// Size of the register space.
const BAR_SIZE: usize = 0x20000;
/// A read that was lost returns all ones. STATUS never has this value.
pub(crate) type Bar0<'bound> = CheckedBar<'bound, BAR_SIZE, { STATUS::OFFSET }>;

/// With MSI-X, there is a message for each of these.
pub(crate) const VECTORS: u32 = 3;
pub(crate) const RX_VECTOR: u32 = 0;
pub(crate) const TX_VECTOR: u32 = 1;
pub(crate) const LINK_VECTOR: u32 = 2;

/// Number of addresses that the NIC compares; the first one is that of the port.
const ADDRESSES: usize = 16;

/// The greatest MTU: the NIC sends frames of up to 9018 bytes, with header and check sequence.
pub(crate) const MAX_MTU: u32 = 9000;

/// The shortest time between two interrupts of a vector: 50 us, in units of 256 ns.
const INTERVAL: u32 = 195;

register! {
    /// Device Control.
    CTRL(u32) @ 0x00000 {
        26:26   rst => bool;
        6:6     slu => bool;
        2:2     gio_master_disable => bool;
    }

    /// Device Status.
    STATUS(u32) @ 0x00008 {
        19:19   gio_master_enable => bool;
        7:6     speed;
        1:1     link_up => bool;
    }

    /// Extended Device Control.
    CTRL_EXT(u32) @ 0x00018 {
        31:31   pba_support => bool;
        24:24   eiame => bool;
    }

    /// Interrupt Cause Read. Writing a bit clears it; without MSI-X, so does reading.
    ICR(u32) @ 0x000c0 {
        24:24   other => bool;
        2:2     lsc => bool;
    }

    /// Interrupt Throttling, without MSI-X.
    ITR(u32) @ 0x000c4 {}

    /// Interrupt Mask Set.
    IMS(u32) @ 0x000d0 {
        24:24   other => bool;
        22:22   txq0 => bool;
        20:20   rxq0 => bool;
        7:7     rxt0 => bool;
        2:2     lsc => bool;
        0:0     txdw => bool;
    }

    /// Interrupt Mask Clear.
    IMC(u32) @ 0x000d8 {}

    /// Extended Interrupt Auto Clear: causes that their message clears.
    EIAC(u32) @ 0x000dc {}

    /// Interrupt Acknowledge Auto Mask: causes that their message masks, with `CTRL_EXT.EIAME`.
    IAM(u32) @ 0x000e0 {}

    /// Interrupt Vector Allocation.
    IVAR(u32) @ 0x000e4 {
        19:19   other_valid => bool;
        18:16   other_vector;
        11:11   tx_valid => bool;
        10:8    tx_vector;
        3:3     rx_valid => bool;
        2:0     rx_vector;
    }

    /// Interrupt Throttling of an MSI-X vector.
    EITR(u32)[5] @ 0x000e8 {}

    /// Receive Control.
    RCTL(u32) @ 0x00100 {
        26:26   secrc => bool;
        15:15   bam => bool;
        5:5     lpe => bool;
        4:4     mpe => bool;
        3:3     upe => bool;
        1:1     en => bool;
    }

    /// Transmit Control.
    TCTL(u32) @ 0x00400 {
        21:12   cold;
        11:4    ct;
        3:3     psp => bool;
        1:1     en => bool;
    }

    /// Transmit Inter Packet Gap.
    TIPG(u32) @ 0x00410 {}

    /// Receive ring: base address, length, head, tail.
    RDBAL(u32) @ 0x02800 {}
    RDBAH(u32) @ 0x02804 {}
    RDLEN(u32) @ 0x02808 {}
    RDH(u32) @ 0x02810 {}
    RDT(u32) @ 0x02818 {}

    /// Transmit rings: base address, length, head, tail, control.
    TDBAL(u32)[2, stride = 256] @ 0x03800 {}
    TDBAH(u32)[2, stride = 256] @ 0x03804 {}
    TDLEN(u32)[2, stride = 256] @ 0x03808 {}
    TDH(u32)[2, stride = 256] @ 0x03810 {}
    TDT(u32)[2, stride = 256] @ 0x03818 {}
    TXDCTL(u32)[2, stride = 256] @ 0x03828 {
        24:24   gran => bool;
        22:22   one => bool;
        21:16   wthresh;
        13:8    hthresh;
        5:0     pthresh;
    }

    /// Frames with a bad check sequence, and those for which there was no buffer, since the last
    /// read.
    CRCERRS(u32) @ 0x04000 {}
    MPC(u32) @ 0x04010 {}

    /// Receive Checksum Control.
    RXCSUM(u32) @ 0x05000 {
        9:9     tuofld => bool;
        8:8     ipofld => bool;
    }

    /// Receive Filter Control.
    RFCTL(u32) @ 0x05008 {
        15:15   exten => bool;
    }

    /// Receive Address.
    RAL(u32)[16, stride = 8] @ 0x05400 {}
    RAH(u32)[16, stride = 8] @ 0x05404 {
        31:31   av => bool;
        15:0    rah;
    }
}

/// The kind of interrupts that a port has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupts {
    /// MSI-X. The NIC masks and acknowledges the causes of the queues with their message.
    Several,
    /// MSI: one message. The poll function masks and acknowledges, and looks at the link.
    One,
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

/// Resets the NIC. Afterwards, it neither interrupts nor accesses memory.
pub(crate) fn reset(bar: &Bar0<'_>) -> Result {
    bar.write_reg(IMC::from(u32::MAX));
    bar.write_reg(RCTL::zeroed());
    bar.write_reg(TCTL::zeroed());

    // No new transactions. If the old ones do not end in time, the reset ends them.
    let _ = bar.update(CTRL, |r| r.with_gio_master_disable(true));
    let _ = wait(|| Ok(!bar.try_read(STATUS)?.gio_master_enable()));

    bar.update(CTRL, |r| r.with_rst(true))?;
    // The registers must be left alone for a while. Meanwhile the NIC reads its EEPROM.
    sleep_at_least(Delta::from_millis(20));
    wait(|| Ok(!bar.try_read(CTRL)?.rst()))?;
    bar.write_reg(IMC::from(u32::MAX));
    bar.read(ICR);
    Ok(())
}

/// The address that the NIC has loaded from its EEPROM.
pub(crate) fn permanent_address(bar: &Bar0<'_>) -> MacAddress {
    let [a, b, c, d] = bar.read(RAL::at(0)).into_raw().to_le_bytes();
    let [e, f, ..] = bar.read(RAH::at(0)).into_raw().to_le_bytes();

    MacAddress::from([a, b, c, d, e, f])
}

/// The rings, as the NIC has to know them.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) sizes: RingSizes,
    /// Bus addresses.
    pub(crate) rx: u64,
    /// The second one is for frames that programs send back, and has the size of `rx`.
    pub(crate) tx: [u64; 2],
    /// How far the receive ring is filled.
    pub(crate) rx_tail: usize,
}

/// Tells the NIC where the rings are. It does not use them before [`start`].
pub(crate) fn place_rings(bar: &Bar0<'_>, place: Place) {
    let Place { rx, tx, .. } = place;

    bar.write_reg(RDBAL::from(rx as u32));
    bar.write_reg(RDBAH::from((rx >> 32) as u32));
    bar.write_reg(RDLEN::from(place.sizes.rx.bytes()));
    bar.write_reg(RDH::zeroed());
    rx_doorbell(bar, place.rx_tail);
    for (queue, size) in [place.sizes.tx, place.sizes.rx].into_iter().enumerate() {
        bar.write(TDBAL::at(queue), (tx[queue] as u32).into());
        bar.write(TDBAH::at(queue), ((tx[queue] >> 32) as u32).into());
        bar.write(TDLEN::at(queue), size.bytes().into());
        bar.write(TDH::at(queue), TDH::zeroed());
        tx_doorbell(bar, queue, 0);
    }
}

/// Starts the engines, whose rings are in place, and unmasks interrupts.
pub(crate) fn start(bar: &Bar0<'_>, own: &MacAddress, interrupts: Interrupts) -> Result {
    let several = interrupts == Interrupts::Several;

    bar.update(CTRL_EXT, |r| r.with_pba_support(true).with_eiame(several))?;
    bar.update(CTRL, |r| r.with_slu(true))?;
    set_address(bar, 0, Some(own));

    if several {
        bar.write_reg(
            IVAR::zeroed()
                .with_const_rx_vector::<RX_VECTOR>()
                .with_rx_valid(true)
                .with_const_tx_vector::<TX_VECTOR>()
                .with_tx_valid(true)
                .with_const_other_vector::<LINK_VECTOR>()
                .with_other_valid(true),
        );
        let queues = IMS::zeroed().with_rxq0(true).with_txq0(true).into_raw();
        bar.write_reg(EIAC::from(queues));
        bar.write_reg(IAM::from(queues));
        bar.write(EITR::at(RX_VECTOR as usize), INTERVAL.into());
        bar.write(EITR::at(TX_VECTOR as usize), INTERVAL.into());
    } else {
        bar.write_reg(ITR::from(INTERVAL));
    }

    // Write back each completion at once: a higher threshold could delay the last one for long.
    for queue in 0..2 {
        bar.write(
            TXDCTL::at(queue),
            TXDCTL::zeroed()
                .with_const_pthresh::<31>()
                .with_const_hthresh::<1>()
                .with_const_wthresh::<1>()
                .with_one(true)
                .with_gran(true),
        );
    }
    // The gaps that the data sheet recommends.
    bar.write_reg(TIPG::from(8 | 8 << 10 | 6 << 20));
    bar.write_reg(
        TCTL::zeroed()
            .with_const_cold::<63>()
            .with_const_ct::<15>()
            .with_psp(true)
            .with_en(true),
    );

    // Extended descriptors.
    bar.write_reg(RFCTL::zeroed().with_exten(true));
    bar.write_reg(RXCSUM::zeroed().with_ipofld(true).with_tuofld(true));
    // Buffers of 2 KiB, see `ring::BUFFER_LEN`; a long frame takes several.
    bar.write_reg(
        RCTL::zeroed()
            .with_secrc(true)
            .with_bam(true)
            .with_lpe(true)
            .with_en(true),
    );

    rearm_queue(bar, interrupts);
    if several {
        rearm_link(bar);
    }
    Ok(())
}

/// Tells the NIC how far the receive ring is filled.
#[inline]
pub(crate) fn rx_doorbell(bar: &Bar0<'_>, tail: usize) {
    bar.write_reg(RDT::from(tail as u32));
}

/// Tells the NIC how far a transmit ring is filled.
#[inline]
pub(crate) fn tx_doorbell(bar: &Bar0<'_>, queue: usize, tail: usize) {
    bar.write(TDT::at(queue), (tail as u32).into());
}

/// Unmasks the causes of the queues, and with a single interrupt all.
#[inline]
pub(crate) fn rearm_queue(bar: &Bar0<'_>, interrupts: Interrupts) {
    bar.write_reg(match interrupts {
        Interrupts::Several => IMS::zeroed().with_rxq0(true).with_txq0(true),
        Interrupts::One => IMS::zeroed().with_rxt0(true).with_txdw(true).with_lsc(true),
    });
}

/// Acknowledges a change of the link, and unmasks further ones.
pub(crate) fn rearm_link(bar: &Bar0<'_>) {
    // A write leaves the causes of the queues alone; a read could clear them, too.
    bar.write_reg(ICR::zeroed().with_other(true).with_lsc(true));
    bar.write_reg(IMS::zeroed().with_other(true).with_lsc(true));
}

/// Masks and acknowledges the single interrupt. Returns whether the link may have changed.
pub(crate) fn take_causes(bar: &Bar0<'_>) -> bool {
    bar.write_reg(IMC::from(u32::MAX));
    bar.read_once(ICR).is_none_or(|causes| causes.lsc())
}

/// The speed of the link in Mbit/s, if it is up.
pub(crate) fn link(bar: &Bar0<'_>) -> Option<u32> {
    let status = bar.read_atomic(STATUS);

    if status.into_raw() == u32::MAX || !status.link_up() {
        return None;
    }
    Some(match status.speed().get() {
        0 => 10,
        1 => 100,
        _ => 1000,
    })
}

/// Sets or clears an address to receive; the first one is that of the port.
pub(crate) fn set_address(bar: &Bar0<'_>, index: usize, address: Option<&MacAddress>) {
    let (Some(low), Some(high)) = (RAL::try_at(index), RAH::try_at(index)) else {
        return;
    };
    let [a, b, c, d, e, f] = address.map_or([0; 6], |address| *address.octets());

    // In between, halves of two addresses may match: the stack drops such frames.
    bar.write(low, u32::from_le_bytes([a, b, c, d]).into());
    bar.write(
        high,
        RAH::zeroed()
            .with_rah(u16::from_le_bytes([e, f]))
            .with_av(address.is_some()),
    );
}

/// Selects the frames to receive, besides broadcasts and those to the port's own address.
pub(crate) fn set_filter(bar: &Bar0<'_>, mode: &RxMode<'_>) -> Result {
    let mut addresses = Iterator::chain(mode.unicast(), mode.multicast());
    for index in 1..ADDRESSES {
        set_address(bar, index, addresses.next().as_ref());
    }

    // The stack filters those that do not fit in.
    let overflow = addresses.next().is_some();
    bar.update(RCTL, |r| {
        r.with_upe(mode.is_promiscuous() || mode.unicast().len() >= ADDRESSES)
            .with_mpe(mode.is_promiscuous() || mode.is_all_multicast() || overflow)
    })
}

/// Takes the numbers of frames since the last time: with a bad check sequence, and without a
/// buffer.
pub(crate) fn take_errors(bar: &Bar0<'_>) -> (u64, u64) {
    (
        bar.read_once(CRCERRS)
            .map_or(0, |count| count.into_raw().into()),
        bar.read_once(MPC)
            .map_or(0, |count| count.into_raw().into()),
    )
}
