// SPDX-License-Identifier: GPL-2.0
//! The lies of a card, which are the input of a fuzzer.
//!
//! An input is a sequence of records of eight bytes, each of which is one lie; what is left over
//! at the end is ignored. No record depends on those before it, so that a fuzzer can take them out,
//! double and reorder them.
//!
//! | byte | content |
//! | --- | --- |
//! | 0 | [`About`]: what the lie is about |
//! | 1 | how the truth is changed, see [`Lie::of`] |
//! | 2, 3 | which register, descriptor word, byte; low byte first |
//! | 4 | occasions on which the truth is told before |
//! | 5 | occasions on which the lie is told: 0 is one, 255 are all |
//! | 6, 7 | a value, low byte first |

use nicmodel_device::fault::{Kind, LIES};
use nicmodel_device::regs::map::REGISTERS;

/// Bytes of a record.
pub const RECORD: usize = 8;
/// Records that count.
const MOST: usize = 64;
/// Bytes of configuration space that lies are about: what drivers read is in there.
const CONFIG: u32 = 0x180;

/// The subject of a lie.
#[derive(Debug, Clone, Copy)]
pub enum About {
    /// Reads of one register.
    Read,
    /// Reads of any register, as one sequence. Its bytes 2 and 3 count the truths before, too.
    AnyRead,
    /// Writes of one register: another value is written.
    Write,
    /// Reads of one word of configuration space.
    Config,
    /// One word of the write-backs of received frames.
    Received,
    /// One word of the write-backs of transmitted frames.
    Transmitted,
    /// One word of a ring, after any turn of the card: bits 0 and 1 of bytes 2 and 3 are the word,
    /// 2 to 4 the queue, bit 5 stands for transmission, and the rest for the descriptor.
    Ring,
    /// A message of a vector, after any turn.
    Message,
    /// A fault of the model, by the number of reads of registers before.
    Fault,
    /// One byte of the module's memory, from the start.
    Module,
    /// One word of the EEPROM.
    Eeprom,
    /// Frames from the wire.
    Frame,
    /// The card does nothing for a turn.
    Silence,
}

/// How many subjects there are.
const SUBJECTS: usize = 13;

const ABOUT: [About; SUBJECTS] = [
    About::Read,
    About::AnyRead,
    About::Write,
    About::Config,
    About::Received,
    About::Transmitted,
    About::Ring,
    About::Message,
    About::Fault,
    About::Module,
    About::Eeprom,
    About::Frame,
    About::Silence,
];

/// Faults that are no lies, or that last.
const MORE_FAULTS: [Kind; 15] = [
    Kind::Interrupt,
    Kind::MemoryError,
    Kind::Counters,
    Kind::NoNegotiation,
    Kind::FirmwareDead,
    Kind::OldFirmware,
    Kind::NoCrosstalk,
    Kind::DamagedEeprom,
    Kind::Lesm,
    Kind::Veto,
    Kind::DeadRegister,
    Kind::LostInterrupts,
    Kind::Stuck,
    Kind::Remove,
    Kind::Unmapped,
];

/// One lie.
#[derive(Debug, Clone, Copy)]
pub struct Lie {
    /// Its subject.
    pub about: About,
    /// Where; none for anywhere.
    at: Option<u32>,
    how: u8,
    truths: u32,
    left: u32,
    /// Its last two bytes.
    pub value: u16,
}

impl Lie {
    fn new(record: &[u8; RECORD]) -> Self {
        let [about, how, low, high, truths, times, value @ ..] = *record;
        let about = ABOUT[usize::from(about) % ABOUT.len()];
        let place = u32::from(u16::from_le_bytes([low, high]));
        let at = match about {
            About::Read | About::Write => Some(register(place)),
            About::Config => Some(place * 4 % CONFIG),
            About::Received | About::Transmitted => Some(place % 4),
            About::Module => Some(place % 512),
            About::Eeprom | About::Ring => Some(place),
            About::AnyRead | About::Message | About::Fault | About::Frame | About::Silence => None,
        };
        let counts = matches!(about, About::AnyRead | About::Fault);
        Self {
            about,
            at,
            how,
            truths: u32::from(truths) + if counts { place } else { 0 },
            left: match times {
                0 => 1,
                u8::MAX => u32::MAX,
                times => times.into(),
            },
            value: u16::from_le_bytes(value),
        }
    }

    /// Where it is told, for lies that have a place.
    pub fn place(&self) -> u32 {
        self.at.unwrap_or(0)
    }

    /// Takes an occasion; whether the lie is told on it.
    fn is_told(&mut self) -> bool {
        if self.truths != 0 {
            self.truths -= 1;
            return false;
        }
        let is_told = self.left != 0;
        if self.left != u32::MAX {
            self.left = self.left.saturating_sub(1);
        }
        is_told
    }

    /// The truth, changed.
    pub fn of(&self, truth: u32) -> u32 {
        let value = u32::from(self.value);
        match self.how % 8 {
            0 => u32::MAX,
            1 => 0,
            2 => truth ^ 1 << (value % 32),
            3 => truth & 0xffff_0000 | value,
            4 => truth & 0x0000_ffff | value << 16,
            5 => value,
            6 => truth.wrapping_add(value.wrapping_shl(16).cast_signed().unsigned_abs()),
            _ => (truth ^ value).wrapping_mul(0x9e37_79b9),
        }
    }

    /// Whether it is an answer of all ones.
    pub fn is_ones(&self) -> bool {
        self.how.is_multiple_of(8)
    }

    /// The fault of the model that it is.
    pub fn fault(&self) -> (Kind, u32, u32) {
        let faults = LIES.len() + MORE_FAULTS.len();
        let number = usize::from(self.how) % faults;
        let kind = match LIES.get(number) {
            // It takes time on the host.
            Some(Kind::SlowPoll) => Kind::Interrupt,
            Some(kind) => *kind,
            None => MORE_FAULTS[number - LIES.len()],
        };
        let value = match kind {
            Kind::Ones | Kind::DeadRegister => register(self.value.into()),
            _ => self.value.into(),
        };
        // Of what is left, this occasion is taken.
        (kind, self.left.saturating_add(1).min(255), value)
    }
}

/// The offset of a register of the map: the low byte is its entry, the high one its place there.
fn register(place: u32) -> u32 {
    let entry = &REGISTERS[(place & 0xff) as usize % REGISTERS.len()];
    entry.offset + (place >> 8) % entry.count * entry.stride
}

/// All lies of an input.
#[derive(Debug, Default)]
pub struct Lies {
    /// By subject, as most occasions have no lie: there are many for each frame.
    about: [Vec<Lie>; SUBJECTS],
}

impl Lies {
    /// Reads an input.
    pub fn new(input: &[u8]) -> Self {
        let (records, _) = input.as_chunks::<RECORD>();
        let mut lies = Self::default();
        for lie in records.iter().take(MOST).map(Lie::new) {
            lies.about[lie.about as usize].push(lie);
        }
        lies
    }

    /// The lies that are told on an occasion. Each occasion counts for all lies about it.
    pub fn told(&mut self, about: About, at: u32) -> impl Iterator<Item = Lie> {
        self.about[about as usize]
            .iter_mut()
            .filter_map(move |lie| {
                let is_here = lie.at.is_none_or(|place| place == at);
                (is_here && lie.is_told()).then_some(*lie)
            })
    }

    /// The same for lies whose places are not those of occasions.
    pub fn told_anywhere(&mut self, about: About) -> impl Iterator<Item = Lie> {
        let lies = self.about[about as usize].iter_mut();
        lies.filter_map(|lie| lie.is_told().then_some(*lie))
    }

    /// The card's word instead of the truth.
    pub fn said(&mut self, about: About, at: u32, truth: u32) -> u32 {
        self.told(about, at).fold(truth, |value, lie| lie.of(value))
    }

    /// Lies about a kind of thing, whatever the occasion.
    pub fn all(&self, about: About) -> &[Lie] {
        &self.about[about as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lie_is_told_on_its_occasions() {
        let mut lies = Lies::new(&[0, 0, 1, 0, 2, 2, 0, 0, 99]);
        let at = register(1);
        let said: Vec<u32> = (0..5).map(|_| lies.said(About::Read, at, 7)).collect();
        assert_eq!(said, [7, 7, u32::MAX, u32::MAX, 7]);
        assert_eq!(lies.said(About::Read, register(2), 7), 7);
    }

    #[test]
    fn any_register_is_one_sequence() {
        let mut lies = Lies::new(&[1, 1, 2, 0, 1, 255, 0, 0]);
        let said: Vec<u32> = (0..6).map(|at| lies.said(About::AnyRead, at, 7)).collect();
        assert_eq!(said, [7, 7, 7, 0, 0, 0]);
    }

    #[test]
    fn every_record_is_a_lie() {
        for first in 0..=u8::MAX {
            for how in 0..=u8::MAX {
                let lie = Lie::new(&[first, how, 0xff, 0xff, 0, 0, 0xff, 0xff]);
                let _ = (lie.of(3), lie.fault());
            }
        }
    }
}
