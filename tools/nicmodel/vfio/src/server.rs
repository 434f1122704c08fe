// SPDX-License-Identifier: GPL-2.0
//! The listening socket and its connections, one after the other.

use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use nicmodel_device::function::PciFunction;
use nicmodel_device::memory::DmaMemory;
use nicmodel_transport::{Error, Listener, Stop};

use crate::backend::Backend;
use crate::layout::{self, Layout};
use crate::memory::Mappings;
use crate::registers::SharedRegisters;

/// A socket on which one function is shown to one client at a time.
pub struct Server {
    listener: Listener,
    function: Arc<dyn PciFunction>,
    memory: DmaMemory,
    inner: vfio_user::Server,
    /// The protocol server knows only the number of the descriptor.
    _registers: Option<SharedRegisters>,
}

impl Server {
    /// Listens on `path` for a client of `function`, whose guest memory appears in `memory`.
    ///
    /// With `registers`, the pages of `layout` are mapped by the client.
    pub fn bind(
        path: &Path,
        function: Arc<dyn PciFunction>,
        memory: DmaMemory,
        registers: Option<SharedRegisters>,
        layout: &Layout,
    ) -> Result<Self, Error> {
        let listener = Listener::bind(path)?;
        let inner = vfio_user::Server::from_owned_fd(
            OwnedFd::from(listener.socket()?),
            true,
            layout::irqs(&*function),
            layout.regions(&*function, registers.as_ref()),
        );
        Ok(Self {
            listener,
            function,
            memory,
            inner,
            _registers: registers,
        })
    }

    /// A handle that stops the server from another thread.
    pub fn stopper(&self) -> Stop {
        self.listener.stopper()
    }
}

impl nicmodel_transport::Server for Server {
    fn serve(&self) -> Result<bool, Error> {
        if self.listener.stopped() {
            return Ok(false);
        }
        let mut backend = Backend {
            function: &*self.function,
            mappings: Mappings::new(self.memory.clone()),
        };
        // The protocol server trusts sizes that the client sends and panics on wrong ones. None
        // of its state outlives a connection, and ours is cleared below.
        let result = catch_unwind(AssertUnwindSafe(|| self.inner.run(&mut backend)));
        backend.mappings.clear();
        self.function.disconnect();
        let path = self.listener.path().to_owned();
        match result {
            Ok(Ok(())) => Ok(true),
            Ok(Err(vfio_user::Error::SocketAccept(source))) => self.listener.refused(source),
            Ok(Err(source)) => Err(Error::Connection {
                path,
                cause: source.to_string(),
            }),
            Err(_) => Err(Error::Protocol(path)),
        }
    }
}
