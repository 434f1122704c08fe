// SPDX-License-Identifier: GPL-2.0
//! The transport with a driver of the same protocol at its other end.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod guest;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use guest::{BASE, BUFFERS, Guest, SIZE, Setup, message};
use nicmodel_device::function::Source;

/// A register that reads back the written value.
const PLAIN: u64 = 0x5200;

#[test]
fn configuration_space_and_registers_in_every_size() {
    let setup = Setup::new("access");
    let mut guest = Guest::new(&setup.path);
    assert_eq!(guest.config_read(0, 4), [0x86, 0x80, 0xfb, 0x10]);
    assert_eq!(guest.config_read(2, 2), [0xfb, 0x10]);
    assert_eq!(guest.config_read(0, 8)[..4], [0x86, 0x80, 0xfb, 0x10]);
    guest.config_write(4, &[6, 1]);
    assert_eq!(guest.config_read(4, 2), [6, 1]);
    guest.bar_write(0, PLAIN, &[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(guest.bar_read(0, PLAIN, 8), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(guest.bar_read(0, PLAIN + 1, 3), [2, 3, 4]);
    assert_eq!(guest.bar_read(0, PLAIN + 3, 1), [4]);
    let all: Vec<u8> = (0..=255).collect();
    guest.bar_write(0, PLAIN, &all);
    assert_eq!(guest.bar_read(0, PLAIN, 256), all);
    guest.send(&message(5, 0, 16, PLAIN, &[0x5a]), 0);
    assert_eq!(guest.bar_read(0, PLAIN, 20)[15..], [0x5a, 16, 17, 18, 19]);
    drop(guest);
    assert_eq!(setup.finish(), [true, true]);
}

#[test]
fn an_interrupt_carries_the_data_of_its_entry() {
    let setup = Setup::new("msix");
    let mut guest = Guest::new(&setup.path);
    for number in 0..4 {
        guest.offer_interrupt(number, 20);
    }
    setup.spy.signal(5);
    guest.enable_vector(5, 0xa_0000, 77);
    assert_eq!(guest.bar_read(3, 5 * 16 + 8, 4), [77, 0, 0, 0]);
    setup.spy.signal(5);
    assert_eq!(
        guest.interrupt(),
        Some((0xa_0000, 77)),
        "not the one before"
    );
    assert_eq!(
        guest.commands.call.read().ok(),
        None,
        "no call for commands"
    );
    assert!(
        guest.interrupts.call.read().is_ok(),
        "a call for interrupts"
    );

    // Masked: it waits, and the pending bit says so.
    guest.bar_write(3, 5 * 16 + 12, &[1, 0, 0, 0]);
    setup.spy.signal(5);
    assert_eq!(guest.bar_read(3, 0x2000, 8), [1 << 5, 0, 0, 0, 0, 0, 0, 0]);
    guest.bar_write(3, 5 * 16 + 12, &[0; 4]);
    assert_eq!(guest.interrupt(), Some((0xa_0000, 77)));
    assert_eq!(guest.bar_read(3, 0x2000, 1), [0]);

    // All of them masked.
    guest.config_write(0x72, &0xc000_u16.to_le_bytes());
    setup.spy.signal(5);
    assert_eq!(guest.bar_read(3, 0x2000, 1), [1 << 5]);
    guest.config_write(0x72, &0x8000_u16.to_le_bytes());
    assert_eq!(guest.interrupt(), Some((0xa_0000, 77)));
    assert_eq!(guest.used_index(&guest.interrupts), 3, "and no more");
    drop(guest);
    assert_eq!(setup.finish(), [true, true]);
}

#[test]
fn interrupts_wait_for_buffers() {
    let setup = Setup::new("buffers");
    let mut guest = Guest::new(&setup.path);
    guest.enable_vector(0, 0xa_0000, 10);
    guest.enable_vector(63, 0xa_0000, 11);
    for _ in 0..3 {
        setup.spy.signal(0);
        setup.spy.signal(63);
    }
    // Too small a buffer is given back empty.
    guest.offer_interrupt(0, 19);
    guest.offer_interrupt(1, 32);
    guest.offer_interrupt(2, 20);
    let mut ring = std::mem::replace(&mut guest.interrupts, guest::VirtQueue::new(1));
    assert_eq!(guest.wait(&mut ring), Some((0, 0)));
    guest.interrupts = ring;
    let mut found = [guest.interrupt(), guest.interrupt()];
    found.sort();
    assert_eq!(found, [Some((0xa_0000, 10)), Some((0xa_0000, 11))]);
    assert_eq!(guest.used_index(&guest.interrupts), 3, "each came once");
    drop(guest);
    assert_eq!(setup.finish(), [true, true]);
}

#[test]
fn guest_memory_comes_and_goes_with_the_guest() {
    let setup = Setup::new("memory");
    let mut guest = Guest::new(&setup.path);
    let spy = std::sync::Arc::clone(&setup.spy);
    let view = || spy.card.memory.view();
    assert_eq!(guest.bar_read(0, 0, 4).len(), 4);
    view().write(BASE + 0x100, b"DMA").expect("inside");
    assert_eq!(guest.read(BASE + 0x100, 3), b"DMA");
    assert!(view().write(BASE - 1, b"DMA").is_err(), "below");
    assert!(view().write(BASE + SIZE - 1, b"DMA").is_err(), "above");
    let before = *setup.spy.quiesced.lock().unwrap();
    guest.table();
    assert_eq!(*setup.spy.quiesced.lock().unwrap(), before + 1);
    guest.bar_write(0, PLAIN, &[7; 4]);
    assert_eq!(guest.bar_read(0, PLAIN, 4), [7; 4], "the queues go on");
    guest.enable_vector(1, 0xa_0000, 5);
    drop(guest);

    // Another guest finds no traces of the first one.
    let mut guest = Guest::new(&setup.path);
    assert_eq!(guest.bar_read(0, PLAIN, 4), [0; 4]);
    assert_eq!(guest.config_read(0x72, 2)[1] & 0xc0, 0, "MSI-X is off");
    let mut entry = [0; 16];
    entry[12] = 1;
    assert_eq!(
        guest.bar_read(3, 16, 16),
        entry,
        "its table is empty and masked"
    );
    assert_eq!(*setup.spy.disconnects.lock().unwrap(), 1);
    drop(guest);
    assert_eq!(setup.finish(), [true, true, true]);
    assert!(view().write(BASE + 0x100, b"DMA").is_err(), "gone");
}

#[test]
fn messages_that_make_no_sense_are_answered_with_nothing() {
    let setup = Setup::new("nonsense");
    let mut guest = Guest::new(&setup.path);
    let bad = [
        message(0, 0, 4, 0, &[]),
        message(6, 0, 4, 0, &[]),
        message(200, 0, 4, 0, &[0; 64]),
        message(1, 0, 3, 0, &[]),
        message(2, 0, 4, 4, &[1]),
        message(3, 0, 4, 0x2_0000, &[]),
        message(3, 0, 8, 0x1_fffc, &[]),
        message(3, 1, 4, 0, &[]),
        message(3, 6, 4, 0, &[]),
        message(3, 255, 4, 0, &[]),
        message(3, 0, 4, u64::MAX, &[]),
        message(3, 0, u32::MAX, 0, &[]),
        message(4, 0, u32::MAX, 0, &[0; 8]),
        message(4, 3, 4, 0x4000, &[0; 4]),
        message(5, 0, u32::MAX, 0, &[0]),
        message(5, 0, 16, PLAIN, &[]),
        vec![3; 15],
        vec![],
    ];
    for (i, message) in bad.iter().enumerate() {
        if message.is_empty() {
            continue;
        }
        assert_eq!(guest.send(message, 8), [], "{i}");
        assert_eq!(guest.config_read(0, 2), [0x86, 0x80], "after {i}");
    }
    assert_eq!(setup.commands.malformed(), bad.len() as u64 - 1);
    // Less room than asked for: as much as there is room for.
    assert_eq!(guest.send(&message(1, 0, 4, 0, &[]), 2), [0x86, 0x80]);
    assert_eq!(guest.send(&message(3, 0, 64, 0, &[]), 0), []);
    drop(guest);
    assert_eq!(setup.finish(), [true, true]);
}

#[test]
fn buffers_that_make_no_sense() {
    let setup = Setup::new("chains");
    let mut guest = Guest::new(&setup.path);
    guest.write(BUFFERS, &message(1, 0, 4, 0, &[]));
    let outside = BASE + SIZE;
    let many: Vec<_> = (0..100).map(|_| (BUFFERS, 16, false)).collect();
    let bad: [&[guest::Part]; 8] = [
        &[(outside, 16, false)],
        &[(u64::MAX, 16, false)],
        &[(BASE + SIZE - 8, 16, false)],
        &[(BUFFERS, u32::MAX, false)],
        &[(BUFFERS, 16, true)],
        &[(BUFFERS, 0, false)],
        &[(BUFFERS, 16, false), (outside, 4, true)],
        &many,
    ];
    for (i, parts) in bad.iter().enumerate() {
        assert_eq!(guest.exchange(parts), Some(0), "{i}");
    }
    // In pieces it is the same message.
    guest.write(BUFFERS, &message(1, 0, 4, 0, &[]));
    let (at, to) = (BUFFERS, BUFFERS + 0x1000);
    let pieces = [
        (at, 1, false),
        (at + 1, 0, false),
        (at + 1, 15, false),
        (to, 3, true),
        (to + 3, 0, true),
        (to + 3, 9, true),
    ];
    assert_eq!(guest.exchange(&pieces), Some(4));
    assert_eq!(guest.read(to, 4), [0x86, 0x80, 0xfb, 0x10]);
    // A chain that bites its tail.
    guest.descriptor(&guest.commands, 0, (BUFFERS, 16, false), 1, 0);
    let mut ring = std::mem::replace(&mut guest.commands, guest::VirtQueue::new(0));
    guest.offer(&mut ring, 0);
    assert_eq!(guest.wait(&mut ring), Some((0, 0)));
    guest.commands = ring;
    assert_eq!(guest.config_read(0, 2), [0x86, 0x80]);
    drop(guest);
    assert_eq!(setup.finish(), [true, true]);
}

#[test]
fn a_queue_that_cannot_be_is_given_up_and_the_next_guest_is_served() {
    for head in [false, true] {
        let setup = Setup::new(if head { "head" } else { "index" });
        let mut guest = Guest::new(&setup.path);
        assert_eq!(guest.config_read(0, 2), [0x86, 0x80]);
        let mut ring = std::mem::replace(&mut guest.commands, guest::VirtQueue::new(0));
        if head {
            guest.offer(&mut ring, guest::QUEUE);
        } else {
            ring.made = ring.made.wrapping_add(guest::QUEUE + 1);
            guest.publish(&ring);
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!setup.commands.poll(), "no thread is kept busy by it");
        drop(guest);
        let mut guest = Guest::new(&setup.path);
        assert_eq!(guest.config_read(0, 2), [0x86, 0x80]);
        drop(guest);
        assert_eq!(setup.finish(), [true, true, true]);
    }
}

#[test]
fn pages_of_registers_lie_in_guest_memory_on_request() {
    use nicmodel_device::device::Device;
    use vhost::vhost_user::VhostUserFrontend;
    use vhost::vhost_user::message::VhostUserConfigFlags;

    const TAIL: u64 = 0x6018;
    let setup = Setup::new("pages");
    let mut guest = Guest::new(&setup.path);
    let flags = VhostUserConfigFlags::empty();
    let (_, config) = guest
        .frontend
        .get_config(0, 136, flags, &[0; 136])
        .expect("config");
    assert_eq!((config[0], config[1..8].iter().sum::<u8>()), (2, 0));
    assert_eq!(config[8..17], [0, 0x10, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(config[24..33], [0, 0x60, 0, 0, 0, 0, 0, 0, 0]);

    let mapped = |card: &Device| card.ring_pages_mapped();
    let place = BUFFERS + 0x2_0000;
    let share = |page: u64, place: u64| message(9, 0, 8, page, &place.to_le_bytes());
    guest.bar_write(0, TAIL, &[7, 0, 0, 0]);
    assert_eq!(guest.send(&share(0x6000, place), 4), [0; 4]);
    assert!(mapped(&setup.spy.card));
    assert_eq!(guest.read(place + 0x18, 4), [7, 0, 0, 0], "what it held");
    guest.write(place + 0x18, &[9, 0, 0, 0]);
    assert_eq!(setup.spy.card.regs.load(TAIL as u32), 9, "the card sees it");
    setup.spy.card.regs.store(0x6010, 3);
    assert_eq!(
        guest.read(place + 0x10, 4),
        [3, 0, 0, 0],
        "and so does the guest"
    );
    guest.bar_write(0, TAIL, &[11, 0, 0, 0]);
    assert_eq!(
        guest.read(place + 0x18, 4),
        [11, 0, 0, 0],
        "messages still work"
    );

    // Elsewhere: the values move along, the first place is left alone.
    let other = place + 0x1000;
    assert_eq!(guest.send(&share(0x6000, other), 4), [0; 4]);
    guest.write(other + 0x18, &[13, 0, 0, 0]);
    assert_eq!(guest.bar_read(0, TAIL, 4), [13, 0, 0, 0]);
    guest.bar_write(0, 0, &[0, 0, 0, 4]);
    assert_eq!(guest.read(other + 0x18, 4), [0; 4], "a reset reaches it");
    guest.write(other + 0x18, &[15, 0, 0, 0]);
    assert_eq!(guest.send(&message(10, 0, 0, 0x6000, &[]), 4), [0; 4]);
    assert!(!mapped(&setup.spy.card));
    guest.write(other + 0x18, &[17, 0, 0, 0]);
    assert_eq!(guest.bar_read(0, TAIL, 4), [15, 0, 0, 0], "taken back");

    for (page, place) in [
        (0x2000, place),
        (0x6001, place),
        (u64::MAX, place),
        (0x6000, place + 1),
        (0x6000, BASE - 0x1000),
        (0x6000, BASE + SIZE),
        (0x6000, !0xfff),
    ] {
        let answer = guest.send(&share(page, place), 4);
        assert_eq!(answer, [1, 0, 0, 0], "{page:#x} at {place:#x}");
    }
    assert_eq!(guest.send(&message(10, 3, 0, 0x6000, &[]), 4), [1, 0, 0, 0]);

    // A new memory table, and the end of the guest, take pages back, too.
    assert_eq!(guest.send(&share(0x1000, place), 4), [0; 4]);
    guest.table();
    assert!(!mapped(&setup.spy.card));
    assert_eq!(guest.send(&share(0x1000, place), 4), [0; 4]);
    drop(guest);
    assert_eq!(setup.finish(), [true, true]);
}

#[test]
fn whoever_polls_serves_without_being_told() {
    let setup = Setup::new("poll");
    let mut guest = Guest::new(&setup.path);
    assert_eq!(guest.config_read(0, 2), [0x86, 0x80]);
    assert!(!guest.quiet(&guest.commands), "it must be told");
    setup.commands.wake();
    assert!(guest.quiet(&guest.commands), "it looks by itself");
    assert!(!setup.commands.poll());
    guest.write(BUFFERS, &message(1, 0, 2, 0, &[]));
    let mut ring = std::mem::replace(&mut guest.commands, guest::VirtQueue::new(0));
    guest.chain(&ring, 0, &[(BUFFERS, 16, false), (BUFFERS + 64, 2, true)]);
    let slot = ring.available() + 4 + u64::from(ring.made) * 2;
    guest.write(slot, &0_u16.to_le_bytes());
    ring.made += 1;
    guest.write(ring.available() + 2, &ring.made.to_le_bytes());
    assert!(setup.commands.sleep(), "something came before it slept");
    setup.commands.wake();
    assert!(setup.commands.poll());
    assert_eq!(guest.wait(&mut ring), Some((0, 2)));
    assert!(!setup.commands.sleep(), "nothing more");
    assert!(!guest.quiet(&ring), "it must be told again");
    guest.commands = ring;
    drop(guest);
    assert_eq!(setup.finish(), [true, true]);
}

#[test]
fn a_client_that_talks_nonsense_ends_only_its_connection() {
    let setup = Setup::new("protocol");
    let mut stream = UnixStream::connect(&setup.path).expect("connect");
    stream.write_all(&[0xff; 64]).expect("write");
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    drop(stream);
    let mut guest = Guest::new(&setup.path);
    assert_eq!(guest.config_read(0, 2), [0x86, 0x80]);
    drop(guest);
    assert_eq!(setup.finish(), [false, true, true]);
}
