// SPDX-License-Identifier: GPL-2.0
//! Tests of interrupts through the registers, as a driver uses them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arbitrary_int::{u6, u9};

use crate::clock::ManualClock;
use crate::device::Device;
use crate::fault::Kind;
use crate::function::{Notifier, PciFunction};
use crate::irq::{CAUSE_ECC, CAUSE_LSC, Direction};
use crate::regs::bits::{Ctrl, Eitr, Gpie, Ivar, IvarEntry, IvarMisc};
use crate::regs::offset;
use crate::testing::{device_with, set};

#[derive(Default)]
struct Count(AtomicU32);

impl Notifier for Count {
    fn signal(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// An entry of IVAR for `vector`.
fn to(vector: u8) -> IvarEntry {
    IvarEntry::ZERO
        .with_int_alloc(u6::new(vector))
        .with_int_alloc_val(true)
}

struct Setup {
    device: Device,
    clock: Arc<ManualClock>,
    queue: Arc<Count>,
    other: Arc<Count>,
}

impl Setup {
    /// Queue 0 on vector 0, everything else on vector 1, masked on delivery.
    fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let device = device_with(Arc::clone(&clock));
        let (queue, other) = (Arc::new(Count::default()), Arc::new(Count::default()));
        device.set_vector(0, Some(Arc::clone(&queue) as Arc<dyn Notifier>));
        device.set_vector(1, Some(Arc::clone(&other) as Arc<dyn Notifier>));
        clock.advance(1_000_000);
        set(&device, Gpie::ZERO.with_ocd(true).with_eiame(true));
        device.register_write(offset::EIAM_EX, u32::MAX);
        device.register_write(offset::EIAC, 0xffff);
        set(
            &device,
            Ivar::ZERO.with_entry(0, to(0)).with_entry(1, to(0)),
        );
        set(&device, IvarMisc::ZERO.with_entry(1, to(1)));
        Self {
            device,
            clock,
            queue,
            other,
        }
    }

    fn raise(&self) {
        self.device
            .irq
            .raise_queue(&self.device.regs, 0, Direction::Rx);
        self.device.deliver();
    }

    fn counts(&self) -> (u32, u32) {
        (
            self.queue.0.load(Ordering::SeqCst),
            self.other.0.load(Ordering::SeqCst),
        )
    }
}

#[test]
fn a_message_that_is_lost_has_been_sent_for_the_card() {
    let setup = Setup::new();
    setup.device.register_write(offset::EIMS_EX, 1);
    setup.device.fault(Kind::LostInterrupts, 1, 0);
    setup.raise();
    assert_eq!(setup.counts(), (0, 0));
    assert_eq!(setup.device.register_read(offset::EIMS_EX), 0);
    setup.device.fault(Kind::Clear, 1, 0);
    setup.device.register_write(offset::EIMS_EX, 1);
    setup.raise();
    assert_eq!(setup.counts(), (1, 0));
}

#[test]
fn nothing_is_sent_while_masked_and_it_comes_when_unmasked() {
    let setup = Setup::new();
    // Without the mask on delivery, which would hold it back by itself.
    setup.device.register_write(offset::EIAM_EX, 0);
    setup.raise();
    assert_eq!(setup.counts(), (0, 0));
    setup.device.register_write(offset::EIMS_EX, 1);
    assert_eq!(setup.counts(), (1, 0));
}

#[test]
fn delivery_masks_and_clears_the_cause() {
    let setup = Setup::new();
    setup.device.register_write(offset::EIMS_EX, 1);
    setup.raise();
    assert_eq!(setup.device.register_read(offset::EIMS_EX), 0);
    assert_eq!(setup.device.register_read(offset::EICS), 0);
    setup.raise();
    assert_eq!(setup.counts(), (1, 0), "masked until enabled again");
    setup.device.register_write(offset::EIMS, 1);
    assert_eq!(setup.counts(), (2, 0), "what came meanwhile is not lost");
}

#[test]
fn moderation_holds_back_until_the_interval_is_over() {
    let setup = Setup::new();
    // 25 units of 2 µs.
    set(&setup.device, Eitr::ZERO.with_itr_interval(u9::new(25)));
    setup.device.register_write(offset::EIMS_EX, 1);
    setup.raise();
    setup.device.register_write(offset::EIMS_EX, 1);
    setup.raise();
    assert_eq!(setup.counts(), (1, 0));
    setup.clock.advance(49_999);
    let regs = &setup.device.regs;
    assert_eq!(setup.device.irq.deliver(regs, 1_049_999), Some(1_050_000));
    setup.clock.advance(1);
    setup.device.deliver();
    assert_eq!(setup.counts(), (2, 0));
}

#[test]
fn an_invalid_ivar_entry_raises_nothing() {
    let setup = Setup::new();
    set(&setup.device, Ivar::ZERO);
    setup.device.register_write(offset::EIMS_EX, 1);
    setup.raise();
    assert_eq!(setup.counts(), (0, 0));
}

#[test]
fn link_change_is_told_once_until_acknowledged() {
    let setup = Setup::new();
    setup.device.register_write(offset::EIMS, CAUSE_LSC);
    setup.device.set_link(false);
    setup.device.set_link(true);
    assert_eq!(setup.counts(), (0, 1), "one message for a pending cause");
    // Not in EIAC: it stays until written.
    assert_eq!(setup.device.register_read(offset::EICS), CAUSE_LSC);
    setup.device.register_write(offset::EICR, CAUSE_LSC);
    assert_eq!(setup.device.register_read(offset::EICS), 0);
    setup.device.set_link(false);
    assert_eq!(setup.counts(), (0, 2));
}

#[test]
fn a_memory_error_returns_until_a_reset() {
    let setup = Setup::new();
    setup.device.register_write(offset::EIMS, CAUSE_ECC);
    setup.device.fault(Kind::MemoryError, 1, 0);
    assert_eq!(setup.counts(), (0, 1));
    for messages in 2..5 {
        assert_eq!(setup.device.register_read(offset::EICR), CAUSE_ECC);
        setup.device.register_write(offset::EIMS, CAUSE_ECC);
        assert_eq!(setup.counts(), (0, messages));
    }
    set(&setup.device, Ctrl::ZERO.with_rst(true));
    assert_eq!(setup.device.register_read(offset::EICR), 0);
}

#[test]
fn reading_eicr_clears_only_the_others_with_ocd() {
    let setup = Setup::new();
    setup.device.register_write(offset::EICS, CAUSE_LSC | 1);
    assert_eq!(setup.device.register_read(offset::EICR), CAUSE_LSC | 1);
    assert_eq!(setup.device.register_read(offset::EICR), 1);
    set(&setup.device, Gpie::ZERO);
    assert_eq!(setup.device.register_read(offset::EICR), 1);
    assert_eq!(setup.device.register_read(offset::EICR), 0);
}

#[test]
fn high_vectors_have_their_own_mask_bits() {
    let setup = Setup::new();
    let high = Arc::new(Count::default());
    setup
        .device
        .set_vector(40, Some(Arc::clone(&high) as Arc<dyn Notifier>));
    setup.device.register_write(offset::EIAM_EX + 4, u32::MAX);
    setup.device.register_write(offset::EIMS_EX + 4, 1 << 8);
    setup.device.register_write(offset::EICS_EX + 4, 1 << 8);
    assert_eq!(high.0.load(Ordering::SeqCst), 1);
    assert_eq!(setup.device.register_read(offset::EIMS_EX + 4), 0);
}

#[test]
fn a_vector_that_is_not_connected_and_one_out_of_range_are_survived() {
    let setup = Setup::new();
    setup.device.set_vector(0, None);
    setup
        .device
        .set_vector(64, Some(Arc::new(Count::default())));
    setup.device.register_write(offset::EIMS_EX, u32::MAX);
    setup.device.register_write(offset::EICS_EX, u32::MAX);
}

#[test]
fn reset_masks_everything() {
    let setup = Setup::new();
    setup.device.register_write(offset::EIMS_EX, u32::MAX);
    setup.device.register_write(offset::EICS, CAUSE_LSC);
    set(&setup.device, Ctrl::ZERO.with_rst(true));
    assert_eq!(setup.device.register_read(offset::EIMS_EX), 0);
    assert_eq!(setup.device.register_read(offset::EICS), 0);
}
