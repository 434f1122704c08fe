// SPDX-License-Identifier: GPL-2.0

//! Sends back what a queue receives, by an AF_XDP library that is not ours: for the driver, another
//! user than those of its own tests.
//!
//! `xskreflect INTERFACE QUEUE FLAGS` binds a socket to the queue, with these flags of `bind()`, and
//! prints the number of its file, so that another process can put it into a map. It ends with its
//! standard input.

use std::collections::VecDeque;
use std::ffi::CString;
use std::io::{self, ErrorKind, Read as _, stdin};
use std::num::NonZeroU32;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use xdpilone::xdp::XdpDesc;
use xdpilone::{DeviceQueue, IfInfo, RingRx, RingTx, Socket, SocketConfig, Umem, UmemConfig};

const CHUNK: usize = 2048;
const CHUNKS: usize = 512;
/// Descriptors of each ring: as many as there are chunks, so that there is always room.
const ENTRIES: NonZeroU32 = NonZeroU32::new(CHUNKS as u32).unwrap();
const PATIENCE: Duration = Duration::from_secs(20);

#[repr(align(4096))]
struct Memory([u8; CHUNK * CHUNKS]);

/// A socket with its rings.
struct Reflector {
    queue: DeviceQueue,
    rx: RingRx,
    tx: RingTx,
    /// Frames that have come, and are to be sent.
    frames: VecDeque<XdpDesc>,
}

impl Reflector {
    fn new(interface: &str, queue: u32, flags: u16) -> Result<Self> {
        let memory = Box::leak(Box::new(Memory([0; CHUNK * CHUNKS])));
        let config = UmemConfig {
            fill_size: ENTRIES.get(),
            complete_size: ENTRIES.get(),
            frame_size: CHUNK as u32,
            headroom: 0,
            flags: 0,
        };
        let failed = |what| move |error| anyhow!("{what}: {error}");
        // SAFETY: The memory is aligned, there until the process ends, and used by nobody else.
        let umem =
            unsafe { Umem::new(config, NonNull::from(&mut memory.0)) }.map_err(failed("memory"))?;
        let mut info = IfInfo::invalid();
        info.from_name(&CString::new(interface)?)
            .map_err(failed("interface"))?;
        info.set_queue(queue);
        let socket = Socket::with_shared(&info, &umem).map_err(failed("socket"))?;
        let mut queue = umem.fq_cq(&socket).map_err(failed("queue"))?;
        let config = SocketConfig {
            rx_size: Some(ENTRIES),
            tx_size: Some(ENTRIES),
            bind_flags: flags,
        };
        let user = umem.rx_tx(&socket, &config).map_err(failed("rings"))?;
        let rx = user.map_rx().map_err(failed("RX ring"))?;
        let tx = user.map_tx().map_err(failed("TX ring"))?;
        let end = Instant::now() + PATIENCE;
        while let Err(error) = umem.bind(&user) {
            // The socket before may not have gone yet.
            let is_busy =
                io::Error::from_raw_os_error(error.get_raw()).kind() == ErrorKind::ResourceBusy;
            if !is_busy || Instant::now() > end {
                return Err(failed("bind()")(error));
            }
            thread::sleep(Duration::from_millis(10));
        }

        let mut fill = queue.fill(ENTRIES.get());
        fill.insert((0..CHUNKS as u64).map(|number| number * CHUNK as u64));
        fill.commit();
        drop(fill);
        Ok(Self {
            queue,
            rx,
            tx,
            frames: VecDeque::new(),
        })
    }

    /// Sends frames back that have come, and gives memory back. Returns whether there was anything.
    fn step(&mut self) -> bool {
        let mut sent = self.queue.complete(ENTRIES.get());
        let back: Vec<_> = std::iter::from_fn(|| sent.read()).collect();
        sent.release();
        drop(sent);
        let mut fill = self.queue.fill(back.len() as u32);
        fill.insert(back.iter().copied());
        fill.commit();
        drop(fill);

        let mut received = self.rx.receive(ENTRIES.get());
        self.frames.extend(std::iter::from_fn(|| received.read()));
        received.release();
        drop(received);
        let mut transmit = self.tx.transmit(self.frames.len() as u32);
        let count = transmit.insert(self.frames.iter().copied());
        transmit.commit();
        drop(transmit);
        self.frames.drain(..count as usize);

        if self.queue.needs_wakeup() {
            self.queue.wake();
        }
        // Without the flag for it, the kernel never says so.
        self.tx.wake();
        count != 0 || !back.is_empty()
    }
}

fn main() -> Result<()> {
    let mut words = std::env::args().skip(1);
    let mut word = || {
        words
            .next()
            .context("usage: xskreflect INTERFACE QUEUE FLAGS")
    };
    let mut reflector = Reflector::new(&word()?, word()?.parse()?, word()?.parse()?)?;
    let is_over = AtomicBool::new(false);

    println!("{}", reflector.rx.as_raw_fd());
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = stdin().read_to_end(&mut Vec::new());
            is_over.store(true, Ordering::Relaxed);
        });
        while !is_over.load(Ordering::Relaxed) {
            if !reflector.step() {
                thread::sleep(Duration::from_micros(50));
            }
        }
    });
    Ok(())
}
