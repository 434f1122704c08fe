// SPDX-License-Identifier: GPL-2.0
//! Breaches of drivers that cannot be mended here. They are counted apart, and fail no test.

/// A rule that a driver breaks.
pub struct Exception {
    /// The rule.
    pub rule: &'static str,
    /// The place in the driver.
    pub place: &'static str,
    /// The breach, and why the driver gets away with it.
    pub why: &'static str,
}

/// A driver and its breaches.
pub struct Driver {
    /// The name that `--excuse` takes.
    pub name: &'static str,
    /// The breaches.
    pub exceptions: &'static [Exception],
}

/// All drivers with known breaches.
pub const DRIVERS: &[Driver] = &[
    Driver {
        name: "ixgbe",
        exceptions: &[
            Exception {
                rule: "eeprom-auto-read",
                place: "ixgbe_82599.c:990",
                why: "waits 50 ms after a reset and never looks at EEC.AUTO_RD",
            },
            Exception {
                rule: "dma-init",
                place: "ixgbe_82599.c:990",
                why: "waits 50 ms after a reset and never looks at RDRXCTL.DMAIDONE",
            },
            Exception {
                rule: "fdir-command",
                place: "ixgbe_82599.c:1733",
                why: "does not wait until a filter is removed; by the next command it is",
            },
            Exception {
                rule: "power-state",
                place: "ixgbe_main.c:7537",
                why: "an interface that is closed after shutdown writes CTRL_EXT in D3",
            },
            Exception {
                rule: "dca-rxctrl",
                place: "ixgbe_main.c, ixgbe_configure_rx_ring()",
                why: "leaves the register as it is unless it uses DCA",
            },
            Exception {
                rule: "tx-requests",
                place: "ixgbe_main.c, ixgbe_setup_mtqc()",
                why: "leaves the register as it is",
            },
            Exception {
                rule: "tail-disabled",
                place: "ixgbe_main.c:6716",
                why: "disables the receive queues before it stops the polls, which refill them",
            },
        ],
    },
    // The driver of the tutorial leaves out all that one port on the model does without.
    Driver {
        name: "rust_driver_net",
        exceptions: &[
            Exception {
                rule: "reset-flush",
                place: "driver_net/hw.rs, reset()",
                why: "resets a card whose transactions are pending as any other",
            },
            Exception {
                rule: "reset-twice",
                place: "driver_net/hw.rs, reset()",
                why: "for the same reason",
            },
            Exception {
                rule: "secrx-ready",
                place: "driver_net/hw.rs, start()",
                why: "expects no frames while the receiver starts",
            },
            Exception {
                rule: "rdrxctl",
                place: "driver_net/hw.rs, start()",
                why: "knows only the bit of the frame check sequence",
            },
            Exception {
                rule: "link-disabled",
                place: "driver_net/hw.rs, start()",
                why: "expects an EEPROM that leaves the link on",
            },
            Exception {
                rule: "module-init",
                place: "driver_net/hw.rs, start()",
                why: "expects a module that does with the card's own settings",
            },
            Exception {
                rule: "tables",
                place: "driver_net/hw.rs, start()",
                why: "turns on no filter that has a table",
            },
            Exception {
                rule: "dca-rxctrl",
                place: "driver_net/hw.rs, start()",
                why: "knows nothing of the bit, as ixgbe",
            },
            Exception {
                rule: "tx-requests",
                place: "driver_net/hw.rs, start()",
                why: "does with short requests, as ixgbe",
            },
        ],
    },
];

/// The driver of this name.
pub fn find(name: &str) -> Option<&'static Driver> {
    DRIVERS.iter().find(|driver| driver.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::rules;

    #[test]
    fn exceptions_are_from_rules() {
        for driver in DRIVERS {
            for exception in driver.exceptions {
                assert!(rules::find(exception.rule).is_some(), "{}", exception.rule);
            }
        }
        assert!(find("ixgbe").is_some() && find("gravity").is_none());
    }
}
