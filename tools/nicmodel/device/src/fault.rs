// SPDX-License-Identifier: GPL-2.0
//! Faults: wrong reports of the card to its driver.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use serde::Deserialize;

use crate::regs::offset;

/// Kind of fault. The first ones are lies, told on so many occasions; the others happen at once, or
/// last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
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
    /// A frame that is to be stamped is not.
    NoStamp,
    /// A stamp is from as many milliseconds before as the fault's value.
    OldStamp,
    /// A frame is stamped, but its descriptor does not say so, as if it were lost.
    HiddenStamp,
    /// A frame is stamped when it is sent although nobody has asked for that.
    UnaskedStamp,
    /// All interrupts that are enabled are sent, without a cause.
    Interrupt,
    /// A memory of the card has an error that it cannot correct.
    MemoryError,
    /// All counters of 32 bits are full, as after minutes of traffic, and stick at that.
    Counters,
    /// Negotiation does not leave its first state, until the next reset.
    NoNegotiation,
    /// The firmware has died as the owner of all that is shared, but the EEPROM.
    FirmwareDead,
    /// By the EEPROM, the firmware is older than a port with a cage needs.
    OldFirmware,
    /// By the EEPROM, whatever the card takes for a link is one.
    NoCrosstalk,
    /// By the EEPROM, modules of any maker may be used.
    AnyModule,
    /// The EEPROM has another content than its checksum says.
    DamagedEeprom,
    /// By the EEPROM, firmware manages the state of the link.
    Lesm,
    /// The firmware forbids changes of the link.
    Veto,
    /// SMBI cannot be taken before as many milliseconds as the fault's value have passed since a
    /// read that wanted to, the first one since it was given back.
    LateSemaphore,
    /// A word of the EEPROM is there as many milliseconds after it was asked for as the fault's
    /// value.
    SlowEeprom,
    /// The register at the offset of the fault's value, but CTRL, keeps its value whatever is
    /// written.
    DeadRegister,
    /// The messages of interrupts get lost on their way.
    LostInterrupts,
    /// The clock for time stamps is faster by as many parts per billion as the fault's value, a
    /// signed number.
    Drift,
    /// The cable is so long that frames arrive as many nanoseconds after they were sent as the
    /// fault's value: that is what their stamps say. The model hands them over without delay.
    CableDelay,
    /// The card neither resets nor stops accessing memory.
    Stuck,
    /// The card is out of its slot: every read is ones.
    Remove,
    /// No access reaches the registers, as if memory decoding were off. The card goes on.
    Unmapped,
    /// No faults any more, and a removed, unmapped or stuck card is as after power on.
    #[serde(alias = "none")]
    Clear,
}

/// The lies.
pub const LIES: &[Kind] = &[
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
#[derive(Debug)]
pub struct Faults {
    slots: [Slot; Kind::Clear as usize],
    /// Any slot is in use: the one test on the packet path.
    armed: AtomicBool,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            slots: std::array::from_fn(|_| Slot::default()),
            armed: AtomicBool::default(),
        }
    }
}

impl Faults {
    /// Makes the next `count` occasions lie. A fault that lasts is there until all are cleared.
    pub fn arm(&self, kind: Kind, count: u32, value: u32) {
        if let Some(slot) = self.slots.get(kind as usize) {
            slot.value.store(value, Ordering::Relaxed);
            slot.left.store(count, Ordering::Relaxed);
            self.armed.store(true, Ordering::Release);
        }
    }

    /// The truth again, and the card back in its slot.
    pub(crate) fn clear(&self) {
        for slot in &self.slots {
            slot.left.store(0, Ordering::Relaxed);
        }
        self.armed.store(false, Ordering::Release);
    }

    fn slot(&self, kind: Kind) -> Option<&Slot> {
        let armed = self.armed.load(Ordering::Acquire);
        self.slots.get(kind as usize).filter(|_| armed)
    }

    /// Takes one occasion of `kind`, with the value to report.
    pub(crate) fn take(&self, kind: Kind) -> Option<u32> {
        let slot = self.slot(kind)?;
        let one = |left: u32| left.checked_sub(1);
        let taken = slot
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one);
        taken.is_ok().then(|| slot.value.load(Ordering::Relaxed))
    }

    /// The value of a fault that lasts, if it is there.
    pub(crate) fn lasting(&self, kind: Kind) -> Option<u32> {
        self.slot(kind)
            .filter(|slot| slot.left.load(Ordering::Relaxed) != 0)
            .map(|slot| slot.value.load(Ordering::Relaxed))
    }

    /// Whether the firmware forbids changes of the link.
    pub(crate) fn veto(&self) -> bool {
        self.lasting(Kind::Veto).is_some()
    }

    /// Whether the firmware manages the state of the link.
    pub(crate) fn lesm(&self) -> bool {
        self.lasting(Kind::Lesm).is_some()
    }

    /// Whether the card cannot be stopped.
    pub(crate) fn stuck(&self) -> bool {
        self.lasting(Kind::Stuck).is_some()
    }

    /// Whether the card is out of its slot.
    pub(crate) fn removed(&self) -> bool {
        self.lasting(Kind::Remove).is_some()
    }

    /// Whether no access reaches the registers.
    pub(crate) fn hides_registers(&self) -> bool {
        self.removed() || self.lasting(Kind::Unmapped).is_some()
    }

    /// Whether a read of this register gets lost.
    pub(crate) fn loses_read(&self, at: u32) -> bool {
        self.lasting(Kind::Ones) == Some(at) && self.take(Kind::Ones).is_some()
    }

    pub(crate) fn ignores_write(&self, at: u32) -> bool {
        at != 0 && self.lasting(Kind::DeadRegister) == Some(at)
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
