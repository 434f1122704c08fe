// SPDX-License-Identifier: GPL-2.0
//! The public sources that show the fact behind each rule: a second reading, by a reader who had
//! seen no more of a rule than its id and section.
//!
//! A number is a section: of the datasheet of the X550 (333369-009), whose chapters 4 and 7 are
//! close to those of the 82599's; or of the 82599's own where a driver quotes it, as TinyNF's
//! (c/ixgbe/device.h) and ixy (src/driver/ixgbe.c) do. Pages are those of the 82598's datasheet.
//! "SU" is the Specification Update of the 82599, "e10k.dev" Barrelfish's description of its
//! registers. "C" and "DPDK" are functions of those drivers.

use super::rules::Rule;

/// The source that shows a rule, by its id; none that could be found shows one that is unverified.
const WITNESSES: &[(&str, Option<&str>)] = &[
    ("unknown-read", None),
    ("unknown-write", None),
    ("read-only", Some("e10k.dev, \"ro\"")),
    (
        "reserved-bits",
        Some("e10k.dev, \"rsvd\" of ctrl, fctrl, hlreg0"),
    ),
    (
        "access-size",
        Some("BareMetal i8259x.asm; 64 bits: X550 7.1.3.6.13"),
    ),
    (
        "reset-wait",
        Some("X550 4.6.3.2; 82599 8.2.3.1.1 in TinyNF"),
    ),
    (
        "reset-master",
        Some("X550 5.2.4.3.2; 82599 4.2.1.6.1 in TinyNF"),
    ),
    ("reset-kind", Some("C ixgbe_reset_hw_82599()")),
    (
        "reset-flush",
        Some("SU clarification 9; C ixgbe_clear_tx_pending()"),
    ),
    ("reset-twice", Some("X550 5.2.4.3.2; SU clarification 9")),
    (
        "eeprom-auto-read",
        Some("X550 4.6.3; 82599 4.6.3 in TinyNF"),
    ),
    ("dma-init", Some("X550 4.6.3; 82599 4.6.3 in TinyNF")),
    ("ring-enabled", Some("X550 4.6.7.2, 4.6.8.1")),
    ("tail-disabled", Some("X550 4.6.7.1, 4.6.8.1")),
    ("enable-poll", Some("X550 4.6.7.1, 4.6.8.1")),
    ("tail-range", Some("X550 7.2.3.3")),
    ("tail-packet", Some("X550 7.2.3.3, 7.2.3.4")),
    ("ring-base", Some("X550 7.2.3.3; 82599 8.2.3.8.1 in TinyNF")),
    (
        "ring-length",
        Some("X550 7.2.3.3; 82599 8.2.3.9.7 in TinyNF"),
    ),
    ("ring-program", Some("X550 4.6.7.1, 4.6.8.1")),
    ("drain-wait", Some("X550 4.6.7.1.1")),
    ("enable-master", Some("X550 5.2.4.3.2")),
    ("dmatxctl-te", Some("X550 4.6.8; C ixgbe_configure_tx()")),
    ("rate-limiter", Some("C and DPDK ixgbe_start_hw_gen2()")),
    (
        "tx-requests",
        Some("X550 4.6.11.3.4; 82599 4.6.11.3.4 in TinyNF"),
    ),
    ("dca-rxctrl", Some("82599 4.6.7, 8.2.3.11.1 in TinyNF")),
    ("srrctl", Some("82599 8.2.3.8.7, 7.1.10 in TinyNF")),
    (
        "rsc-buffers",
        Some("X550 4.6.7.2; DPDK ixgbe_get_rscctl_maxdesc()"),
    ),
    ("rsc-crc", Some("X550 4.6.7.2.1; DPDK ixgbe_set_rsc()")),
    ("rsc-moderation", Some("X550 4.6.7.2.2, 7.3.2.1.1")),
    (
        "secrx-ready",
        Some("82599 4.6.7 in TinyNF; C ixgbe_enable_rx_dma_82599()"),
    ),
    ("crc-strip", Some("82599 8.2.3.8.8 in TinyNF")),
    (
        "rdrxctl",
        Some("82599 8.2.3.8.8 in TinyNF; e10k.dev, \"mbz\", \"mb1\""),
    ),
    ("tables", Some("X550 4.6.7; 82599 4.6.7 in TinyNF")),
    (
        "packet-buffers",
        Some("X550 7.1.3.6.5; 82599 4.6.11.3.4 in TinyNF"),
    ),
    ("arbiter", Some("X550 7.2.1.2.1; C ixgbe_setup_mtqc()")),
    ("rss-hash", Some("C ixgbe_setup_mrqc()")),
    ("fdir-receiver", Some("C, order in ixgbe_configure()")),
    ("fdir-init", Some("X550 7.1.3.6.11")),
    (
        "fdir-command",
        Some("X550 7.1.3.6.10; C ixgbe_fdir_check_cmd_complete()"),
    ),
    ("fdir-masks", Some("C ixgbe_add_ethtool_fdir_entry()")),
    ("driver-loaded", Some("C ixgbe_up_complete()")),
    ("unload-live", Some("C __ixgbe_shutdown()")),
    ("auto-clear", Some("X550 7.3.1.6; 82599 4.6.6.2 in ixy")),
    ("cause-discarded", Some("C ixgbe_msix_other()")),
    ("gpie-msix", Some("X550 7.3")),
    ("semaphore", Some("X550 11.8.4.1")),
    ("semaphore-taken", Some("X550 11.8.4.1")),
    (
        "i2c-semaphore",
        Some("X550 11.8.4; C ixgbe_read_i2c_byte_generic_int()"),
    ),
    (
        "corectl-semaphore",
        Some("C ixgbe_setup_sfp_modules_82599()"),
    ),
    ("autoc-semaphore", Some("C prot_autoc_write_82599()")),
    ("eeprom-busy", Some("C ixgbe_read_eerd_buffer_generic()")),
    ("link-disabled", Some("C ixgbe_reset_hw_82599()")),
    ("module-init", Some("C ixgbe_setup_sfp_modules_82599()")),
    (
        "laser-time",
        Some("C ixgbe_enable_tx_laser_multispeed_fiber()"),
    ),
    ("link-veto", Some("C ixgbe_check_reset_blocked()")),
    ("link-loss-queued", Some("C ixgbe_watchdog_flush_tx()")),
    ("loopback-link", Some("C ixgbe_setup_loopback_test()")),
    ("dma-master", Some("X550 5.2.4.3.2")),
    ("power-state", Some("X550 5.2.4.3")),
    ("wake-up", Some("82598 page 150; C __ixgbe_shutdown()")),
    ("dma-outside", Some("X550 7.2.3.2.4")),
    ("rx-half", Some("C ixgbe_set_rx_buffer_len()")),
    ("tx-type", Some("X550 7.2.3.1")),
    ("tx-rs-eop", Some("X550 7.2.3.2.2")),
    ("tx-ifcs", Some("X550 7.2.3.2.4")),
    ("tx-padding", Some("X550 7.2.3.2.4")),
    ("tx-paylen", Some("X550 7.2.3.2.4")),
    (
        "tx-buffer",
        Some("X550 7.2.3.2.4; FreeBSD isc_tx_maxsegsize"),
    ),
    (
        "tx-descriptors",
        Some("X550 7.2.1.1; DPDK ixgbe_prep_pkts()"),
    ),
    (
        "tx-reports",
        Some("X550 7.2.3.5.1; DPDK ixgbe_dev_tx_queue_setup()"),
    ),
    ("tx-minimum", Some("X550 7.2.3.2.4")),
    ("tx-maximum", Some("X550 7.2.3.2.4")),
    ("tx-context", Some("X550 7.2.2")),
    ("tx-cc", Some("X550 7.2.3.2.4")),
    ("tx-context-headers", Some("X550 7.2.3.2.3; 82598 page 249")),
    ("tx-context-type", Some("X550 7.2.3.2.3 f.; 82598 page 253")),
    ("tx-tse-mss", Some("X550 7.2.3.2.3.1; 82598 page 250")),
    ("tx-tse-sums", Some("X550 7.2.3.2.4; 82598 page 253")),
    ("tx-tse-l4len", Some("X550 7.2.3.2.3")),
    ("tx-tse-fields", Some("C ixgbe_tso()")),
];

impl Rule {
    /// The public source that shows it, other than the place that demands it.
    pub fn witness(&self) -> Option<&'static str> {
        WITNESSES
            .iter()
            .find_map(|(id, witness)| (*id == self.id).then_some(*witness))
            .flatten()
    }

    /// The place that demands it, and what shows that it does.
    pub fn sources(&self) -> String {
        match self.witness() {
            Some(witness) => format!("{}; shown by {witness}", self.source),
            None => format!("{}; unverified", self.source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::RULES;
    use super::*;

    #[test]
    fn each_rule_was_read_twice() {
        let mut read: Vec<_> = WITNESSES.iter().map(|(id, _)| *id).collect();
        let mut rules: Vec<_> = RULES.iter().map(|rule| rule.id).collect();
        read.sort_unstable();
        rules.sort_unstable();
        assert_eq!(read, rules);
    }

    #[test]
    fn a_rule_tells_its_sources() {
        let sources = |id| super::super::rules::find(id).map(Rule::sources);
        assert_eq!(
            sources("rss-hash").as_deref(),
            Some("8.2.3.7.5; C ixgbe_main.c:4375; shown by C ixgbe_setup_mrqc()")
        );
        assert_eq!(
            sources("unknown-read").as_deref(),
            Some("8.2.2; unverified")
        );
    }
}
