// SPDX-License-Identifier: GPL-2.0
//! The rules as data: for each an id, its source, and the test that finds a breach.
//!
//! Sections are those of Intel's 82599 10 GbE Controller Datasheet. "SU" is Intel's Specification
//! Update, "C" the place in the C driver that knows the rule.

use super::queue::Stage;
use super::state::Facts;
use super::transmit::Packet;
use crate::regs::bits::{
    Autoc2, Causes, CtrlExt, Dmatxctl, Gpie, Hlreg0, Mrqc, Rdrxctl, Rttdcs, Rxcsum, Rxctrl,
};
use crate::regs::offset;

/// The moment at which a rule is tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Any read of BAR 0.
    Read,
    /// Any write of BAR 0.
    Write,
    /// A write of a base, length or head of a ring, or of its buffer sizes.
    RingWrite,
    /// A write of a tail.
    TailWrite,
    /// A write that sets the enable bit of a queue that is not enabled.
    QueueEnable,
    /// A write that enables the receiver.
    ReceiveEnable,
    /// A write that enables interrupts.
    InterruptEnable,
    /// A write that restarts the link.
    LinkRestart,
    /// A write that starts a reset.
    Reset,
    /// A word of the EEPROM is asked for.
    EepromRead,
    /// A write of the semaphore that firmware and drivers share.
    SharedSemaphore,
}

/// The way in which a breach is found.
pub(crate) enum Test {
    /// By a register access.
    Access(Moment, fn(&Facts<'_>) -> bool),
    /// By a packet whose last descriptor the card has fetched.
    Packet(fn(&Packet<'_>) -> bool),
    /// By the model itself, see [`super::Judge::note`].
    Noted,
}

/// A rule.
pub struct Rule {
    /// Its name in reports and in the table of exceptions.
    pub id: &'static str,
    /// The place that demands it.
    pub source: &'static str,
    /// The demand.
    pub about: &'static str,
    pub(crate) test: Test,
}

const fn on(
    moment: Moment,
    id: &'static str,
    source: &'static str,
    about: &'static str,
    breach: fn(&Facts<'_>) -> bool,
) -> Rule {
    Rule {
        id,
        source,
        about,
        test: Test::Access(moment, breach),
    }
}

const fn packet(
    id: &'static str,
    source: &'static str,
    about: &'static str,
    breach: fn(&Packet<'_>) -> bool,
) -> Rule {
    Rule {
        id,
        source,
        about,
        test: Test::Packet(breach),
    }
}

const fn noted(id: &'static str, source: &'static str, about: &'static str) -> Rule {
    Rule {
        id,
        source,
        about,
        test: Test::Noted,
    }
}

/// Bits of a register that are always read as 0.
const fn reserved(at: u32) -> u32 {
    match at {
        offset::CTRL => 0xf800_0000,
        offset::FCTRL => 0xffff_0000,
        offset::HLREG0 => 0xe000_0000,
        _ => 0,
    }
}

/// DMA was attempted although the function is no bus master.
pub(crate) const DMA_MASTER: &str = "dma-master";
/// DMA was attempted, or a register used, although the function sleeps.
pub(crate) const POWER_STATE: &str = "power-state";
/// The function is told to wake the machine, and kept from it.
pub(crate) const WAKE_UP: &str = "wake-up";
/// DMA to an address that is not in memory.
pub(crate) const DMA_OUTSIDE: &str = "dma-outside";
/// A receive buffer that the card may leave.
pub(crate) const RX_HALF: &str = "rx-half";
/// Packets outlive a link loss.
pub(crate) const LINK_LOSS: &str = "link-loss-queued";
/// A frame that the receiver does not see in loopback.
pub(crate) const LOOPBACK_LINK: &str = "loopback-link";
/// An access that is not one aligned 32-bit word.
pub(crate) const ACCESS_SIZE: &str = "access-size";
/// A descriptor of a kind that does not exist.
pub(crate) const TX_TYPE: &str = "tx-type";
/// A status report is asked for in the middle of a packet.
pub(crate) const TX_RS: &str = "tx-rs-eop";

/// Every rule.
pub const RULES: &[Rule] = &[
    // Register accesses as such.
    on(
        Moment::Read,
        "unknown-read",
        "8.2.2",
        "only registers that exist are read",
        |f| f.entry.is_none(),
    ),
    on(
        Moment::Write,
        "unknown-write",
        "8.2.2",
        "only registers that exist are written",
        |f| f.entry.is_none(),
    ),
    on(
        Moment::Write,
        "read-only",
        "8.2.2",
        "registers that cannot be written are not written",
        |f| f.is_read_only(),
    ),
    on(
        Moment::Write,
        "reserved-bits",
        "8.2.3.1.1, 8.2.3.7.1, 8.2.3.22.8",
        "reserved bits of CTRL, FCTRL and HLREG0 are written as they are read",
        |f| f.value & reserved(f.at) != 0,
    ),
    noted(
        ACCESS_SIZE,
        "8.1.2",
        "registers are accessed as aligned words of 32 bits",
    ),
    // Reset, order of initialisation.
    on(
        Moment::Write,
        "reset-wait",
        "4.2.1.6",
        "no register is written before CTRL.RST has \
        been read as 0 after a reset",
        |f| f.port.resetting,
    ),
    on(
        Moment::Reset,
        "reset-master",
        "5.2.5.3.2",
        "CTRL.GIO_DIS is set, and STATUS.GIO read, \
        before a card that may access memory is reset",
        |f| f.port.active && !(f.gio_dis && f.port.master_polled),
    ),
    on(
        Moment::Reset,
        "reset-kind",
        "4.2.1.7; C ixgbe_82599.c:973",
        "a reset is one of the device (CTRL.RST) or of the link as well (CTRL.LRST), not both",
        |f| f.resets_twofold(),
    ),
    on(
        Moment::Reset,
        "reset-flush",
        "SU clarification 9; C ixgbe_common.c:3824",
        "if STATUS.GIO \
        stays set, HLREG0.LPBK and GCR_EXT.Buffers_Clear flush transmit before the reset",
        |f| f.port.master_stuck && !f.port.flushed,
    ),
    on(
        Moment::Write,
        "reset-twice",
        "5.2.5.3.2",
        "if STATUS.GIO stays set, the card is reset \
        twice before it is used",
        |f| f.port.owes_reset && f.is_configuration(),
    ),
    on(
        Moment::EepromRead,
        "eeprom-auto-read",
        "4.6.3",
        "EEC.AUTO_RD is read as 1 before the \
        EEPROM is used",
        |f| !f.port.auto_read_seen,
    ),
    on(
        Moment::ReceiveEnable,
        "dma-init",
        "4.6.3",
        "RDRXCTL.DMAIDONE is read as 1 before the \
        receiver is enabled",
        |f| !f.port.dma_init_seen,
    ),
    // Rings.
    on(
        Moment::RingWrite,
        "ring-enabled",
        "4.6.7.1, 4.6.8.1",
        "base, length, head, buffer sizes and coalescing of a ring are written only while its \
        queue is disabled",
        |f| f.was_asked_to_run() && f.changes_ring(),
    ),
    on(
        Moment::TailWrite,
        "tail-disabled",
        "4.6.7.1, 4.6.8.1",
        "a tail moves only after its \
        queue was enabled",
        |f| f.moves_tail() && !f.was_asked_to_run(),
    ),
    on(
        Moment::TailWrite,
        "enable-poll",
        "4.6.7.1, 4.6.8.1",
        "a tail moves only after ENABLE \
        was read as 1",
        |f| f.moves_tail() && f.stage() == Stage::Enabling,
    ),
    on(
        Moment::TailWrite,
        "tail-range",
        "8.2.3.8.5, 8.2.3.9.8",
        "a tail lies within its ring",
        |f| f.was_asked_to_run() && f.value >= f.ring_descriptors(),
    ),
    on(
        Moment::QueueEnable,
        "ring-base",
        "8.2.3.8.1, 8.2.3.9.5",
        "the base of a ring is a \
        multiple of 128",
        |f| f.ring_base() & 0x7f != 0,
    ),
    on(
        Moment::QueueEnable,
        "ring-length",
        "8.2.3.8.3, 8.2.3.9.7",
        "the length of a ring is a \
        multiple of 128 bytes, and not 0",
        |f| !f.ring_length_is_good(),
    ),
    on(
        Moment::QueueEnable,
        "ring-program",
        "4.6.7.1, 4.6.8.1",
        "base and length are written \
        after a reset, before the queue is enabled",
        |f| f.stage() == Stage::Reset,
    ),
    on(
        Moment::QueueEnable,
        "drain-wait",
        "4.6.7.1.2, 4.6.8.2",
        "ENABLE is read as 0 before a \
        queue is enabled again",
        |f| f.stage() == Stage::Draining,
    ),
    on(
        Moment::QueueEnable,
        "enable-master",
        "5.2.5.3",
        "a queue is enabled only while the \
        function is bus master",
        |f| !f.master,
    ),
    on(
        Moment::QueueEnable,
        "dmatxctl-te",
        "4.6.8",
        "DMATXCTL.TE is set before a transmit queue \
        is enabled",
        |f| f.is_transmit() && !f.regs.get::<Dmatxctl>().te(),
    ),
    on(
        Moment::QueueEnable,
        "rate-limiter",
        "C ixgbe_common.c:341",
        "the rate limiter of a transmit queue is cleared after a reset, before the queue is enabled",
        |f| f.is_transmit() && !f.is_unlimited(),
    ),
    on(
        Moment::QueueEnable,
        "srrctl",
        "8.2.3.8.7",
        "BSIZEPACKET is not 0, and BSIZEHEADER not 0 \
        with advanced descriptors",
        |f| !f.is_transmit() && !f.buffer_sizes_are_good(),
    ),
    on(
        Moment::QueueEnable,
        "rsc-buffers",
        "7.11, 8.2.3.8.13",
        "a queue that coalesces has advanced descriptors, BSIZEHEADER is 128 bytes at least, and \
        MAXDESC buffers have less than 64 KiB together",
        |f| f.coalesces() && !f.joined_packets_fit(),
    ),
    on(
        Moment::QueueEnable,
        "rsc-crc",
        "7.11, 8.2.3.8.8",
        "RDRXCTL.CRCSTRIP is set before a queue that coalesces is enabled",
        |f| f.coalesces() && !f.regs.get::<Rdrxctl>().crcstrip(),
    ),
    on(
        Moment::InterruptEnable,
        "rsc-moderation",
        "7.3.2.1.1, 7.11; C ixgbe_ethtool.c:2556",
        "the interrupt of a queue that coalesces has an interval: packets end with it",
        |f| f.coalesces_without_interval(),
    ),
    // Receiver.
    on(
        Moment::ReceiveEnable,
        "secrx-ready",
        "4.6.7",
        "RXCTRL.RXEN is set only after \
        SECRXCTRL.RX_DIS was set and SECRXSTAT.SECRX_RDY read as 1",
        |f| !f.port.secrx_polled,
    ),
    on(
        Moment::ReceiveEnable,
        "crc-strip",
        "8.2.3.8.8, 8.2.3.22.8",
        "HLREG0.RXCRCSTRP and \
        RDRXCTL.CRCSTRIP agree",
        |f| f.regs.get::<Hlreg0>().rxcrcstrp() != f.regs.get::<Rdrxctl>().crcstrip(),
    ),
    on(
        Moment::ReceiveEnable,
        "rdrxctl",
        "8.2.3.8.8",
        "RSCFRSTSIZE is 0, RSCACKC and FCOE_WRFIX \
        are 1",
        |f| {
            let rdrxctl = f.regs.get::<Rdrxctl>();
            rdrxctl.rscfrstsize().value() != 0 || !rdrxctl.rscackc() || !rdrxctl.fcoe_wrfix()
        },
    ),
    on(
        Moment::ReceiveEnable,
        "tables",
        "4.6.7",
        "all words of tables that a reset leaves \
        undefined are written before the receiver is enabled",
        |f| f.unwritten_table(),
    ),
    on(
        Moment::ReceiveEnable,
        "packet-buffers",
        "4.6.11.3.4",
        "the packet buffers have no more memory than there is: 512 KiB to receive, with that of \
        the flow director, and 160 KiB to transmit",
        |f| f.packet_buffers_overlap(),
    ),
    on(
        Moment::Write,
        "arbiter",
        "C ixgbe_main.c:4005",
        "MTQC is written only while RTTDCS.ARBDIS is set",
        |f| f.at == offset::MTQC && !f.regs.get::<Rttdcs>().arbdis(),
    ),
    on(
        Moment::ReceiveEnable,
        "rss-hash",
        "8.2.3.7.5; C ixgbe_main.c:4375",
        "RXCSUM.PCSD is set with RSS: without it descriptors hold a checksum instead of the hash",
        |f| f.regs.get::<Mrqc>().mrqe() == Mrqc::RSS && !f.regs.get::<Rxcsum>().pcsd(),
    ),
    // Flow director.
    on(
        Moment::Write,
        "fdir-receiver",
        "7.1.2.7, 8.2.3.21.1",
        "the table of the flow director is set up before the receiver is enabled",
        |f| f.sets_up_table() && f.regs.get::<Rxctrl>().rxen(),
    ),
    on(
        Moment::Write,
        "fdir-init",
        "8.2.3.21.1",
        "FDIRCTRL.INIT_DONE is read as 1 before a command is written to FDIRCMD",
        |f| f.commands() && !f.port.table_seen,
    ),
    on(
        Moment::Write,
        "fdir-command",
        "7.1.2.7, 8.2.3.21",
        "a command to the flow director, and its filter, are written when FDIRCMD has said that \
        the last one is done",
        |f| f.commands_twice(),
    ),
    on(
        Moment::Write,
        "fdir-masks",
        "7.1.2.7, 8.2.3.21",
        "the masks of the flow director do not change while there are filters",
        |f| f.masks_filters(),
    ),
    // Firmware.
    on(
        Moment::InterruptEnable,
        "driver-loaded",
        "C ixgbe_main.c:6217",
        "CTRL_EXT.DRV_LOAD tells the firmware of a driver before interrupts are enabled",
        |f| !f.regs.get::<CtrlExt>().drv_load(),
    ),
    on(
        Moment::Write,
        "unload-live",
        "C ixgbe_main.c:7643",
        "CTRL_EXT.DRV_LOAD is cleared only when the card no longer accesses memory",
        |f| f.unloads() && f.port.active && !f.gio_dis,
    ),
    // Interrupts.
    on(
        Moment::InterruptEnable,
        "auto-clear",
        "7.3.1.4",
        "a vector whose message masks it by EIAM_EX has its cause cleared by EIAC",
        |f| f.masks_without_clearing(),
    ),
    on(
        Moment::Write,
        "cause-discarded",
        "C ixgbe_main.c:3489",
        "causes of queues are not cleared by EICR while the receiver is enabled: their frames \
        would wait for the next one",
        |f| {
            f.at == offset::EICR
                && Causes::new_with_raw_value(f.value).rtxq() != 0
                && f.regs.get::<Rxctrl>().rxen()
        },
    ),
    on(
        Moment::InterruptEnable,
        "gpie-msix",
        "7.3.1.3.2",
        "GPIE.Multiple_MSIX is set before \
        interrupts are enabled",
        |f| !f.regs.get::<Gpie>().multiple_msix(),
    ),
    // Semaphores.
    on(
        Moment::SharedSemaphore,
        "semaphore",
        "10.5.4",
        "SW_FW_SYNC is written only by the owner \
        of SWSM.SMBI and SWSM.SWESMBI",
        |f| !f.port.owns_semaphores(),
    ),
    on(
        Moment::SharedSemaphore,
        "semaphore-taken",
        "10.5.4",
        "a resource of SW_FW_SYNC is taken \
        only while its owner bits are clear",
        |f| f.port.takes_taken(f.regs, f.value),
    ),
    on(
        Moment::Write,
        "i2c-semaphore",
        "10.5.4; C ixgbe_phy.c, ixgbe_read_i2c_byte_generic_int()",
        "the lines of I2CCTL are moved only by the owner of the bus (SW_FW_SYNC, PHY)",
        |f| f.at == offset::I2CCTL && !f.owns_bus(),
    ),
    on(
        Moment::Write,
        "corectl-semaphore",
        "10.5.4; C ixgbe_82599.c:119",
        "CORECTL is written only by the owner of the MAC's registers (SW_FW_SYNC)",
        |f| f.at == offset::CORECTL && !f.owns_mac(),
    ),
    on(
        Moment::Write,
        "autoc-semaphore",
        "10.5.4; C ixgbe_82599.c:206",
        "if firmware manages the state of the link (LESM), AUTOC is written only by the owner of \
        the MAC's registers (SW_FW_SYNC)",
        |f| f.at == offset::AUTOC && f.device.faults.lesm() && !f.owns_mac(),
    ),
    on(
        Moment::Write,
        "eeprom-busy",
        "8.2.3.2.2",
        "a word of the EEPROM is asked for when the last one was read: EERD holds one",
        |f| f.asks_twice(),
    ),
    // Link.
    on(
        Moment::LinkRestart,
        "link-disabled",
        "8.2.3.22.23",
        "AUTOC2 does not keep the link off \
        when it is restarted",
        |f| f.regs.get::<Autoc2>().link_disable().value() != 0,
    ),
    on(
        Moment::LinkRestart,
        "module-init",
        "C ixgbe_82599.c:101",
        "the settings of the EEPROM for a module are written to CORECTL before the link is started",
        |f| f.device.has_cage() && f.device.lacks_set_up(),
    ),
    on(
        Moment::LinkRestart,
        "laser-time",
        "C ixgbe_82599.c:580",
        "the link is not started in the 100 ms that a laser takes to light up",
        |f| f.lights_up(),
    ),
    on(
        Moment::Write,
        "link-veto",
        "C ixgbe_phy.c, ixgbe_check_reset_blocked()",
        "AUTOC is not written, the laser not turned off, while firmware forbids it (MMNGC.MNG_VETO)",
        |f| f.device.faults.veto() && (f.at == offset::AUTOC || f.darkens()),
    ),
    noted(
        LINK_LOSS,
        "C ixgbe_main.c:8270",
        "packets that were queued when the link was lost are \
        gone when it is back: the card is reset meanwhile",
    ),
    noted(
        LOOPBACK_LINK,
        "C ixgbe_ethtool.c, ixgbe_setup_loopback_test()",
        "in loopback with the receiver enabled, the link is up, or forced (AUTOC.FLU), \
        when frames are sent",
    ),
    // Memory.
    noted(
        DMA_MASTER,
        "5.2.5.3",
        "descriptors are handed over only while the function is bus master",
    ),
    noted(POWER_STATE, "5.2.2", "registers are used only in D0"),
    noted(
        WAKE_UP,
        "5.3.2; C ixgbe_main.c, __ixgbe_shutdown()",
        "a function that is put to sleep with PME_En set can be woken: WUFC has a filter, the link \
        stays on, and WUS has nothing from the last time",
    ),
    noted(
        DMA_OUTSIDE,
        "7.1.5, 7.2.3",
        "descriptors and rings name memory",
    ),
    noted(
        RX_HALF,
        "C ixgbe_main.c:4755",
        "a receive buffer in the second half of a page ends with the page: by BSIZEPACKET, or by \
        the frame limit",
    ),
    // Transmit descriptors.
    noted(TX_TYPE, "7.2.3.2.2", "DTYP is that of a context or of data"),
    noted(TX_RS, "7.2.3.2.4", "RS is set only together with EOP"),
    packet(
        "tx-ifcs",
        "7.2.3.2.4",
        "IFCS and HLREG0.TXCRCEN are set: a frame needs its check sequence",
        |p| p.advanced() && !(p.appends_fcs && p.first.ifcs()),
    ),
    packet(
        "tx-padding",
        "8.2.3.22.8",
        "HLREG0.TXPADEN is set when a frame is shorter than the shortest one",
        |p| !p.pads && p.data.len() < crate::packet::MIN_FRAME,
    ),
    packet(
        "tx-paylen",
        "7.2.3.2.4",
        "PAYLEN is the sum of DTALEN, less the headers with TSE",
        |p| p.advanced() && p.paylen() != p.data.len(),
    ),
    packet(
        "tx-descriptors",
        "7.2.1.1",
        "a packet has at most 40 descriptors",
        |p| p.descriptors > 40,
    ),
    packet(
        "tx-minimum",
        "7.2.1.1",
        "a packet has at least 17 bytes",
        |p| p.data.len() < 17,
    ),
    packet(
        "tx-maximum",
        "7.2.1.1",
        "a packet that is not cut has at most 15.5 KiB",
        |p| !p.first.tse() && p.data.len() > crate::tx::MAX_FRAME,
    ),
    packet(
        "tx-context",
        "7.2.3.2.3",
        "an offload has a context: IDX names one that was sent",
        |p| p.advanced() && p.needs_context() && p.context.is_none(),
    ),
    packet(
        "tx-cc",
        "7.2.3.2.4",
        "CC is set only with a context that was sent",
        |p| p.advanced() && p.first.cc() && p.context.is_none(),
    ),
    packet(
        "tx-context-headers",
        "7.2.3.2.3",
        "MACLEN and IPLEN of the context are those of the \
        packet",
        |p| p.offloads_checksum() && !p.headers_agree(),
    ),
    packet(
        "tx-context-type",
        "7.2.3.2.3",
        "IPV4 and L4T of the context are those of the packet",
        |p| p.offloads_checksum() && !p.types_agree(),
    ),
    // Segmentation.
    packet(
        "tx-tse-mss",
        "7.2.3.2.3",
        "with TSE, MSS is not 0, and MACLEN, IPLEN, L4LEN and MSS are within a frame",
        |p| !p.segments_fit(),
    ),
    packet(
        "tx-tse-sums",
        "7.2.3.2.4; C ixgbe_main.c:8786",
        "with TSE, TXSM is set, and IXSM for IPv4",
        |p| !p.segments_are_summed(),
    ),
    packet(
        "tx-tse-l4len",
        "7.2.3.2.3; C ixgbe_main.c:8803",
        "with TSE, L4LEN of the context is the length of the transport header",
        |p| !p.transport_length_agrees(),
    ),
    packet(
        "tx-tse-fields",
        "C ixgbe_main.c:8780",
        "with TSE, lengths and checksum in the IP header are 0, and the transport checksum is the \
        sum of the pseudo header without a length",
        |p| !p.fields_are_ready(),
    ),
];

/// The rule of this id.
pub fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique() {
        let mut ids: Vec<_> = RULES.iter().map(|rule| rule.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), RULES.len());
        assert!(find("ring-enabled").is_some() && find("no-such-rule").is_none());
    }
}
