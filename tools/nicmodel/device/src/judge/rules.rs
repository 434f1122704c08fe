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

/// Rules that no datasheet has, and that a driver does well without. Those that follow `ixgbe` keep
/// them.
const CONVENTIONS: &[&str] = &[RX_HALF, "driver-loaded", "rate-limiter", "unload-live"];

impl Rule {
    /// Whether it is one of `ixgbe` alone.
    pub fn is_convention(&self) -> bool {
        CONVENTIONS.contains(&self.id)
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

/// Bits of a register that are always read as 0.
const fn reserved(at: u32) -> u32 {
    match at {
        offset::CTRL => 0xf800_0000,
        offset::FCTRL => 0xffff_0000,
        offset::HLREG0 => 0xe000_0000,
        _ => 0,
    }
}

/// Makes the table. The demand of a rule is its comment. A line is the moment of an access at which
/// it is tested, or `Packet`, or `Noted`; its name and source; and the test.
macro_rules! rules {
    ($($(#[doc = $about:literal])+ $kind:ident, $id:expr, $source:literal $(: $test:expr)?;)*) => {
        /// Every rule.
        pub const RULES: &[Rule] = &[$(Rule {
            id: $id,
            source: $source,
            about: concat!($($about),+).trim_ascii_start(),
            test: test!($kind $(, $test)?),
        }),*];
    };
}

macro_rules! test {
    (Noted) => {
        Test::Noted
    };
    (Packet, $breach:expr) => {
        Test::Packet($breach)
    };
    ($moment:ident, $breach:expr) => {
        Test::Access(Moment::$moment, $breach)
    };
}

rules! {
    // Register accesses as such.
    /// only registers that exist are read
    Read, "unknown-read", "8.2.2": |f| f.entry.is_none();
    /// only registers that exist are written
    Write, "unknown-write", "8.2.2": |f| f.entry.is_none();
    /// registers that cannot be written are not written
    Write, "read-only", "8.2.2": |f| f.is_read_only();
    /// reserved bits of CTRL, FCTRL and HLREG0 are written as they are read
    Write, "reserved-bits", "8.2.3.1.1, 8.2.3.7.1, 8.2.3.22.8":
        |f| f.value & reserved(f.at) != 0;
    /// registers are accessed as aligned words of 32 bits
    Noted, ACCESS_SIZE, "8.1.2";

    // Reset, order of initialisation.
    /// no register is written before CTRL.RST has been read as 0 after a reset
    Write, "reset-wait", "4.2.1.6": |f| f.port.resetting;
    /// CTRL.GIO_DIS is set, and STATUS.GIO read, before a card that may access memory is reset
    Reset, "reset-master", "5.2.5.3.2": |f| f.port.active && !(f.gio_dis && f.port.master_polled);
    /// a link that is up is not reset (CTRL.LRST) while firmware holds it (MMNGC.MNG_VETO)
    Reset, "reset-kind", "4.2.1.7; C ixgbe_82599.c:973": |f| f.resets_held_link();
    /// if STATUS.GIO stays set, HLREG0.LPBK and GCR_EXT.Buffers_Clear flush transmit before the
    /// reset
    Reset, "reset-flush", "SU clarification 9; C ixgbe_common.c:3824":
        |f| f.port.master_stuck && !f.port.flushed;
    /// if STATUS.GIO stays set, the card is reset twice before it is used
    Write, "reset-twice", "5.2.5.3.2": |f| f.port.owes_reset && f.is_configuration();
    /// EEC.AUTO_RD is read as 1 before the EEPROM is used
    EepromRead, "eeprom-auto-read", "4.6.3": |f| !f.port.auto_read_seen;
    /// RDRXCTL.DMAIDONE is read as 1 before the receiver is enabled
    ReceiveEnable, "dma-init", "4.6.3": |f| !f.port.dma_init_seen;

    // Rings.
    /// base, length, head, buffer sizes and coalescing of a ring are written only while its queue
    /// is disabled
    RingWrite, "ring-enabled", "4.6.7.1, 4.6.8.1": |f| f.was_asked_to_run() && f.changes_ring();
    /// a tail moves only after its queue was enabled
    TailWrite, "tail-disabled", "4.6.7.1, 4.6.8.1": |f| f.moves_tail() && !f.was_asked_to_run();
    /// a tail moves only after ENABLE was read as 1
    TailWrite, "enable-poll", "4.6.7.1, 4.6.8.1":
        |f| f.moves_tail() && f.stage() == Stage::Enabling;
    /// a tail lies within its ring
    TailWrite, "tail-range", "8.2.3.8.5, 8.2.3.9.8":
        |f| f.was_asked_to_run() && f.value >= f.ring_descriptors();
    /// the tail of a transmit ring is behind the last descriptor of a packet
    TailWrite, "tail-packet", "7.2.3.4": |f| f.was_asked_to_run() && f.splits_packet();
    /// the base of a ring is a multiple of 128
    QueueEnable, "ring-base", "8.2.3.8.1, 8.2.3.9.5": |f| f.ring_base() & 0x7f != 0;
    /// the length of a ring is a multiple of 128 bytes, not 0, and at most 128 KiB
    QueueEnable, "ring-length", "8.2.3.8.3, 8.2.3.9.7": |f| !f.ring_length_is_good();
    /// base and length are written after a reset, before the queue is enabled
    QueueEnable, "ring-program", "4.6.7.1, 4.6.8.1": |f| f.stage() == Stage::Reset;
    /// ENABLE is read as 0 before a queue is enabled again
    QueueEnable, "drain-wait", "4.6.7.1.2, 4.6.8.2": |f| f.stage() == Stage::Draining;
    /// a queue is enabled only while the function is bus master
    QueueEnable, "enable-master", "5.2.5.3": |f| !f.master;
    /// DMATXCTL.TE is set before a transmit queue is enabled
    QueueEnable, "dmatxctl-te", "4.6.8": |f| f.is_transmit() && !f.regs.get::<Dmatxctl>().te();
    /// the rate limiter of a transmit queue is cleared after a reset, before the queue is enabled
    QueueEnable, "rate-limiter", "C ixgbe_common.c:341": |f| f.is_transmit() && !f.is_unlimited();
    /// without DCB and virtual functions, DTXMXSZRQ is 0xfff before a transmit queue is enabled
    QueueEnable, "tx-requests", "4.6.11.3.4": |f| f.is_transmit() && !f.requests_are_long();
    /// bit 12 of DCA_RXCTRL is cleared before a receive queue is enabled
    QueueEnable, "dca-rxctrl", "4.6.7": |f| !f.is_transmit() && f.has_dca_bit();
    /// BSIZEPACKET is 1 to 16, and DESCTYPE that of one buffer, whose headers are not split
    QueueEnable, "srrctl", "8.2.3.8.7": |f| !f.is_transmit() && !f.buffer_sizes_are_good();
    /// a queue that coalesces has advanced descriptors, BSIZEHEADER is 128 bytes at least,
    /// BSIZEPACKET 2 KiB, and MAXDESC buffers have less than 64 KiB together
    QueueEnable, "rsc-buffers", "7.11, 8.2.3.8.13": |f| f.coalesces() && !f.joined_packets_fit();
    /// RDRXCTL.CRCSTRIP is set before a queue that coalesces is enabled
    QueueEnable, "rsc-crc", "7.11, 8.2.3.8.8":
        |f| f.coalesces() && !f.regs.get::<Rdrxctl>().crcstrip();
    /// the interrupt of a queue that coalesces has an interval, with which packets end, of more than
    /// GPIE.RSC_DELAY
    InterruptEnable, "rsc-moderation", "7.3.2.1.1, 7.11; C ixgbe_ethtool.c:2556":
        |f| f.coalesces_without_interval();

    // Receiver.
    /// RXCTRL.RXEN is set only after SECRXCTRL.RX_DIS was set and SECRXSTAT.SECRX_RDY read as 1
    ReceiveEnable, "secrx-ready", "4.6.7": |f| !f.port.secrx_polled;
    /// HLREG0.RXCRCSTRP and RDRXCTL.CRCSTRIP agree
    ReceiveEnable, "crc-strip", "8.2.3.8.8, 8.2.3.22.8":
        |f| f.regs.get::<Hlreg0>().rxcrcstrp() != f.regs.get::<Rdrxctl>().crcstrip();
    /// RSCFRSTSIZE is 0, RSCACKC and FCOE_WRFIX are 1
    ReceiveEnable, "rdrxctl", "8.2.3.8.8": |f| {
        let rdrxctl = f.regs.get::<Rdrxctl>();
        rdrxctl.rscfrstsize().value() != 0 || !rdrxctl.rscackc() || !rdrxctl.fcoe_wrfix()
    };
    /// all words of tables that a reset leaves undefined are written before the receiver is enabled
    ReceiveEnable, "tables", "4.6.7": |f| f.unwritten_table();
    /// the packet buffers have no more memory than there is: 512 KiB to receive, with that of the
    /// flow director, and 160 KiB to transmit
    ReceiveEnable, "packet-buffers", "4.6.11.3.4": |f| f.packet_buffers_overlap();
    /// MTQC is written only while RTTDCS.ARBDIS is set
    Write, "arbiter", "C ixgbe_main.c:4005":
        |f| f.at == offset::MTQC && !f.regs.get::<Rttdcs>().arbdis();
    /// RXCSUM.PCSD is set with RSS: without it descriptors hold a checksum instead of the hash
    ReceiveEnable, "rss-hash", "8.2.3.7.5; C ixgbe_main.c:4375":
        |f| f.regs.get::<Mrqc>().mrqe() == Mrqc::RSS && !f.regs.get::<Rxcsum>().pcsd();

    // Flow director.
    /// the table of the flow director is set up before the receiver is enabled
    Write, "fdir-receiver", "7.1.2.7, 8.2.3.21.1":
        |f| f.sets_up_table() && f.regs.get::<Rxctrl>().rxen();
    /// FDIRCTRL.INIT_DONE is read as 1 before a command is written to FDIRCMD
    Write, "fdir-init", "8.2.3.21.1": |f| f.commands() && !f.port.table_seen;
    /// a command to the flow director, and its filter, are written when FDIRCMD has said that the
    /// last one is done
    Write, "fdir-command", "7.1.2.7, 8.2.3.21": |f| f.commands_twice();
    /// the masks of the flow director do not change while there are filters
    Write, "fdir-masks", "7.1.2.7, 8.2.3.21": |f| f.masks_filters();

    // Firmware.
    /// CTRL_EXT.DRV_LOAD tells the firmware of a driver before interrupts are enabled
    InterruptEnable, "driver-loaded", "C ixgbe_main.c:6217":
        |f| !f.regs.get::<CtrlExt>().drv_load();
    /// CTRL_EXT.DRV_LOAD is cleared only when the card no longer accesses memory
    Write, "unload-live", "C ixgbe_main.c:7643": |f| f.unloads() && f.port.active && !f.gio_dis;

    // Interrupts.
    /// a vector whose message masks it by EIAM_EX has its cause cleared by EIAC, which clears no
    /// cause but those of queues and of the timer
    InterruptEnable, "auto-clear", "7.3.1.4":
        |f| f.masks_without_clearing() || f.clears_others();
    /// causes of queues are not cleared by EICR while the receiver is enabled: their frames would
    /// wait for the next one
    Write, "cause-discarded", "C ixgbe_main.c:3489": |f| {
        f.at == offset::EICR
            && Causes::new_with_raw_value(f.value).rtxq() != 0
            && f.regs.get::<Rxctrl>().rxen()
    };
    /// with MSI-X, GPIE.Multiple_MSIX is set before interrupts are enabled
    InterruptEnable, "gpie-msix", "7.3.1.3.2":
        |f| f.device.uses_msix() && !f.regs.get::<Gpie>().multiple_msix();

    // Semaphores.
    /// SW_FW_SYNC is written only by the owner of SWSM.SMBI and SWSM.SWESMBI
    SharedSemaphore, "semaphore", "10.5.4": |f| !f.port.owns_semaphores();
    /// a resource of SW_FW_SYNC is taken only while its owner bits are clear
    SharedSemaphore, "semaphore-taken", "10.5.4": |f| f.port.takes_taken(f.regs, f.value);
    /// the lines of I2CCTL are moved only by the owner of the bus (SW_FW_SYNC, PHY)
    Write, "i2c-semaphore", "10.5.4; C ixgbe_phy.c, ixgbe_read_i2c_byte_generic_int()":
        |f| f.at == offset::I2CCTL && !f.owns_bus();
    /// CORECTL is written only by the owner of the MAC's registers (SW_FW_SYNC)
    Write, "corectl-semaphore", "10.5.4; C ixgbe_82599.c:119":
        |f| f.at == offset::CORECTL && !f.owns_mac();
    /// if firmware manages the state of the link (LESM), AUTOC is written only by the owner of the
    /// MAC's registers (SW_FW_SYNC)
    Write, "autoc-semaphore", "10.5.4; C ixgbe_82599.c:206":
        |f| f.at == offset::AUTOC && f.device.faults.lesm() && !f.owns_mac();
    /// a word of the EEPROM is asked for when the last one was read: EERD holds one
    Write, "eeprom-busy", "8.2.3.2.2": |f| f.asks_twice();

    // Link.
    /// AUTOC2 does not keep the link off when it is restarted
    LinkRestart, "link-disabled", "8.2.3.22.23":
        |f| f.regs.get::<Autoc2>().link_disable().value() != 0;
    /// the settings of the EEPROM for a module are written to CORECTL before the link is started,
    /// once one that was exchanged has answered
    LinkRestart, "module-init", "C ixgbe_82599.c:101":
        |f| f.device.has_cage() && f.device.knows_module() && f.device.lacks_set_up();
    /// the link is not started in the 100 ms that a laser takes to light up
    LinkRestart, "laser-time", "C ixgbe_82599.c:580": |f| f.lights_up();
    /// AUTOC is not written, the laser not turned off, while firmware forbids it (MMNGC.MNG_VETO)
    Write, "link-veto", "C ixgbe_phy.c, ixgbe_check_reset_blocked()":
        |f| f.device.faults.veto() && (f.at == offset::AUTOC || f.darkens());
    /// packets that were queued when the link was lost are gone when it is back: the card is reset
    /// meanwhile
    Noted, LINK_LOSS, "C ixgbe_main.c:8270";
    /// in loopback with the receiver enabled, the link is up, or forced (AUTOC.FLU), when frames
    /// are sent
    Noted, LOOPBACK_LINK, "C ixgbe_ethtool.c, ixgbe_setup_loopback_test()";

    // Memory.
    /// descriptors are handed over only while the function is bus master
    Noted, DMA_MASTER, "5.2.5.3";
    /// registers are used only in D0
    Noted, POWER_STATE, "5.2.2";
    /// a function that is put to sleep with PME_En set can be woken: WUFC has a filter, the link
    /// stays on, and WUS has nothing from the last time
    Noted, WAKE_UP, "5.3.2; C ixgbe_main.c, __ixgbe_shutdown()";
    /// descriptors and rings name memory
    Noted, DMA_OUTSIDE, "7.1.5, 7.2.3";
    /// a receive buffer in the second half of a page ends with the page: by BSIZEPACKET, or by the
    /// frame limit
    Noted, RX_HALF, "C ixgbe_main.c:4755";

    // Transmit descriptors.
    /// DTYP is that of a context or of data
    Noted, TX_TYPE, "7.2.3.2.2";
    /// RS is set only together with EOP
    Noted, TX_RS, "7.2.3.2.4";
    /// HLREG0.TXCRCEN is set, and IFCS unless a frame ends with its check sequence
    Packet, "tx-ifcs", "7.2.3.2.4": |p| p.advanced() && !p.has_fcs();
    /// HLREG0.TXPADEN is set when a frame is shorter than the shortest one
    Packet, "tx-padding", "8.2.3.22.8": |p| !p.pads && p.data.len() < crate::packet::MIN_FRAME;
    /// PAYLEN is the sum of DTALEN, less the headers with TSE
    Packet, "tx-paylen", "7.2.3.2.4": |p| p.advanced() && p.paylen() != p.data.len();
    /// a buffer has at most 16 KiB
    Packet, "tx-buffer", "7.2.3.2.4 of the X550; C ixgbe.h:250":
        |p| p.advanced() && p.largest > crate::tx::MAX_BUFFER;
    /// a packet has at most 40 descriptors, less WTHRESH and 2
    Packet, "tx-descriptors", "7.2.1.1": |p| p.descriptors + p.wthresh + 2 > 40;
    /// unless WTHRESH is 0, each packet asks for a report: descriptors are written back by their
    /// number then, whether they ask or not
    Packet, "tx-reports", "7.2.3.5.1": |p| p.wthresh != 0 && !p.reported;
    /// a packet has at least 17 bytes
    Packet, "tx-minimum", "7.2.1.1": |p| p.data.len() < 17;
    /// a packet that is not cut has at most 15.5 KiB
    Packet, "tx-maximum", "7.2.1.1": |p| !p.first.tse() && p.data.len() > crate::tx::MAX_FRAME;
    /// an offload has a context: IDX names one that was sent
    Packet, "tx-context", "7.2.3.2.3": |p| p.advanced() && p.needs_context() && p.context.is_none();
    /// CC is set only with a context that was sent
    Packet, "tx-cc", "7.2.3.2.4": |p| p.advanced() && p.first.cc() && p.context.is_none();
    /// MACLEN and IPLEN of the context are those of the packet
    Packet, "tx-context-headers", "7.2.3.2.3": |p| p.offloads_checksum() && !p.headers_agree();
    /// IPV4 and L4T of the context are those of the packet, and IXSM is set only with IPv4
    Packet, "tx-context-type", "7.2.3.2.3": |p| p.offloads_checksum() && !p.types_agree();

    // Segmentation.
    /// with TSE, MSS is not 0, MACLEN, IPLEN and L4LEN are 512 at most, and with MSS within a frame
    Packet, "tx-tse-mss", "7.2.3.2.3": |p| !p.segments_fit();
    /// with TSE, TXSM is set, and IXSM for IPv4
    Packet, "tx-tse-sums", "7.2.3.2.4; C ixgbe_main.c:8786": |p| !p.segments_are_summed();
    /// with TSE, L4LEN of the context is the length of the transport header
    Packet, "tx-tse-l4len", "7.2.3.2.3; C ixgbe_main.c:8803": |p| !p.transport_length_agrees();
    /// with TSE, lengths and checksum in the IP header are 0, and the transport checksum is the sum
    /// of the pseudo header without a length
    Packet, "tx-tse-fields", "C ixgbe_main.c:8780": |p| !p.fields_are_ready();
}

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
        assert!(CONVENTIONS.iter().all(|id| ids.contains(id)));
    }
}
