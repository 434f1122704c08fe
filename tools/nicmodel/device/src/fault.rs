// SPDX-License-Identifier: GPL-2.0
//! Faults: wrong reports of the card to its driver.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::regs::offset;

/// Kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The length of a received frame is the fault's value.
    RxLength,
    /// Descriptor done, but never end of packet.
    RxNoEop,
    /// A coalesced packet goes on in the descriptor of the fault's value.
    RxNext,
    /// The number of packets in a buffer, and one, is the fault's value.
    RxCount,
    /// The whole write-back is ones.
    RxOnes,
    /// The error bits of the write-back are the fault's value.
    RxError,
    /// A descriptor that was asked to report its status does not.
    TxNoDone,
    /// TDH (and the head write-back) shows the fault's value.
    TxHead,
    /// A read of a register that drivers poll takes as many milliseconds as the fault's value, a
    /// second at most.
    SlowPoll,
    /// A read of LINKS says that there is a link, while there is none.
    FalseLink,
    /// The link goes away when a packet is about to be sent.
    LostLink,
    /// A read of SW_FW_SYNC finds all that is shared in the firmware's hands.
    FirmwareBusy,
    /// A frame does not come back in loopback.
    LoopedLost,
    /// A frame comes back damaged in loopback.
    LoopedDamaged,
    /// A read of the register at the offset of the fault's value gets lost: ones come back.
    Ones,
}

/// All kinds.
pub const KINDS: &[Kind] = &[
    Kind::RxLength,
    Kind::RxNoEop,
    Kind::RxNext,
    Kind::RxCount,
    Kind::RxOnes,
    Kind::RxError,
    Kind::TxNoDone,
    Kind::TxHead,
    Kind::SlowPoll,
    Kind::FalseLink,
    Kind::LostLink,
    Kind::FirmwareBusy,
    Kind::LoopedLost,
    Kind::LoopedDamaged,
    Kind::Ones,
];

#[derive(Debug, Default)]
struct Slot {
    left: AtomicU32,
    value: AtomicU32,
}

/// The faults of one port.
#[derive(Debug, Default)]
pub struct Faults {
    slots: [Slot; KINDS.len()],
    /// Any slot is in use: the one test on the packet path.
    armed: AtomicBool,
    removed: AtomicBool,
    unmapped: AtomicBool,
    stuck: AtomicBool,
    veto: AtomicBool,
    /// The firmware manages the state of the link.
    lesm: AtomicBool,
    /// The register that keeps its value whatever is written; 0, CTRL, for none.
    dead_register: AtomicU32,
}

impl Faults {
    fn slot(&self, kind: Kind) -> &Slot {
        &self.slots[kind as usize]
    }

    /// Makes the next `count` occasions lie.
    pub fn arm(&self, kind: Kind, count: u32, value: u32) {
        self.slot(kind).value.store(value, Ordering::Relaxed);
        self.slot(kind).left.store(count, Ordering::Relaxed);
        self.armed.store(true, Ordering::Release);
    }

    /// The truth again, and the card back in its slot.
    pub fn clear(&self) {
        for slot in &self.slots {
            slot.left.store(0, Ordering::Relaxed);
        }
        self.armed.store(false, Ordering::Release);
        self.removed.store(false, Ordering::Release);
        self.unmapped.store(false, Ordering::Release);
        self.stuck.store(false, Ordering::Release);
        self.veto.store(false, Ordering::Release);
        self.lesm.store(false, Ordering::Release);
        self.dead_register.store(0, Ordering::Release);
    }

    /// Takes one occasion of `kind`, with the value to report.
    pub fn take(&self, kind: Kind) -> Option<u32> {
        if !self.armed.load(Ordering::Acquire) {
            return None;
        }
        let slot = self.slot(kind);
        slot.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(1)
            })
            .ok()
            .map(|_| slot.value.load(Ordering::Relaxed))
    }

    /// Pulls the card out of its slot: every read is ones from here on.
    pub fn remove(&self) {
        self.removed.store(true, Ordering::Release);
    }

    /// Whether a read of this register gets lost.
    pub(crate) fn loses_read(&self, at: u32) -> bool {
        self.slot(Kind::Ones).value.load(Ordering::Relaxed) == at && self.take(Kind::Ones).is_some()
    }

    /// Hides the registers, as if memory decoding were off. The card goes on.
    pub fn unmap(&self) {
        self.unmapped.store(true, Ordering::Release);
    }

    /// Whether no access reaches the registers.
    pub(crate) fn hides_registers(&self) -> bool {
        self.removed() || self.unmapped.load(Ordering::Acquire)
    }

    /// Makes the card deaf to requests to stop: neither a reset nor a master disable ends.
    pub fn stick(&self) {
        self.stuck.store(true, Ordering::Release);
    }

    /// Lets the firmware forbid changes of the link.
    pub fn forbid(&self) {
        self.veto.store(true, Ordering::Release);
    }

    /// Whether the firmware forbids changes of the link.
    pub fn veto(&self) -> bool {
        self.veto.load(Ordering::Acquire)
    }

    pub(crate) fn set_lesm(&self) {
        self.lesm.store(true, Ordering::Release);
    }

    pub(crate) fn lesm(&self) -> bool {
        self.lesm.load(Ordering::Acquire)
    }

    /// Makes a register, but CTRL, keep its value whatever is written.
    pub fn kill_register(&self, at: u32) {
        self.dead_register.store(at, Ordering::Release);
    }

    pub(crate) fn ignores_write(&self, at: u32) -> bool {
        at != 0 && self.dead_register.load(Ordering::Acquire) == at
    }

    /// Whether the card cannot be stopped.
    pub fn stuck(&self) -> bool {
        self.stuck.load(Ordering::Acquire)
    }

    /// Whether the card is out of its slot.
    pub fn removed(&self) -> bool {
        self.removed.load(Ordering::Acquire)
    }
}

/// Whether drivers poll this register until the card has done something.
pub(crate) fn is_polled(at: u32) -> bool {
    let control = at % offset::QUEUE == offset::RXDCTL % offset::QUEUE;
    let ring = matches!(at, 0x1000..0x2000 | 0x6000..0x8000) && control;
    ring || matches!(
        at,
        offset::CTRL | offset::EEC | offset::RDRXCTL | offset::SECRXSTAT
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polled_registers() {
        for at in [
            offset::RXDCTL + offset::QUEUE,
            offset::TXDCTL,
            offset::SECRXSTAT,
        ] {
            assert!(is_polled(at));
        }
        for at in [offset::RDT, offset::STATUS, offset::TDH] {
            assert!(!is_polled(at));
        }
    }

    #[test]
    fn a_fault_lasts_as_often_as_it_was_armed() {
        let faults = Faults::default();
        assert_eq!(faults.take(Kind::RxLength), None);
        faults.arm(Kind::RxLength, 2, 99);
        assert_eq!(faults.take(Kind::RxNoEop), None);
        assert_eq!(faults.take(Kind::RxLength), Some(99));
        assert_eq!(faults.take(Kind::RxLength), Some(99));
        assert_eq!(faults.take(Kind::RxLength), None);
    }

    #[test]
    fn only_reads_of_the_chosen_register_get_lost() {
        let faults = Faults::default();
        faults.arm(Kind::Ones, 1, offset::STATUS);
        assert!(!faults.loses_read(offset::CTRL));
        assert!(faults.loses_read(offset::STATUS));
        assert!(!faults.loses_read(offset::STATUS));
    }
}
