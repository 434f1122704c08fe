// SPDX-License-Identifier: GPL-2.0
//! Tables that a reset leaves undefined: their garbage, and which words the driver has written.

use arbitrary_int::traits::Integer;
use arbitrary_int::u3;

use super::chance::Chance;
use crate::regs::bits::Autoc2;
use crate::regs::file::RegisterFile;
use crate::regs::offset;

struct Table {
    at: u32,
    words: u32,
    /// Used only with RSS.
    rss: bool,
}

const TABLES: &[Table] = &[
    Table {
        at: offset::MTA,
        words: 128,
        rss: false,
    },
    Table {
        at: offset::VFTA,
        words: 128,
        rss: false,
    },
    Table {
        at: offset::UTA,
        words: 128,
        rss: false,
    },
    // The pools of the first receive address; those of others count when the address is valid.
    Table {
        at: offset::MPSAR,
        words: 2,
        rss: false,
    },
    Table {
        at: offset::RETA,
        words: 32,
        rss: true,
    },
    Table {
        at: offset::RSSRK,
        words: 10,
        rss: true,
    },
];

/// Distance between the queues, and the queues, whose bases are undefined after a reset.
const RINGS: &[(u32, u32)] = &[(offset::RDBAL, 64), (offset::TDBAL, 128)];

/// Which words of the tables were written since the last reset.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    written: [[u64; 2]; TABLES.len()],
    /// Transmit queues whose rate limiter is off.
    unlimited: u128,
}

impl Tables {
    /// Fills the tables with garbage, as a reset does.
    pub(crate) fn poison(&mut self, regs: &RegisterFile, chance: &mut Chance) {
        *self = Self::default();
        for table in TABLES {
            for i in 0..table.words {
                regs.store(table.at + 4 * i, chance.word());
            }
        }
        // The EEPROM may keep the link off to save power.
        regs.set(Autoc2::ZERO.with_link_disable(u3::MAX));
        for (base, queues) in RINGS {
            for queue in 0..*queues {
                regs.store(base + queue * offset::QUEUE, chance.word());
                regs.store(base + 4 + queue * offset::QUEUE, chance.word());
            }
        }
    }

    pub(crate) fn write(&mut self, at: u32, value: u32, regs: &RegisterFile) {
        if at == offset::RTTBCNRC {
            // One register for all queues: another one selects the queue.
            let queue = 1 << (regs.load(offset::RTTDQSEL) % 128);
            if value == 0 {
                self.unlimited |= queue;
            } else {
                self.unlimited &= !queue;
            }
        }
        for (table, written) in TABLES.iter().zip(&mut self.written) {
            if (table.at..table.at + 4 * table.words).contains(&at) {
                let word = (at - table.at) / 4;
                written[(word / 64) as usize] |= 1 << (word % 64);
            }
        }
    }

    /// Whether the rate limiter of a transmit queue was switched off since the last reset.
    pub(crate) fn is_unlimited(&self, queue: u32) -> bool {
        self.unlimited >> (queue % 128) & 1 != 0
    }

    /// Offset of the first word in use that was not written.
    pub(crate) fn first_unwritten(&self, rss: bool) -> Option<u32> {
        TABLES
            .iter()
            .zip(&self.written)
            .filter(|(table, _)| rss || !table.rss)
            .find_map(|(table, written)| {
                (0..table.words)
                    .find(|i| written[(i / 64) as usize] >> (i % 64) & 1 == 0)
                    .map(|i| table.at + 4 * i)
            })
    }
}
