// SPDX-License-Identifier: GPL-2.0
//! A card that is a library of the kernel: User-Mode Linux loads it, and each access to the card is
//! a call (`arch/um/drivers/pci_card_user.c`).
//!
//! It says the truth where its input does not make it lie: see [`lie`].

mod card;
mod frame;
pub mod lie;
mod msix;

use std::cell::RefCell;

use crate::card::Card;

thread_local! {
    /// The only card of this process, which has one thread: a lock would take a tenth of the time.
    static CARD: RefCell<Option<Box<Card>>> = const { RefCell::new(None) };
}

/// Runs `work` with the card. Before there is one, the slot is empty, and reads are all ones.
fn with<T>(empty: T, work: impl FnOnce(&mut Card) -> T) -> T {
    CARD.with_borrow_mut(|card| card.as_deref_mut().map_or(empty, work))
}

/// The functions that the kernel calls; `struct card_ops` of `arch/um/drivers/pci_card.h`.
#[repr(C)]
pub struct CardOps {
    open: unsafe extern "C" fn(memory: *mut u8, address: u64, size: u64) -> bool,
    input: unsafe extern "C" fn(data: *const u8, length: u64),
    mend: extern "C" fn(),
    config_read: extern "C" fn(at: u32, size: u32) -> u64,
    config_write: extern "C" fn(at: u32, size: u32, value: u64),
    bar_read: extern "C" fn(bar: u32, at: u32, size: u32) -> u64,
    bar_write: extern "C" fn(bar: u32, at: u32, size: u32, value: u64) -> bool,
    turn: extern "C" fn(now: u64) -> u64,
    interrupt: extern "C" fn() -> u32,
    arrive: extern "C" fn(frames: u32),
    sent: extern "C" fn() -> u32,
    is_bus_master: extern "C" fn() -> bool,
    hides_stop: extern "C" fn() -> bool,
    map: extern "C" fn(address: u64, size: u64, writable: bool, is_mapped: bool),
    strayed: extern "C" fn() -> bool,
}

/// # Safety
///
/// `memory` is readable and writable for `size` bytes until the process ends, and what is read
/// there may change at any time.
unsafe extern "C" fn open(memory: *mut u8, address: u64, size: u64) -> bool {
    // SAFETY: As the caller promises.
    let card = unsafe { Card::new(memory, address, size) }.map(Box::new);
    let there = card.is_some();
    CARD.set(card);
    there
}

/// # Safety
///
/// `data` is readable for `length` bytes.
unsafe extern "C" fn input(data: *const u8, length: u64) {
    // SAFETY: As the caller promises.
    let data = unsafe { std::slice::from_raw_parts(data, length as usize) };
    with((), |card| card.start(data));
}

extern "C" fn mend() {
    with((), Card::mend);
}

extern "C" fn config_read(at: u32, size: u32) -> u64 {
    with(u64::MAX, |card| card.config_read(at, size))
}

extern "C" fn config_write(at: u32, size: u32, value: u64) {
    with((), |card| card.config_write(at, size, value));
}

extern "C" fn bar_read(bar: u32, at: u32, size: u32) -> u64 {
    with(u64::MAX, |card| card.bar_read(bar, at, size))
}

/// True if a turn is due at once.
extern "C" fn bar_write(bar: u32, at: u32, size: u32, value: u64) -> bool {
    with(false, |card| card.bar_write(bar, at, size, value))
}

/// Moves frames; returns when the next turn is due, or `u64::MAX`.
extern "C" fn turn(now: u64) -> u64 {
    with(u64::MAX, |card| card.turn(now))
}

/// Takes the data of a message that is to be sent, or 0.
extern "C" fn interrupt() -> u32 {
    with(0, Card::take_message)
}

/// Lets frames arrive from the wire.
extern "C" fn arrive(frames: u32) {
    with((), |card| card.arrive(frames));
}

/// Takes the number of whole frames of the kernel's that have left.
extern "C" fn sent() -> u32 {
    with(0, Card::take_sent)
}

extern "C" fn is_bus_master() -> bool {
    with(false, |card| card.is_bus_master())
}

/// Whether the driver may not be able to know that DMA has stopped.
extern "C" fn hides_stop() -> bool {
    with(false, |card| card.hides_stop())
}

/// The driver maps memory for DMA, or unmaps it.
extern "C" fn map(address: u64, size: u64, writable: bool, is_mapped: bool) {
    with((), |card| card.map(address, size, writable, is_mapped));
}

/// Whether it got at memory that was not mapped, and is not to blame.
extern "C" fn strayed() -> bool {
    with(false, |card| card.has_strayed())
}

/// The functions of the card.
#[unsafe(no_mangle)]
pub extern "C" fn card_ops() -> *const CardOps {
    static OPS: CardOps = CardOps {
        open,
        input,
        mend,
        config_read,
        config_write,
        bar_read,
        bar_write,
        turn,
        interrupt,
        arrive,
        sent,
        is_bus_master,
        hides_stop,
        map,
        strayed,
    };
    &raw const OPS
}
