// SPDX-License-Identifier: GPL-2.0
//! The transport with a client of the same protocol at its other end.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use nicmodel_device::function::{Notifier, PciFunction};
use nicmodel_device::memory::DmaMemory;
use nicmodel_transport::{Server as _, Stop};
use nicmodel_vfio::{Layout, Server, SharedRegisters};
use vfio_user::Client;

const EVENTFD: u32 = 4 | 32;
const NONE: u32 = 1 | 32;
const MSIX: u32 = 2;

/// Records its requests.
#[derive(Default)]
struct Fake {
    writes: Mutex<Vec<(u32, u64, Vec<u8>)>>,
    vectors: Mutex<Vec<Option<Arc<dyn Notifier>>>>,
    resets: Mutex<u32>,
    disconnects: Mutex<u32>,
    quiesced: Mutex<u32>,
    memory: DmaMemory,
}

impl Fake {
    fn connected(&self) -> Vec<usize> {
        let vectors = self.vectors.lock().unwrap();
        (0..vectors.len())
            .filter(|i| vectors[*i].is_some())
            .collect()
    }
}

impl PciFunction for Fake {
    fn config_read(&self, offset: u64, data: &mut [u8]) {
        for (i, byte) in data.iter_mut().enumerate() {
            *byte = (offset as usize + i) as u8;
        }
    }
    fn config_write(&self, offset: u64, data: &[u8]) {
        self.writes.lock().unwrap().push((7, offset, data.to_vec()));
    }
    fn bar_size(&self, bar: u32) -> u64 {
        match bar {
            0 => 0x20000,
            3 => 0x4000,
            _ => 0,
        }
    }
    fn bar_read(&self, bar: u32, offset: u64, data: &mut [u8]) {
        data.fill((bar as u64 + offset) as u8);
    }
    fn bar_write(&self, bar: u32, offset: u64, data: &[u8]) {
        assert_ne!(offset, 0x666, "a bug of the function");
        self.writes
            .lock()
            .unwrap()
            .push((bar, offset, data.to_vec()));
    }
    fn vectors(&self) -> u32 {
        64
    }
    fn set_vector(&self, vector: u32, notifier: Option<Arc<dyn Notifier>>) {
        let mut vectors = self.vectors.lock().unwrap();
        vectors.resize_with(64, || None);
        vectors[vector as usize] = notifier;
    }
    fn memory(&self) -> &DmaMemory {
        &self.memory
    }
    fn pages_mapped(&self, _mapped: bool) {}
    fn quiesce(&self) {
        *self.quiesced.lock().unwrap() += 1;
    }
    fn reset(&self) {
        *self.resets.lock().unwrap() += 1;
    }
    fn disconnect(&self) {
        *self.disconnects.lock().unwrap() += 1;
    }
}

struct Setup {
    path: PathBuf,
    fake: Arc<Fake>,
    memory: DmaMemory,
    stop: Stop,
    thread: Option<JoinHandle<Vec<bool>>>,
}

impl Setup {
    fn new(name: &str, registers: Option<SharedRegisters>, layout: &Layout) -> Self {
        let path = path(name);
        let fake = Arc::new(Fake::default());
        let memory = DmaMemory::default();
        let server =
            Server::bind(&path, fake.clone(), memory.clone(), registers, layout).expect("bind");
        let stop = server.stopper();
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
            fake,
            memory,
            stop,
            thread: Some(thread),
        }
    }

    /// Whether each connection ended well, once the server has stopped.
    fn finish(mut self) -> Vec<bool> {
        self.stop.stop();
        self.thread.take().unwrap().join().unwrap()
    }
}

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("nicmodel-vfio-{}-{name}.sock", std::process::id()))
}

#[test]
fn reads_and_writes_reach_the_function() {
    let setup = Setup::new("access", None, &Layout::trapped());
    let mut client = Client::new(&setup.path).expect("connect");
    let mut data = [0; 4];
    client.region_read(7, 0x10, &mut data).expect("read");
    assert_eq!(data, [0x10, 0x11, 0x12, 0x13]);
    client.region_read(0, 0x42, &mut data).expect("read");
    assert_eq!(data, [0x42; 4]);
    client.region_write(0, 0x18, &[1, 2, 3, 4]).expect("write");
    client.region_write(7, 4, &[6]).expect("write");
    assert_eq!(
        *setup.fake.writes.lock().unwrap(),
        [(0, 0x18, vec![1, 2, 3, 4]), (7, 4, vec![6])]
    );
    client.reset().expect("reset");
    assert_eq!(*setup.fake.resets.lock().unwrap(), 1);
    assert_eq!(client.region(0).map(|region| region.size), Some(0x20000));
    drop(client);
    assert_eq!(setup.finish(), [true, true]);
}

#[test]
fn doorbell_pages_are_shared() {
    let (registers, shared) = SharedRegisters::create().expect("memory");
    let setup = Setup::new("pages", Some(shared), &Layout::mapped());
    let client = Client::new(&setup.path).expect("connect");
    let region = client.region(0).expect("BAR 0");
    let areas: Vec<_> = region
        .sparse_areas
        .iter()
        .map(|area| (area.offset, area.size))
        .collect();
    assert_eq!(areas, [(0x1000, 0x1000), (0x6000, 0x1000)]);
    let file = region.file_offset.as_ref().expect("a file").file();
    file.write_all_at(&[7, 0, 0, 0], 0x6018).expect("write");
    assert_eq!(registers.load(0x6018), 7);
    for other in [3, 7] {
        let region = client.region(other).expect("a region");
        assert!(region.size != 0 && region.file_offset.is_none(), "{other}");
    }
    drop(client);
    setup.finish();
}

#[test]
fn vectors_come_one_by_one_and_go() {
    let setup = Setup::new("vectors", None, &Layout::trapped());
    let mut client = Client::new(&setup.path).expect("connect");
    let (mut event, theirs) = UnixStream::pair().expect("sockets");
    let fd = theirs.as_raw_fd();
    client
        .set_irqs(MSIX, EVENTFD, 0, 1, &[fd])
        .expect("vector 0");
    client
        .set_irqs(MSIX, EVENTFD, 5, 2, &[fd, fd])
        .expect("vectors 5 and 6");
    client
        .set_irqs(0, EVENTFD, 1, 1, &[fd])
        .expect("INTx is ignored");
    assert_eq!(setup.fake.connected(), [0, 5, 6]);
    let vector = setup.fake.vectors.lock().unwrap()[5]
        .clone()
        .expect("vector 5");
    vector.signal();
    vector.signal();
    let mut bytes = [0; 16];
    event.read_exact(&mut bytes).expect("signalled twice");
    assert_eq!(bytes[..8], 1_u64.to_ne_bytes());
    client
        .set_irqs(MSIX, EVENTFD, 5, 1, &[])
        .expect("no descriptor: gone");
    assert_eq!(setup.fake.connected(), [0, 6]);
    client
        .set_irqs(MSIX, EVENTFD, 63, 2, &[fd, fd])
        .expect("an answer");
    client
        .set_irqs(MSIX, EVENTFD, u32::MAX, 2, &[fd, fd])
        .expect("an answer");
    assert_eq!(setup.fake.connected(), [0, 6], "out of range");
    client.set_irqs(MSIX, NONE, 0, 0, &[]).expect("all");
    assert!(setup.fake.connected().is_empty());
    drop(client);
    setup.finish();
}

#[test]
fn guest_memory_comes_and_goes_with_the_client() {
    let setup = Setup::new("memory", None, &Layout::trapped());
    let (_, guest) = SharedRegisters::create().expect("memory");
    let mut client = Client::new(&setup.path).expect("connect");
    let fd = guest.file().as_raw_fd();
    client.dma_map(0x1000, 0x10_0000, 0x2000, fd).expect("map");
    setup
        .memory
        .view()
        .write(0x10_0004, b"DMA")
        .expect("inside");
    let mut bytes = [0; 3];
    guest
        .file()
        .read_exact_at(&mut bytes, 0x1004)
        .expect("read");
    assert_eq!(&bytes, b"DMA");
    client.dma_unmap(0x10_0000, 0x2000).expect("unmap");
    assert_eq!(*setup.fake.quiesced.lock().unwrap(), 1);
    assert!(setup.memory.view().write(0x10_0004, b"DMA").is_err());
    client.dma_map(0, 0, 0x1000, fd).expect("map");
    drop(client);

    // Another client finds no traces of the first one.
    let client = Client::new(&setup.path).expect("connect again");
    assert!(setup.memory.view().write(0, b"DMA").is_err());
    assert_eq!(*setup.fake.disconnects.lock().unwrap(), 1);
    drop(client);
    assert_eq!(setup.finish(), [true, true, true]);
}

#[test]
fn a_short_message_takes_no_more_memory_than_it_may() {
    let setup = Setup::new("greedy", None, &Layout::trapped());
    let mut stream = UnixStream::connect(&setup.path).expect("connect");
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM"));
        let words: Vec<_> = line.unwrap().split_whitespace().collect();
        words[1].parse::<u64>().unwrap()
    };
    let before = peak();
    // Message 0, command 9: a read of 256 MiB in region 0.
    let mut request = vec![0, 0, 9, 0, 32, 0, 0, 0];
    request.resize(28, 0);
    request.extend_from_slice(&(256_u32 << 20).to_le_bytes());
    stream.write_all(&request).expect("write");
    let mut reply = [0; 16];
    stream.read_exact(&mut reply).expect("an answer");
    assert_ne!(reply[8] & 0x20, 0, "it is an error");
    assert!(peak() < before + (64 << 10), "{before} to {} kB", peak());
    drop(stream);
    setup.finish();
}

#[test]
fn a_client_that_talks_nonsense_ends_only_its_connection() {
    let setup = Setup::new("nonsense", None, &Layout::trapped());
    // A version request whose size is smaller than its header.
    let mut stream = UnixStream::connect(&setup.path).expect("connect");
    let mut request = [0_u8; 20];
    request[2] = 1;
    stream.write_all(&request).expect("write");
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    drop(stream);
    // A function that panics is no better.
    let mut client = Client::new(&setup.path).expect("the server is alive");
    let _ = client.region_write(0, 0x666, &[0; 4]);
    drop(client);
    let mut client = Client::new(&setup.path).expect("the server is still alive");
    client.region_write(0, 0, &[0; 4]).expect("write");
    drop(client);
    assert_eq!(setup.finish(), [false, false, true, true]);
}
