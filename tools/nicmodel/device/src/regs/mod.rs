// SPDX-License-Identifier: GPL-2.0
//! The registers: their list ([`map`]), their places, and the words that hold them.

pub mod bits;
pub mod file;
pub mod map;
pub mod ptp;

use std::sync::OnceLock;

pub use self::map::offset;

/// The effect of an access to a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads back the written value, without further behaviour.
    Memory,
    /// Reads back the written value; the packet engine acts on it.
    Control,
    /// As `Control`, and the write wakes the engine.
    Doorbell,
    /// Writes are ignored.
    ReadOnly,
    /// A 32-bit counter that a read clears.
    Counter,
    /// Low half of wide counter `n`; a read takes the whole counter.
    WideLow(u16),
    /// High half of wide counter `n`, as of the last read of the low half.
    WideHigh(u16),
    /// Behaviour of its own.
    Effect,
}

/// A register, or an array of them at equal distances.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Name as in the data sheet.
    pub name: &'static str,
    /// Offset of the first in BAR 0.
    pub offset: u32,
    /// How many there are.
    pub count: u32,
    /// Distance between two of them.
    pub stride: u32,
    /// Value after reset.
    pub reset: u32,
    /// The effect of an access.
    pub access: Access,
}

/// Finds the entry of a register by its offset.
#[derive(Debug)]
pub struct Index(Vec<u16>);

const NONE: u16 = u16::MAX;

impl Index {
    /// The index of [`map::REGISTERS`], built once.
    pub fn get() -> &'static Self {
        static INDEX: OnceLock<Index> = OnceLock::new();
        INDEX.get_or_init(Self::build)
    }

    fn build() -> Self {
        let mut index = vec![NONE; file::WORDS];
        for (number, entry) in map::REGISTERS.iter().enumerate() {
            for i in 0..entry.count {
                let word = ((entry.offset + i * entry.stride) / 4) as usize;
                if let Some(slot) = index.get_mut(word) {
                    // The first entry wins: special registers stand before the arrays around.
                    if *slot == NONE {
                        *slot = number as u16;
                    }
                }
            }
        }
        Self(index)
    }

    /// The entry that covers the word at `offset`, and which of its registers that is.
    pub fn lookup(&self, offset: u32) -> Option<(&'static Entry, u32)> {
        let number = *self.0.get((offset / 4) as usize)?;
        let entry = map::REGISTERS.get(usize::from(number))?;
        Some((entry, (offset - entry.offset) / entry.stride.max(1)))
    }
}

/// The register of a name, or the array.
pub fn find(name: &str) -> Option<&'static Entry> {
    map::REGISTERS.iter().find(|entry| entry.name == name)
}

/// Name of the register at `offset`, or its number where there is none.
pub fn name(offset: u32) -> String {
    match Index::get().lookup(offset) {
        Some((entry, _)) if entry.count == 1 => entry.name.to_owned(),
        Some((entry, i)) => format!("{}[{i}]", entry.name),
        None => format!("{offset:#07x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn entries_lie_in_the_bar_and_do_not_collide() {
        let mut seen: HashMap<u32, &str> = HashMap::new();
        for entry in map::REGISTERS {
            for i in 0..entry.count {
                let offset = entry.offset + i * entry.stride;
                assert_eq!(offset % 4, 0, "{} is not aligned", entry.name);
                assert!(
                    ((offset / 4) as usize) < file::WORDS,
                    "{} is outside",
                    entry.name
                );
                if let Some(other) = seen.insert(offset, entry.name) {
                    panic!("{} and {other} share {offset:#x}", entry.name);
                }
            }
        }
    }

    #[test]
    fn lookup_finds_the_element_of_an_array() {
        let (entry, i) = Index::get().lookup(offset::RAL + 5 * 8).expect("RAL[5]");
        assert_eq!((entry.name, i), ("RAL", 5));
        assert_eq!(name(offset::TDT + 3 * 0x40), "TDT[3]");
        assert_eq!(name(0x1fffc), "0x1fffc");
    }
}
