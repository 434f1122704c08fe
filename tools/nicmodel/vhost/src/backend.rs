// SPDX-License-Identifier: GPL-2.0
//! The callbacks of the protocol server.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use nicmodel_device::function::PciFunction;
use vhost::vhost_user::message::{VhostUserProtocolFeatures, VhostUserVirtioFeatures};
use vhost_user_backend::VhostUserBackend;
use vmm_sys_util::epoll::EventSet;
use vmm_sys_util::event::{
    EventConsumer, EventFlag, EventNotifier, new_event_consumer_and_notifier,
};

use crate::commands::Commands;
use crate::interrupts::Interrupts;
use crate::msix::Msix;
use crate::ring::{Memory, Vring};
use crate::shared::SharedPages;

const COMMANDS: u16 = 0;
const INTERRUPTS: u16 = 1;
const QUEUES: usize = 2;
const QUEUE_SIZE: usize = 256;
/// `VIRTIO_F_VERSION_1`: the ring is in the order of bytes that both sides have.
const VERSION_1: u64 = 1 << 32;
/// The device's own feature 0: pages of registers may lie in guest memory.
const SHARED_PAGES: u64 = 1;

/// One connection.
pub(crate) struct Backend {
    pub(crate) function: Arc<dyn PciFunction>,
    pub(crate) commands: Arc<Commands>,
    pub(crate) interrupts: Arc<Interrupts>,
    pub(crate) msix: Arc<Msix>,
    pub(crate) pages: Arc<SharedPages>,
    /// Kept, because the guest takes the device for unplugged when it is closed.
    pub(crate) requests: Mutex<Option<vhost::vhost_user::Backend>>,
}

impl VhostUserBackend for Backend {
    type Bitmap = ();
    type Vring = Vring;

    fn num_queues(&self) -> usize {
        QUEUES
    }

    fn max_queue_size(&self) -> usize {
        QUEUE_SIZE
    }

    fn features(&self) -> u64 {
        let pages = if self.pages.any_offered() {
            SHARED_PAGES
        } else {
            0
        };
        VERSION_1 | VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits() | pages
    }

    fn protocol_features(&self) -> VhostUserProtocolFeatures {
        VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::REPLY_ACK
            | VhostUserProtocolFeatures::BACKEND_REQ
            | VhostUserProtocolFeatures::CONFIG
    }

    fn set_event_idx(&self, _enabled: bool) {}

    fn get_config(&self, offset: u32, size: u32) -> Vec<u8> {
        // Zero past the end: a guest that knows more than we do finds nothing there.
        let config = self.pages.config();
        let byte = |at: u32| config.get(at as usize).copied().unwrap_or(0);
        (0..size).map(|i| byte(offset.saturating_add(i))).collect()
    }

    fn update_memory(&self, _memory: Memory) -> io::Result<()> {
        self.commands.unshare_all();
        // The function sees the new map already. Once the client has its answer, no DMA to the
        // old one may be under way.
        self.function.quiesce();
        Ok(())
    }

    fn set_backend_req_fd(&self, requests: vhost::vhost_user::Backend) {
        *self.requests.lock().unwrap_or_else(PoisonError::into_inner) = Some(requests);
    }

    fn exit_event(&self, _thread: usize) -> Option<(EventConsumer, EventNotifier)> {
        new_event_consumer_and_notifier(EventFlag::NONBLOCK | EventFlag::CLOEXEC).ok()
    }

    fn stop_vring(&self, queue: u32) -> io::Result<()> {
        if queue == u32::from(COMMANDS) {
            self.commands.unshare_all();
        }
        Ok(())
    }

    fn handle_event(
        &self,
        event: u16,
        _set: EventSet,
        rings: &[Vring],
        _thread: usize,
    ) -> io::Result<()> {
        match (event, rings.get(usize::from(event))) {
            (COMMANDS, Some(ring)) => {
                self.commands.attach(ring);
                self.commands.notified();
            }
            (INTERRUPTS, Some(ring)) => {
                self.interrupts.attach(ring);
                self.msix.retry();
            }
            _ => {}
        }
        Ok(())
    }
}
