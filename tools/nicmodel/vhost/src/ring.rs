// SPDX-License-Identifier: GPL-2.0
//! One virtqueue of a connection, and the chains of buffers in it.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use vhost_user_backend::{VringMutex, VringState, VringT};
use virtio_queue::{DescriptorChain, QueueOwnedT, QueueT};
use vm_memory::{Bytes, GuestAddress, GuestMemoryAtomic, GuestMemoryMmap};

use crate::protocol::Malformed;

pub(crate) type Map = GuestMemoryMmap<()>;
pub(crate) type Memory = GuestMemoryAtomic<Map>;
pub(crate) type Vring = VringMutex<Memory>;

/// A chain may have no more parts; the driver's have three.
const MAX_PARTS: usize = 32;
/// A message may be no longer: a whole BAR and a header fit.
const MAX_MESSAGE: usize = (128 << 10) + 64;

/// The place of a queue that is there while a client is.
#[derive(Default)]
pub(crate) struct Slot(ArcSwapOption<Vring>);

impl Slot {
    pub(crate) fn attach(&self, ring: &Vring) {
        if self.0.load().is_none() {
            self.0.store(Some(Arc::new(ring.clone())));
        }
    }

    pub(crate) fn detach(&self) {
        self.0.store(None);
    }

    /// Runs `work` on the queue under its lock, if there is one and it is in use.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut VringState<Memory>) -> T) -> Option<T> {
        let ring = self.0.load();
        let mut state = ring.as_ref()?.get_mut();
        let used = state.is_enabled() && state.get_queue().ready();
        used.then(|| work(&mut state))
    }
}

/// The result of looking for the next chain.
pub(crate) enum Next<'a> {
    Chain(DescriptorChain<&'a Map>),
    Empty,
    /// The queue says things that cannot be: it must not be used any more.
    Broken,
}

pub(crate) fn next<'a>(state: &mut VringState<Memory>, map: &'a Map) -> Next<'a> {
    match state.get_queue_mut().iter(map) {
        Ok(mut chains) => chains.next().map_or(Next::Empty, Next::Chain),
        Err(_) => Next::Broken,
    }
}

/// The buffers of a chain: first the guest's request, then room for an answer.
///
/// Kept from one message to the next, so that none of them allocates.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(crate) message: Vec<u8>,
    room: Vec<(GuestAddress, usize)>,
}

impl Buffers {
    /// Takes over a chain.
    pub(crate) fn load(
        &mut self,
        map: &Map,
        chain: DescriptorChain<&Map>,
    ) -> Result<(), Malformed> {
        self.message.clear();
        self.room.clear();
        for (count, part) in chain.enumerate() {
            if count == MAX_PARTS {
                return Err(Malformed::Buffers);
            }
            let length = part.len() as usize;
            if part.is_write_only() {
                self.room.push((part.addr(), length));
                continue;
            }
            let start = self.message.len();
            if length > MAX_MESSAGE - start {
                return Err(Malformed::Buffers);
            }
            self.message.resize(start + length, 0);
            map.read_slice(&mut self.message[start..], part.addr())
                .map_err(|_| Malformed::Buffers)?;
        }
        Ok(())
    }

    /// How many bytes the guest has made room for.
    pub(crate) fn space(&self) -> usize {
        self.room.iter().map(|(_, length)| length).sum()
    }

    /// Writes the answer; returns how much of it was written.
    pub(crate) fn store(&self, map: &Map, answer: &[u8]) -> usize {
        let mut done = 0;
        for (address, length) in &self.room {
            let part = &answer[done..answer.len().min(done + length)];
            if map.write_slice(part, *address).is_err() {
                break;
            }
            done += part.len();
        }
        done
    }
}
