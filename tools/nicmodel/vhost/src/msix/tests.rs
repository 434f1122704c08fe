// SPDX-License-Identifier: GPL-2.0
use std::sync::{Mutex, OnceLock, Weak};

use nicmodel_device::clock::RealClock;
use nicmodel_device::device::{Device, Identity};

use super::*;
use crate::shared::SharedPages;

const TABLE_BAR: u8 = 3;

/// A guest that gives a buffer at a chosen moment.
#[derive(Default)]
struct Guest {
    msix: OnceLock<Weak<Msix>>,
    buffers: AtomicU32,
    /// Buffers that come, with a notification, while a message is being refused.
    late: AtomicU32,
    got: Mutex<Vec<u32>>,
}

impl Messages for Guest {
    fn send(&self, _address: u64, data: u32) -> bool {
        if self.buffers.load(Ordering::SeqCst) > 0 {
            self.buffers.fetch_sub(1, Ordering::SeqCst);
            self.got.lock().unwrap().push(data);
            return true;
        }
        let late = self.late.swap(0, Ordering::SeqCst);
        if late > 0 {
            self.give(late);
        }
        false
    }
}

impl Guest {
    fn give(&self, buffers: u32) {
        self.buffers.fetch_add(buffers, Ordering::SeqCst);
        let msix = self.msix.get().and_then(Weak::upgrade);
        msix.expect("the table").retry();
    }
}

/// The table of a card, with vectors 0 and 1 open, whose messages are 100 and 101.
fn open() -> (Arc<Guest>, Arc<Msix>) {
    let identity = Identity {
        device_id: 0x10fb,
        mac: [2, 0, 0, 0, 0, 1],
        mapped: false,
    };
    let (registers, _) = SharedPages::create(&[0x1000, 0x6000]).expect("memory");
    let card = Device::new(identity, registers, Arc::new(RealClock::new()));
    let guest = Arc::new(Guest::default());
    let msix = Arc::new(Msix::new(Arc::new(card), Arc::clone(&guest) as _));
    guest.msix.set(Arc::downgrade(&msix)).expect("once");

    let place = msix.place.expect("a capability");
    assert_eq!(place.table.0, TABLE_BAR);
    msix.function
        .config_write(place.capability + 2, &ENABLE.to_le_bytes());
    for vector in [0_u32, 1] {
        let entry = place.table.1 + ENTRY * u64::from(vector);
        assert!(msix.write(TABLE_BAR, entry + 8, &(100 + vector).to_le_bytes()));
        assert!(msix.write(TABLE_BAR, entry + 12, &0u32.to_le_bytes()));
    }
    (guest, msix)
}

#[test]
fn messages_wait_for_buffers() {
    let (guest, msix) = open();
    msix.signal(0);
    msix.signal(1);
    assert!(guest.got.lock().unwrap().is_empty());
    guest.give(1);
    assert_eq!(*guest.got.lock().unwrap(), [100]);
    guest.give(1);
    assert_eq!(*guest.got.lock().unwrap(), [100, 101]);
}

#[test]
fn a_buffer_that_comes_while_a_message_is_refused_is_used() {
    let (guest, msix) = open();
    guest.late.store(1, Ordering::SeqCst);
    msix.signal(0);
    assert_eq!(*guest.got.lock().unwrap(), [100]);
}

#[test]
fn buffers_that_come_late_serve_all() {
    let (guest, msix) = open();
    msix.signal(1);
    guest.late.store(2, Ordering::SeqCst);
    msix.signal(0);
    let mut got = guest.got.lock().unwrap().clone();
    got.sort_unstable();
    assert_eq!(got, [100, 101]);
}
