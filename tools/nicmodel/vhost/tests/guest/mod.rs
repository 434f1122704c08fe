// SPDX-License-Identifier: GPL-2.0
//! The driver's side of the transport, as the tests need it: able to lie.
#![allow(dead_code)] // each test file uses a part

use std::fs::File;
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nicmodel_device::clock::RealClock;
use nicmodel_device::device::{Device, Identity};
use nicmodel_device::function::{Notifier, PciFunction};
use nicmodel_device::memory::DmaMemory;
use nicmodel_transport::{Server as _, Stop};
use nicmodel_vhost::{Commands, Server, SharedPages};
use vhost::vhost_user::message::{VhostUserHeaderFlag, VhostUserProtocolFeatures};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryMmap};
use vmm_sys_util::eventfd::EventFd;

/// Where guest memory begins: not at 0, as in User-Mode Linux.
pub const BASE: u64 = 0x10_0000;
pub const SIZE: u64 = 0x10_0000;
/// Buffers lie behind the rings.
pub const BUFFERS: u64 = BASE + 0x4_0000;
pub const QUEUE: u16 = 256;
const PATIENCE: Duration = Duration::from_secs(5);
const NEXT: u16 = 1;
const WRITE: u16 = 2;

/// The card, with a record of the transport's calls.
pub struct Spy {
    pub card: Device,
    pub vectors: Mutex<Vec<Option<Arc<dyn Notifier>>>>,
    pub quiesced: Mutex<u32>,
    pub disconnects: Mutex<u32>,
}

impl Spy {
    pub fn new() -> (Arc<Self>, SharedPages) {
        let identity = Identity {
            device_id: 0x10fb,
            mac: [2, 0, 0, 0, 0, 1],
            mapped: false,
        };
        let (registers, pages) = SharedPages::create(&[0x1000, 0x6000]).expect("memory");
        let spy = Arc::new(Self {
            card: Device::new(identity, registers, Arc::new(RealClock::new())),
            vectors: Mutex::default(),
            quiesced: Mutex::default(),
            disconnects: Mutex::default(),
        });
        (spy, pages)
    }

    /// The function has an interrupt.
    pub fn signal(&self, vector: usize) {
        let notifier = self.vectors.lock().unwrap()[vector].clone();
        notifier.expect("a vector that is connected").signal();
    }
}

impl PciFunction for Spy {
    fn config_read(&self, offset: u64, data: &mut [u8]) {
        self.card.config_read(offset, data);
    }
    fn config_write(&self, offset: u64, data: &[u8]) {
        self.card.config_write(offset, data);
    }
    fn bar_size(&self, bar: u32) -> u64 {
        self.card.bar_size(bar)
    }
    fn bar_read(&self, bar: u32, offset: u64, data: &mut [u8]) {
        self.card.bar_read(bar, offset, data);
    }
    fn bar_write(&self, bar: u32, offset: u64, data: &[u8]) {
        self.card.bar_write(bar, offset, data);
    }
    fn vectors(&self) -> u32 {
        self.card.vectors()
    }
    fn set_vector(&self, vector: u32, notifier: Option<Arc<dyn Notifier>>) {
        let mut vectors = self.vectors.lock().unwrap();
        vectors.resize_with(64, || None);
        vectors[vector as usize] = notifier;
    }
    fn memory(&self) -> &DmaMemory {
        &self.card.memory
    }
    fn pages_mapped(&self, mapped: bool) {
        self.card.pages_mapped(mapped);
    }
    fn quiesce(&self) {
        *self.quiesced.lock().unwrap() += 1;
        self.card.quiesce();
    }
    fn reset(&self) {
        self.card.reset();
    }
    fn disconnect(&self) {
        *self.disconnects.lock().unwrap() += 1;
        self.card.disconnect();
    }
}

/// A server in a thread.
pub struct Setup {
    pub path: PathBuf,
    pub spy: Arc<Spy>,
    pub commands: Arc<Commands>,
    stop: Stop,
    thread: Option<JoinHandle<Vec<bool>>>,
}

impl Setup {
    pub fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("nicmodel-vhost-{}-{name}.sock", std::process::id()));
        let (spy, pages) = Spy::new();
        let function = Arc::clone(&spy) as Arc<dyn PciFunction>;
        let server = Server::bind(&path, function, pages).expect("bind");
        let (stop, commands) = (server.stopper(), server.commands());
        let thread = std::thread::spawn(move || {
            let mut results = Vec::new();
            loop {
                let result = server.serve();
                let end = matches!(result, Ok(false));
                results.push(result.is_ok());
                if end {
                    return results;
                }
            }
        });
        Self {
            path,
            spy,
            commands,
            stop,
            thread: Some(thread),
        }
    }

    /// Whether each connection ended well, once the server has stopped.
    pub fn finish(mut self) -> Vec<bool> {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap()
    }
}

/// One virtqueue, seen from the driver.
pub struct VirtQueue {
    base: u64,
    pub made: u16,
    pub seen: u16,
    pub kick: EventFd,
    pub call: EventFd,
}

impl VirtQueue {
    pub fn new(index: u64) -> Self {
        Self {
            base: BASE + index * 0x1_0000,
            made: 0,
            seen: 0,
            kick: EventFd::new(0).expect("eventfd"),
            call: EventFd::new(libc::EFD_NONBLOCK).expect("eventfd"),
        }
    }

    pub fn descriptors(&self) -> u64 {
        self.base
    }

    pub fn available(&self) -> u64 {
        self.base + 0x4000
    }

    pub fn used(&self) -> u64 {
        self.base + 0x8000
    }
}

/// A part of a message: where, how long, and whether the card writes to it.
pub type Part = (u64, u32, bool);

/// A guest with its memory and the two queues.
pub struct Guest {
    pub memory: GuestMemoryMmap<()>,
    file: File,
    pub frontend: Frontend,
    pub commands: VirtQueue,
    pub interrupts: VirtQueue,
}

pub fn memory_file(size: u64) -> File {
    // SAFETY: the name is a string with a terminator; the descriptor is new.
    let file = unsafe {
        let fd = libc::memfd_create(c"guest".as_ptr(), libc::MFD_CLOEXEC);
        assert!(fd >= 0);
        File::from_raw_fd(fd)
    };
    file.set_len(size).expect("size");
    file
}

impl Guest {
    pub fn new(path: &Path) -> Self {
        let file = memory_file(SIZE);
        let offset = FileOffset::new(file.try_clone().expect("descriptor"), 0);
        let ranges = [(GuestAddress(BASE), SIZE as usize, Some(offset))];
        let memory = GuestMemoryMmap::from_ranges_with_files(ranges).expect("memory");
        let mut frontend = Frontend::connect(path, 2).expect("connect");
        frontend.set_owner().expect("owner");
        let features = frontend.get_features().expect("features");
        assert_ne!(features & 1 << 32, 0, "version 1");
        let protocol = frontend.get_protocol_features().expect("features");
        frontend
            .set_protocol_features(protocol & VhostUserProtocolFeatures::all())
            .expect("features");
        frontend.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
        assert_eq!(frontend.get_queue_num().expect("queues"), 2);
        frontend.set_features(features).expect("features");
        let mut guest = Self {
            memory,
            file,
            frontend,
            commands: VirtQueue::new(0),
            interrupts: VirtQueue::new(1),
        };
        guest.table();
        guest.start();
        guest
    }

    /// Sends the memory table.
    pub fn table(&mut self) {
        use std::os::fd::AsRawFd;
        let region = VhostUserMemoryRegionInfo {
            guest_phys_addr: BASE,
            memory_size: SIZE,
            userspace_addr: BASE,
            mmap_offset: 0,
            mmap_handle: self.file.as_raw_fd(),
        };
        self.frontend.set_mem_table(&[region]).expect("table");
    }

    fn start(&mut self) {
        for (index, ring) in [&self.commands, &self.interrupts].into_iter().enumerate() {
            self.frontend
                .set_vring_call(index, &ring.call)
                .expect("call");
            self.frontend.set_vring_num(index, QUEUE).expect("size");
            self.frontend.set_vring_base(index, 0).expect("base");
            let place = VringConfigData {
                queue_max_size: QUEUE,
                queue_size: QUEUE,
                flags: 0,
                desc_table_addr: ring.descriptors(),
                used_ring_addr: ring.used(),
                avail_ring_addr: ring.available(),
                log_addr: None,
            };
            self.frontend
                .set_vring_addr(index, &place)
                .expect("addresses");
        }
        for (index, ring) in [&self.commands, &self.interrupts].into_iter().enumerate() {
            self.frontend
                .set_vring_kick(index, &ring.kick)
                .expect("kick");
            self.frontend.set_vring_enable(index, true).expect("enable");
        }
    }

    pub fn write(&self, at: u64, bytes: &[u8]) {
        self.memory
            .write_slice(bytes, GuestAddress(at))
            .expect("in memory");
    }

    pub fn read(&self, at: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.memory
            .read_slice(&mut bytes, GuestAddress(at))
            .expect("in memory");
        bytes
    }

    /// Writes one descriptor.
    pub fn descriptor(&self, ring: &VirtQueue, at: u16, part: Part, flags: u16, next: u16) {
        let (address, length, write) = part;
        let flags = flags | if write { WRITE } else { 0 };
        let mut bytes = Vec::new();
        bytes.extend(address.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        self.write(ring.descriptors() + u64::from(at) * 16, &bytes);
    }

    /// Lays a chain out from descriptor `first` on.
    pub fn chain(&self, ring: &VirtQueue, first: u16, parts: &[Part]) {
        for (i, part) in parts.iter().enumerate() {
            let at = first + i as u16;
            let flags = if i + 1 < parts.len() { NEXT } else { 0 };
            self.descriptor(ring, at, *part, flags, at + 1);
        }
    }

    /// Offers the chain that begins at descriptor `head`, and kicks.
    pub fn offer(&self, ring: &mut VirtQueue, head: u16) {
        let slot = ring.available() + 4 + u64::from(ring.made % QUEUE) * 2;
        self.write(slot, &head.to_le_bytes());
        ring.made = ring.made.wrapping_add(1);
        self.publish(ring);
    }

    /// Makes `ring.made` known.
    pub fn publish(&self, ring: &VirtQueue) {
        self.memory
            .store(
                ring.made.to_le(),
                GuestAddress(ring.available() + 2),
                Ordering::SeqCst,
            )
            .expect("in memory");
        // Like the driver, without a kick if the card has disabled them.
        if !self.quiet(ring) {
            ring.kick.write(1).expect("kick");
        }
    }

    pub fn used_index(&self, ring: &VirtQueue) -> u16 {
        self.memory
            .load::<u16>(GuestAddress(ring.used() + 2), Ordering::SeqCst)
            .map(u16::from_le)
            .expect("in memory")
    }

    /// Whether the card has disabled kicks.
    pub fn quiet(&self, ring: &VirtQueue) -> bool {
        self.memory
            .load::<u16>(GuestAddress(ring.used()), Ordering::SeqCst)
            .expect("in memory")
            != 0
    }

    /// Waits for the next chain to come back: its head, and how much was written.
    pub fn wait(&self, ring: &mut VirtQueue) -> Option<(u32, u32)> {
        let end = Instant::now() + PATIENCE;
        while self.used_index(ring) == ring.seen {
            if Instant::now() > end {
                return None;
            }
            std::thread::yield_now();
        }
        let slot = ring.used() + 4 + u64::from(ring.seen % QUEUE) * 8;
        ring.seen = ring.seen.wrapping_add(1);
        let word = |at| u32::from_le_bytes(self.read(at, 4).try_into().unwrap());
        Some((word(slot), word(slot + 4)))
    }

    /// Sends bytes as a command with room for an answer; returns the written part.
    pub fn send(&mut self, message: &[u8], room: u32) -> Vec<u8> {
        self.write(BUFFERS, message);
        let answer = BUFFERS + 0x4_0000;
        let mut parts = vec![(BUFFERS, message.len() as u32, false)];
        if room != 0 {
            self.write(answer, &vec![0xee; room as usize]);
            parts.push((answer, room, true));
        }
        self.exchange(&parts)
            .map(|length| self.read(answer, length as usize))
            .expect("an answer")
    }

    /// Offers a chain on the command queue and waits; how much was written.
    pub fn exchange(&mut self, parts: &[Part]) -> Option<u32> {
        let mut ring = std::mem::replace(&mut self.commands, VirtQueue::new(0));
        self.chain(&ring, 0, parts);
        self.offer(&mut ring, 0);
        let used = self.wait(&mut ring);
        self.commands = ring;
        used.map(|(_, length)| length)
    }

    pub fn config_read(&mut self, at: u64, size: u32) -> Vec<u8> {
        self.send(&message(1, 0, size, at, &[]), size)
    }

    pub fn config_write(&mut self, at: u64, data: &[u8]) {
        // The driver always sends eight bytes.
        let mut padded = data.to_vec();
        padded.resize(8, 0);
        self.send(&message(2, 0, data.len() as u32, at, &padded), 0);
    }

    pub fn bar_read(&mut self, bar: u8, at: u64, size: u32) -> Vec<u8> {
        self.send(&message(3, bar, size, at, &[]), size)
    }

    pub fn bar_write(&mut self, bar: u8, at: u64, data: &[u8]) {
        self.send(&message(4, bar, data.len() as u32, at, data), 0);
    }

    /// Gives the card an empty buffer for an interrupt, as descriptor and buffer `number`.
    pub fn offer_interrupt(&mut self, number: u16, room: u32) {
        let mut ring = std::mem::replace(&mut self.interrupts, VirtQueue::new(1));
        let buffer = BUFFERS + 0x8_0000 + u64::from(number) * 32;
        self.chain(&ring, number, &[(buffer, room, true)]);
        self.offer(&mut ring, number);
        self.interrupts = ring;
    }

    /// Waits for an interrupt: the address and data of its message.
    pub fn interrupt(&mut self) -> Option<(u64, u32)> {
        let mut ring = std::mem::replace(&mut self.interrupts, VirtQueue::new(1));
        let used = self.wait(&mut ring);
        self.interrupts = ring;
        let (number, length) = used?;
        assert_eq!(length, 20);
        let bytes = self.read(BUFFERS + 0x8_0000 + u64::from(number) * 32, 20);
        assert_eq!(
            (bytes[0], bytes[4]),
            (7, 4),
            "a message-signalled interrupt"
        );
        let address = u64::from_ne_bytes(bytes[8..16].try_into().unwrap());
        Some((address, u32::from_le_bytes(bytes[16..].try_into().unwrap())))
    }

    /// Enables MSI-X and sets vector `number` to send `data` to `address`.
    pub fn enable_vector(&mut self, number: u64, address: u32, data: u32) {
        self.bar_write(3, number * 16, &address.to_le_bytes());
        self.bar_write(3, number * 16 + 4, &[0; 4]);
        self.bar_write(3, number * 16 + 8, &data.to_le_bytes());
        self.bar_write(3, number * 16 + 12, &[0; 4]);
        self.config_write(0x72, &0x8000_u16.to_le_bytes());
    }
}

/// A message of the driver.
pub fn message(op: u8, bar: u8, size: u32, address: u64, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![op, bar, 0, 0];
    bytes.extend(size.to_ne_bytes());
    bytes.extend(address.to_ne_bytes());
    bytes.extend(data);
    bytes
}
