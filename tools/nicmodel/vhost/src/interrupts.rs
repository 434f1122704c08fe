// SPDX-License-Identifier: GPL-2.0
//! The second queue: the guest puts empty buffers in, interrupts come out.

use std::os::fd::AsRawFd;

use virtio_queue::QueueT;
use vm_memory::GuestAddressSpace;

use crate::msix::Messages;
use crate::protocol::interrupt;
use crate::ring::{Buffers, Memory, Next, Slot, Vring, next};

/// Sends interrupts as long as the guest has buffers for them.
pub struct Interrupts {
    memory: Memory,
    slot: Slot,
}

impl Interrupts {
    /// Interrupts to the guest whose memory this is.
    pub(crate) fn new(memory: Memory) -> Self {
        Self {
            memory,
            slot: Slot::default(),
        }
    }

    pub(crate) fn attach(&self, ring: &Vring) {
        self.slot.attach(ring);
        let map = self.memory.memory();
        self.slot.with(|state| {
            // The engine writes to it and must not wait for a guest that does not read.
            if let Some(call) = state.get_call() {
                // SAFETY: the descriptor is open as long as the queue is locked, and the two
                // commands take and give integers only.
                unsafe {
                    let fd = call.as_raw_fd();
                    let flags = libc::fcntl(fd, libc::F_GETFL);
                    libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK);
                }
            }
            // Notifications of new buffers matter only while a message waits for one.
            let _ = state.get_queue_mut().disable_notification(&*map);
        });
    }

    pub(crate) fn detach(&self) {
        self.slot.detach();
    }
}

impl Messages for Interrupts {
    fn send(&self, address: u64, data: u32) -> bool {
        let map = self.memory.memory();
        let message = interrupt(address, data);
        self.slot
            .with(|state| {
                loop {
                    let chain = match next(state, &map) {
                        Next::Chain(chain) => chain,
                        Next::Empty => match state.get_queue_mut().enable_notification(&*map) {
                            Ok(true) => continue,
                            Ok(false) | Err(_) => return false,
                        },
                        Next::Broken => {
                            state.get_queue_mut().set_ready(false);
                            return false;
                        }
                    };
                    let head = chain.head_index();
                    let mut buffers = Buffers::default();
                    let fits =
                        buffers.load(&map, chain).is_ok() && buffers.space() >= message.len();
                    let length = if fits {
                        buffers.store(&map, &message)
                    } else {
                        0
                    };
                    if state.add_used(head, length as u32).is_err() {
                        state.get_queue_mut().set_ready(false);
                        return false;
                    }
                    // A full pipe holds a notification that the guest has not seen yet.
                    let _ = state.signal_used_queue();
                    if length == message.len() {
                        let _ = state.get_queue_mut().disable_notification(&*map);
                        return true;
                    }
                }
            })
            .unwrap_or(false)
    }
}
