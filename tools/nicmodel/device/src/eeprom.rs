// SPDX-License-Identifier: GPL-2.0
//! Contents of the EEPROM behind EERD.

/// Number of 16-bit words; EEC announces the same size.
pub const WORDS: usize = 1024;

const CHECKSUM_WORD: usize = 0x3f;
const CHECKSUM_SUM: u16 = 0xbaba;
const SECTION_POINTERS: std::ops::Range<usize> = 0x03..0x0f;

const FIRMWARE_POINTER: usize = 0x0f;
const PART_NUMBER: usize = 0x15;
const SERIAL_MAC: usize = 0x11;
/// A word that the checksum covers and that nothing else uses.
const SPARE_WORD: usize = 0x20;
const SFP_INIT_POINTER: usize = 0x2b;
const DEVICE_CAPS: usize = 0x2c;
/// In it: modules of any maker may be used.
const ANY_MODULE: u16 = 1 << 0;
/// In the word of the card's abilities: no link is taken for one that is none.
const NO_CROSSTALK: u16 = 1 << 7;

const FIRMWARE_BLOCK: usize = 0x80;
const FIRMWARE_LESM: usize = 0x90;
const FIRMWARE_PATCH: usize = 0xa0;
/// In the block of LESM: whether it is on.
const LESM_ENABLED: u16 = 1 << 15;
const SFP_INIT_LIST: usize = 0xc0;
const SFP_INIT_DATA: usize = 0xe0;

/// The words of the EEPROM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Eeprom(Vec<u16>);

impl Eeprom {
    /// The image of a card with the given MAC address.
    pub fn new(mac: [u8; 6]) -> Self {
        let mut words = vec![0xffff_u16; WORDS];
        words[0] = 0;
        for (i, pair) in mac.chunks_exact(2).enumerate() {
            words[SERIAL_MAC + i] = u16::from_le_bytes([pair[0], pair[1]]);
        }
        // Part number in the old form: digits only.
        words[PART_NUMBER] = 0x8259;
        words[PART_NUMBER + 1] = 0x9001;
        words[DEVICE_CAPS] = 0;

        // The firmware block says which firmware runs; SFI ports need version 6 or later.
        words[FIRMWARE_POINTER] = FIRMWARE_BLOCK as u16;
        words[FIRMWARE_BLOCK + 4] = FIRMWARE_PATCH as u16;
        words[FIRMWARE_PATCH + 7] = 0x0006;

        // One list entry per kind of module: an id, then where its register values are.
        words[SFP_INIT_POINTER] = SFP_INIT_LIST as u16;
        words[SFP_INIT_LIST] = 0;
        let kinds = 3..=8_u16;
        for (i, kind) in kinds.enumerate() {
            words[SFP_INIT_LIST + 1 + 2 * i] = kind;
            words[SFP_INIT_LIST + 2 + 2 * i] = SFP_INIT_DATA as u16;
        }
        // The PHY gives the values their meaning; one is enough to see them written.
        words[SFP_INIT_DATA] = 1;
        words[SFP_INIT_DATA + 1] = 0x0001;

        let mut eeprom = Self(words);
        eeprom.0[CHECKSUM_WORD] = CHECKSUM_SUM.wrapping_sub(eeprom.sum());
        eeprom
    }

    /// Lets the firmware manage the state of the link (LESM). The checksum does not cover that.
    pub fn set_lesm(&mut self) {
        self.0[FIRMWARE_BLOCK + 2] = FIRMWARE_LESM as u16;
        self.0[FIRMWARE_LESM + 1] = LESM_ENABLED;
    }

    /// Has firmware that is too old for ports with a cage.
    pub fn set_old(&mut self) {
        self.0[FIRMWARE_PATCH + 7] = 5;
    }

    /// Takes neither noise nor the signals of a neighbouring port for a link.
    pub fn set_sure(&mut self) {
        self.set_capability(NO_CROSSTALK);
    }

    /// Allows modules of any maker.
    pub fn set_any_module(&mut self) {
        self.set_capability(ANY_MODULE);
    }

    fn set_capability(&mut self, bit: u16) {
        self.0[DEVICE_CAPS] |= bit;
        self.0[CHECKSUM_WORD] = CHECKSUM_SUM.wrapping_sub(self.sum());
    }

    /// Has a word that does not go with the checksum.
    pub fn set_damaged(&mut self) {
        self.0[SPARE_WORD] = 0;
    }

    /// Sum over the range of the checksum, without the checksum word itself.
    fn sum(&self) -> u16 {
        let mut sum = self.0[..CHECKSUM_WORD]
            .iter()
            .fold(0_u16, |sum, word| sum.wrapping_add(*word));
        for pointer in &self.0[SECTION_POINTERS] {
            let start = usize::from(*pointer);
            if start == 0 || *pointer == 0xffff {
                continue;
            }
            let length = self.word(start);
            if length == 0 || length == 0xffff {
                continue;
            }
            for i in 1..=usize::from(length) {
                sum = sum.wrapping_add(self.word(start + i));
            }
        }
        sum
    }

    /// One word; words past the end read as erased.
    pub fn word(&self, index: usize) -> u16 {
        self.0.get(index).copied().unwrap_or(0xffff)
    }

    /// Whether the checksum is right.
    pub fn valid(&self) -> bool {
        self.sum().wrapping_add(self.0[CHECKSUM_WORD]) == CHECKSUM_SUM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_valid_for_any_mac() {
        for mac in [[0; 6], [0xff; 6], [2, 0x5b, 0x82, 0x59, 0x90, 1]] {
            assert!(Eeprom::new(mac).valid());
        }
    }

    #[test]
    fn a_changed_word_breaks_the_checksum() {
        let mut eeprom = Eeprom::new([2, 0, 0, 0, 0, 1]);
        assert!(eeprom.valid());
        eeprom.set_damaged();
        assert!(!eeprom.valid());
    }

    #[test]
    fn the_firmware_is_beyond_the_checksum() {
        let mut eeprom = Eeprom::new([2, 0, 0, 0, 0, 1]);
        let block = usize::from(eeprom.word(FIRMWARE_POINTER));
        assert_eq!(eeprom.word(block + 2), 0xffff);
        eeprom.set_lesm();
        eeprom.set_old();
        let lesm = usize::from(eeprom.word(block + 2));
        assert_eq!(eeprom.word(lesm + 1) >> 15, 1);
        assert!(eeprom.valid());
    }

    #[test]
    fn a_card_without_crosstalk_has_a_checksum_of_its_own() {
        let mut eeprom = Eeprom::new([2, 0, 0, 0, 0, 1]);
        eeprom.set_sure();
        assert_eq!(eeprom.word(DEVICE_CAPS), 0x80);
        assert!(eeprom.valid());
    }

    #[test]
    fn past_the_end_reads_erased() {
        assert_eq!(Eeprom::new([0; 6]).word(WORDS), 0xffff);
    }

    #[test]
    fn sfp_list_has_an_entry_for_short_range_modules() {
        let eeprom = Eeprom::new([0; 6]);
        let list = usize::from(eeprom.word(SFP_INIT_POINTER));
        let kinds: Vec<u16> = (0..6).map(|i| eeprom.word(list + 1 + 2 * i)).collect();
        assert!(kinds.contains(&5) && kinds.contains(&6));
        assert_eq!(eeprom.word(list + 13), 0xffff, "the list ends");
    }
}
