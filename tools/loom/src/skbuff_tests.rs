// SPDX-License-Identifier: GPL-2.0

//! The owners of a packet.

use crate::kernel::skbuff::users::is_sole;
use crate::sync::atomic::{Atomic, Release};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

struct Packet {
    users: Atomic<i32>,
    data: UnsafeCell<u32>,
}

// SAFETY: Not true in general: loom checks that the data is accessed in order.
unsafe impl Sync for Packet {}

/// An owner reads the packet and drops its reference; the other one writes when it is alone.
#[test]
fn a_sole_owner_comes_after_all_others() {
    loom::model(|| {
        let packet = Arc::new(Packet {
            users: Atomic::new(2),
            data: UnsafeCell::new(0),
        });
        let former = {
            let packet = packet.clone();
            thread::spawn(move || {
                // SAFETY: Loom checks that nothing writes to it meanwhile.
                let data = packet.data.with(|data| unsafe { *data });
                // As C does.
                assert_eq!(packet.users.cmpxchg(2, 1, Release), Ok(2));
                data
            })
        };
        if is_sole(&packet.users) {
            // SAFETY: Loom checks that nothing else accesses it.
            packet.data.with_mut(|data| unsafe { *data = 1 });
        }
        assert_eq!(former.join().expect("it ends"), 0);
        assert!(is_sole(&packet.users));
    });
}
