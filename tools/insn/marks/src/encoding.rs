// SPDX-License-Identifier: GPL-2.0

//! The marks: no-ops that the guest executes and the plugin recognises.
//!
//! A mark is `nopl disp32(%rax,%rax,1)`. Compilers pad with that form too, but
//! always with a displacement of zero, so a displacement of our own cannot be
//! met by chance. The processor does nothing with it: a marked program also
//! runs where no plugin listens.

/// Length of a mark in bytes.
pub const LENGTH: usize = 8;

/// Opcode, ModRM and SIB of the no-op; the displacement follows.
const OPCODE: [u8; 4] = [0x0f, 0x1f, 0x84, 0x00];

/// Upper 24 bits of the displacement; the low byte says which mark it is.
pub const BASE: u32 = 0x534b_4200;

/// Low byte of the mark that opens a window.
pub const ON: u32 = 0x10;

/// Low byte of the mark that closes the window.
pub const OFF: u32 = 0x11;

/// The meaning of one mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Four bits of the text that describes the next window, high half first.
    Nibble(u8),
    /// Opens a window under the text sent so far.
    On,
    /// Closes the window.
    Off,
}

impl Mark {
    /// Recognises a mark in the bytes of one instruction.
    pub fn decode(bytes: &[u8]) -> Option<Mark> {
        let displacement = bytes.strip_prefix(&OPCODE)?;
        let displacement = u32::from_le_bytes(displacement.try_into().ok()?);
        if displacement & 0xffff_ff00 != BASE {
            return None;
        }
        match displacement & 0xff {
            nibble @ 0..=15 => Some(Mark::Nibble(nibble as u8)),
            ON => Some(Mark::On),
            OFF => Some(Mark::Off),
            _ => None,
        }
    }
}

/// Puts the text of a window together from its nibbles.
#[derive(Default)]
pub struct TextBuffer {
    bytes: Vec<u8>,
    high: Option<u8>,
}

/// More text than this is dropped: the guest must not make QEMU's memory grow.
const TEXT_LIMIT: usize = 64 * 1024;

impl TextBuffer {
    /// Appends four bits.
    pub fn push(&mut self, nibble: u8) {
        match self.high.take() {
            None => self.high = Some(nibble),
            Some(high) if self.bytes.len() < TEXT_LIMIT => self.bytes.push(high << 4 | nibble),
            Some(_) => {}
        }
    }

    /// Hands out the text and starts afresh. Bytes that are no UTF-8 are
    /// replaced, for the report is UTF-8.
    pub fn take(&mut self) -> String {
        self.high = None;
        String::from_utf8_lossy(&std::mem::take(&mut self.bytes)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(low: u32) -> Vec<u8> {
        let mut bytes = OPCODE.to_vec();
        bytes.extend_from_slice(&(BASE | low).to_le_bytes());
        bytes
    }

    #[test]
    fn marks_are_recognised() {
        assert_eq!(mark(ON).len(), LENGTH);
        assert_eq!(Mark::decode(&mark(ON)), Some(Mark::On));
        assert_eq!(Mark::decode(&mark(OFF)), Some(Mark::Off));
        assert_eq!(Mark::decode(&mark(7)), Some(Mark::Nibble(7)));
    }

    #[test]
    fn padding_of_compilers_is_no_mark() {
        assert_eq!(Mark::decode(&[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]), None);
        assert_eq!(Mark::decode(&[0x0f, 0x1f, 0x40, 0]), None);
        assert_eq!(Mark::decode(&mark(0x12)), None);
        assert_eq!(Mark::decode(&[]), None);
    }

    #[test]
    fn text_survives_the_way_through_nibbles() {
        let mut buffer = TextBuffer::default();
        for byte in "süß".bytes() {
            buffer.push(byte >> 4);
            buffer.push(byte & 15);
        }
        assert_eq!(buffer.take(), "süß");
        assert_eq!(buffer.take(), "");
    }

    #[test]
    fn an_odd_nibble_does_not_shift_the_next_text() {
        let mut buffer = TextBuffer::default();
        buffer.push(4);
        assert_eq!(buffer.take(), "");
        buffer.push(4);
        buffer.push(1);
        assert_eq!(buffer.take(), "A");
    }

    #[test]
    fn endless_text_is_cut() {
        let mut buffer = TextBuffer::default();
        for _ in 0..4 * TEXT_LIMIT {
            buffer.push(4);
        }
        assert_eq!(buffer.take().len(), TEXT_LIMIT);
    }
}
