// SPDX-License-Identifier: GPL-2.0
//! The end of a wire: a modelled card, or one of QEMU's behind a socket.

use nicmodel_device::port::{Arrival, Datapath, Loss};

use crate::stream::Stream;

/// A port as the fabric sees it.
pub enum End {
    /// The modelled card.
    Card(Box<Datapath>),
    /// A card of QEMU's.
    Stream(Stream),
}

impl End {
    /// Begins a turn. False: nothing moves.
    pub(crate) fn begin_at(&mut self, now: u64) -> bool {
        match self {
            Self::Card(path) => path.begin_at(now),
            Self::Stream(stream) => {
                stream.begin();
                true
            }
        }
    }

    /// Ends a turn. Returns when an interrupt is due.
    pub(crate) fn end(&mut self) -> Option<u64> {
        match self {
            Self::Card(path) => path.end(),
            Self::Stream(stream) => {
                stream.drain();
                None
            }
        }
    }

    pub(crate) fn mac(&self) -> [u8; 6] {
        match self {
            Self::Card(path) => path.device().identity.mac,
            Self::Stream(stream) => stream.mac(),
        }
    }

    /// Whether it sends without telling the engine.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Self::Stream(_))
    }

    pub(crate) fn loopback(&self) -> bool {
        match self {
            Self::Card(path) => path.loopback(),
            Self::Stream(_) => false,
        }
    }

    pub(crate) fn waiting(&self) -> bool {
        match self {
            Self::Card(path) => path.waiting(),
            Self::Stream(stream) => stream.waiting(),
        }
    }

    pub(crate) fn room(&self, length: usize) -> bool {
        match self {
            Self::Card(path) => path.room(length),
            Self::Stream(stream) => stream.room(length),
        }
    }

    pub(crate) fn receive(&mut self, tag: u32, frame: &[u8]) -> Arrival {
        match self {
            Self::Card(path) => path.receive(tag, frame),
            Self::Stream(stream) => stream.receive(frame),
        }
    }

    pub(crate) fn receive_looped(&mut self, frame: &[u8]) -> Arrival {
        match self {
            Self::Card(path) => path.receive_looped(frame),
            Self::Stream(stream) => stream.receive(frame),
        }
    }

    pub(crate) fn drain(&mut self, budget: usize) -> bool {
        match self {
            Self::Card(path) => path.drain(budget),
            Self::Stream(stream) => stream.drain(),
        }
    }

    pub(crate) fn transmit(&mut self, limit: usize, f: impl FnMut(&[u8], bool)) -> bool {
        match self {
            Self::Card(path) => path.transmit(limit, f),
            Self::Stream(stream) => stream.transmit(limit, f),
        }
    }

    pub(crate) fn take_flushed(&mut self) -> Vec<(u32, Loss)> {
        match self {
            Self::Card(path) => path.take_flushed(),
            Self::Stream(_) => Vec::new(),
        }
    }
}
