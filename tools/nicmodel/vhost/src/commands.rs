// SPDX-License-Identifier: GPL-2.0
//! The first queue: the guest's requests to the function.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use nicmodel_device::function::{Kick, PciFunction, Source};
use vhost_user_backend::VringState;
use virtio_queue::QueueT;
use vm_memory::GuestAddressSpace;

use crate::msix::Msix;
use crate::protocol::{Command, Malformed};
use crate::ring::{Buffers, Map, Memory, Next, Slot, Vring, next};
use crate::shared::{Refused, SharedPages};

/// Messages served in one go: between two goes the packet engine has its turn.
const BATCH: usize = 64;
/// Most complaints about a guest that are printed.
const COMPLAINTS: u64 = 10;

/// The first queue of one function.
///
/// Two threads may serve it, one at a time: that of the packet engine, which polls while it is
/// awake, and that of the connection, which the guest wakes.
pub struct Commands {
    name: String,
    function: Arc<dyn PciFunction>,
    memory: Memory,
    msix: Arc<Msix>,
    pages: Arc<SharedPages>,
    slot: Slot,
    serving: Mutex<Scratch>,
    kick: OnceLock<Arc<dyn Kick>>,
    malformed: AtomicU64,
}

/// State of serving from one message to the next.
#[derive(Debug, Default)]
struct Scratch {
    buffers: Buffers,
    answer: Vec<u8>,
}

impl Commands {
    pub(crate) fn new(
        name: String,
        function: Arc<dyn PciFunction>,
        memory: Memory,
        msix: Arc<Msix>,
        pages: Arc<SharedPages>,
    ) -> Self {
        Self {
            name,
            function,
            memory,
            msix,
            pages,
            slot: Slot::default(),
            serving: Mutex::default(),
            kick: OnceLock::new(),
            malformed: AtomicU64::new(0),
        }
    }

    /// Sets the engine's waker, for when the guest is awake. Only the first call counts.
    pub fn set_kick(&self, kick: Arc<dyn Kick>) {
        let _ = self.kick.set(kick);
    }

    /// How many messages made no sense.
    pub fn malformed(&self) -> u64 {
        self.malformed.load(Ordering::Relaxed)
    }

    pub(crate) fn attach(&self, ring: &Vring) {
        self.slot.attach(ring);
    }

    pub(crate) fn detach(&self) {
        // Serving must have ended before the function learns that the guest is gone.
        let _serving = self.lock();
        self.slot.detach();
        self.unshare_all();
    }

    /// The guest's kick of the queue.
    pub(crate) fn notified(&self) {
        let mut scratch = self.lock();
        while self.serve(&mut scratch) {}
        drop(scratch);
        if let Some(kick) = self.kick.get() {
            kick.kick();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Scratch> {
        self.serving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a batch; true if there was something.
    fn serve(&self, scratch: &mut Scratch) -> bool {
        self.slot
            .with(|state| self.serve_queue(state, scratch))
            .unwrap_or(false)
    }

    fn serve_queue(&self, state: &mut VringState<Memory>, scratch: &mut Scratch) -> bool {
        let map = self.memory.memory();
        for served in 0..BATCH {
            let chain = match next(state, &map) {
                Next::Chain(chain) => chain,
                Next::Empty => return served != 0,
                Next::Broken => {
                    self.give_up(state);
                    return false;
                }
            };
            let head = chain.head_index();
            let answer = scratch
                .buffers
                .load(&map, chain)
                .and_then(|()| self.run(&map, scratch));
            let length = answer.unwrap_or_else(|error| {
                self.complain(&error.to_string());
                0
            });
            // The guest looks for the answer by itself. It is not interrupted for the end of a
            // posted write either: that would cost more than the write.
            if state.add_used(head, length as u32).is_err() {
                self.give_up(state);
                return false;
            }
        }
        true
    }

    /// A queue that cannot be is not looked at any more: the next look would find the same.
    fn give_up(&self, state: &mut VringState<Memory>) {
        state.get_queue_mut().set_ready(false);
        self.complain("its command queue makes no sense and is not served any more");
    }

    fn complain(&self, text: &str) {
        let count = self.malformed.fetch_add(1, Ordering::Relaxed) + 1;
        if count <= COMPLAINTS {
            eprintln!("nicmodel: {}: the guest errs: {text}", self.name);
        }
        if count == COMPLAINTS {
            eprintln!("nicmodel: {}: no more of this is reported", self.name);
        }
    }

    /// Runs the command in the buffers; returns how many bytes of answer were written.
    fn run(&self, map: &Map, scratch: &mut Scratch) -> Result<usize, Malformed> {
        let Scratch { buffers, answer } = scratch;
        match Command::parse(&buffers.message)? {
            Command::ConfigRead { address, size } => {
                answer.clear();
                answer.resize(size as usize, 0);
                self.function.config_read(address, answer);
                Ok(buffers.store(map, answer))
            }
            Command::ConfigWrite { address, data } => {
                self.function.config_write(address, data);
                self.msix.config_written(address, data.len());
                Ok(0)
            }
            Command::Read { bar, address, size } => {
                self.inside(bar, address, size)?;
                answer.clear();
                answer.resize((size as usize).min(buffers.space()), 0);
                if !self.msix.read(bar, address, answer) {
                    self.function.bar_read(u32::from(bar), address, answer);
                }
                Ok(buffers.store(map, answer))
            }
            Command::Write { bar, address, data } => {
                self.inside(bar, address, data.len() as u32)?;
                self.write(bar, address, data);
                Ok(0)
            }
            Command::Fill {
                bar,
                address,
                size,
                value,
            } => {
                self.inside(bar, address, size)?;
                answer.clear();
                answer.resize(size as usize, value);
                self.write(bar, address, answer);
                Ok(0)
            }
            Command::Share {
                bar,
                address,
                place,
            } => Ok(self.reply(map, buffers, self.pages.share(map, bar, address, place))),
            Command::Unshare { bar, address } => {
                Ok(self.reply(map, buffers, self.pages.unshare(bar, address)))
            }
        }
    }

    /// Answers a command about shared pages.
    fn reply(&self, map: &Map, buffers: &Buffers, result: Result<(), Refused>) -> usize {
        self.function.pages_mapped(self.pages.any_shared());
        let code: u32 = match result {
            Ok(()) => 0,
            Err(refused) => {
                self.complain(&refused.to_string());
                1
            }
        };
        buffers.store(map, &code.to_le_bytes())
    }

    /// No page of registers lies in guest memory any more.
    pub(crate) fn unshare_all(&self) {
        self.pages.clear();
        self.function.pages_mapped(false);
    }

    fn write(&self, bar: u8, address: u64, data: &[u8]) {
        if !self.msix.write(bar, address, data) {
            self.function.bar_write(u32::from(bar), address, data);
        }
    }

    fn inside(&self, bar: u8, address: u64, size: u32) -> Result<(), Malformed> {
        address
            .checked_add(u64::from(size))
            .filter(|end| *end <= self.function.bar_size(u32::from(bar)))
            .map(drop)
            .ok_or(Malformed::Outside { bar, address, size })
    }
}

impl Source for Commands {
    fn poll(&self) -> bool {
        match self.serving.try_lock() {
            Ok(mut scratch) => self.serve(&mut scratch),
            Err(TryLockError::Poisoned(poisoned)) => self.serve(&mut poisoned.into_inner()),
            // The other thread is at it.
            Err(TryLockError::WouldBlock) => true,
        }
    }

    fn sleep(&self) -> bool {
        let map = self.memory.memory();
        self.slot
            .with(|state| state.get_queue_mut().enable_notification(&*map))
            .is_some_and(|more| more.unwrap_or(false))
    }

    fn wake(&self) {
        let map = self.memory.memory();
        self.slot
            .with(|state| state.get_queue_mut().disable_notification(&*map));
    }
}
