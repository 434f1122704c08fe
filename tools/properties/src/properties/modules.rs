// SPDX-License-Identifier: GPL-2.0

//! Modules, and the settings that the EEPROM has for them.

use super::check;
use super::eeprom::{words, Eeprom};
use crate::ixgbe::i2c::Transfer;
use crate::ixgbe::sfp;
use crate::mmio::Bar0;
use crate::pci::Card;
use crate::prelude::{EINVAL, ENXIO, EOPNOTSUPP};
use std::cell::Cell;

const EERD: usize = 0x10014;
const SWSM: usize = 0x10140;
const SW_FW_SYNC: usize = 0x10160;
const CORECTL: usize = 0x14f00;
/// The word of the EEPROM that points to the list of settings.
const SETTINGS: usize = 0x2b;
/// The most words of all lists together.
const MOST: u32 = 2 * 64 + 1024 + 16;

/// A card with a module in its cage, or none.
struct Cage {
    page: [u8; 64],
    is_empty: bool,
    eeprom: Eeprom,
    semaphore: Cell<u32>,
    owners: Cell<u32>,
    settings: Cell<u32>,
}

impl Cage {
    fn new(page: [u8; 64], words: [u16; 256]) -> Self {
        Self {
            page,
            is_empty: false,
            eeprom: Eeprom::new(words),
            semaphore: Cell::new(0),
            owners: Cell::new(0),
            settings: Cell::new(0),
        }
    }
}

impl Card for Cage {
    fn read(&self, at: usize) -> u32 {
        match at {
            EERD => self.eeprom.answer(),
            SWSM => {
                let before = self.semaphore.get();
                self.semaphore.set(before | 1);
                before
            }
            SW_FW_SYNC => self.owners.get(),
            _ => 0,
        }
    }

    fn write(&self, at: usize, value: u32) {
        match at {
            EERD => self.eeprom.start(value),
            SWSM => self.semaphore.set(value),
            SW_FW_SYNC => self.owners.set(value),
            CORECTL => {
                assert_eq!(self.owners.get(), 1 << 3, "the MAC is not ours");
                self.settings.set(self.settings.get() + 1);
            }
            _ => (),
        }
    }

    fn module(&self, at: usize) -> Option<u8> {
        (!self.is_empty).then(|| self.page[at % 64])
    }
}

/// Bytes that make a module, in half of the cases.
fn page(half: [[u8; 32]; 2]) -> [u8; 64] {
    let mut page = [0; 64];

    for (at, byte) in half.as_flattened().iter().enumerate() {
        page[at] = *byte;
    }
    if page[1] & 1 != 0 {
        page[0] = 3;
        // One code at most, as modules have them.
        page[3] &= 0xf0 & page[2];
        page[8] &= 0x0c & page[2];
        page[63] = page[..63]
            .iter()
            .fold(0, |sum, byte| sum.wrapping_add(*byte));
    }
    page
}

fn halves() -> impl proptest::strategy::Strategy<Value = [[u8; 32]; 2]> {
    proptest::array::uniform2(proptest::array::uniform32(0u8..))
}

#[test]
fn a_module_is_one_or_refused() {
    check(halves(), |bytes| {
        let cage = Cage::new(page(bytes), [0; 256]);
        let found = sfp::identify(&Bar0::new(&cage), 0, &mut Transfer::Together);

        match found {
            Ok(module) => {
                assert_eq!(cage.page[0], 3);
                let sum = cage.page[..63]
                    .iter()
                    .fold(0u8, |sum, byte| sum.wrapping_add(*byte));
                assert_eq!(module.is_damaged, sum != cage.page[63]);
                // It goes to the log.
                let name = module.to_string();
                assert!(name
                    .bytes()
                    .all(|byte| byte.is_ascii_graphic() || byte == b' '));
            }
            Err(error) => assert_eq!(error, EOPNOTSUPP),
        }
    });
}

#[test]
fn a_cage_without_a_module_is_told() {
    let cage = Cage {
        is_empty: true,
        ..Cage::new([0; 64], [0; 256])
    };

    assert_eq!(
        sfp::identify(&Bar0::new(&cage), 0, &mut Transfer::Together),
        Err(ENXIO)
    );
    assert!(!sfp::may_be_there(&Bar0::new(&cage), 0));
}

#[test]
fn settings_end_and_the_semaphore_is_given_back() {
    check(
        (halves(), proptest::array::uniform32(0u8..), 0u32..2),
        |(bytes, lists, port)| {
            let mut page = page(bytes);
            (page[0], page[3]) = (3, page[3] | 0x10);
            let mut words = words(lists);
            // The list, and an entry of the kind that most modules have.
            let list = usize::from(lists[0]);
            words[SETTINGS] = list as u16;
            if lists[1] & 1 != 0 {
                words[(list + 1) % 256] = 5 + port as u16;
            }
            let cage = Cage::new(page, words);
            let bar = Bar0::new(&cage);
            let Ok(module) = sfp::identify(&bar, port, &mut Transfer::Together) else {
                panic!("it has the code of one");
            };
            let found = sfp::set_up(&bar, port, &module);

            assert!(cage.eeprom.reads.get() < MOST);
            assert!(
                matches!(found, Ok(()) | Err(EOPNOTSUPP | EINVAL)),
                "{found:?}"
            );
            assert!(found.is_ok() || found == Err(EINVAL) || cage.settings.get() == 0);
            assert_eq!((cage.owners.get(), cage.semaphore.get() & 2), (0, 0));
        },
    );
}
