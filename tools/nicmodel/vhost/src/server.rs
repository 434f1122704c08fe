// SPDX-License-Identifier: GPL-2.0
//! The listening socket and its connections, one after the other.

use std::path::Path;
use std::sync::{Arc, Mutex};

use nicmodel_device::function::PciFunction;
use nicmodel_transport::{Error, Listener, Stop};
use vhost::vhost_user::Error as Broken;
use vhost_user_backend::{Error as Ended, VhostUserDaemon};

use crate::backend::Backend;
use crate::commands::Commands;
use crate::interrupts::Interrupts;
use crate::msix::Msix;
use crate::ring::Memory;
use crate::shared::SharedPages;

/// A socket on which one function is shown to one guest at a time.
pub struct Server {
    listener: Listener,
    function: Arc<dyn PciFunction>,
    memory: Memory,
    commands: Arc<Commands>,
    interrupts: Arc<Interrupts>,
    msix: Arc<Msix>,
    pages: Arc<SharedPages>,
}

impl Server {
    /// Listens on `path` for a guest that drives `function`.
    ///
    /// `pages` are those of its registers that a guest may ask to have in its own memory.
    pub fn bind(
        path: &Path,
        function: Arc<dyn PciFunction>,
        pages: SharedPages,
    ) -> Result<Self, Error> {
        let listener = Listener::bind(path)?;
        let memory = function.memory().shared();
        let interrupts = Arc::new(Interrupts::new(memory.clone()));
        let msix = Arc::new(Msix::new(
            Arc::clone(&function),
            Arc::clone(&interrupts) as _,
        ));
        let pages = Arc::new(pages);
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let commands = Arc::new(Commands::new(
            name.into_owned(),
            Arc::clone(&function),
            memory.clone(),
            Arc::clone(&msix),
            Arc::clone(&pages),
        ));
        Ok(Self {
            listener,
            function,
            memory,
            commands,
            interrupts,
            msix,
            pages,
        })
    }

    /// The queue of the guest's accesses, for the engine to poll.
    pub fn commands(&self) -> Arc<Commands> {
        Arc::clone(&self.commands)
    }

    /// A handle that stops the server from another thread.
    pub fn stopper(&self) -> Stop {
        self.listener.stopper()
    }

    fn connection(&self, cause: String) -> Error {
        Error::Connection {
            path: self.listener.path().to_owned(),
            cause,
        }
    }

    /// The state of a connection goes away.
    fn disconnect(&self) {
        self.commands.detach();
        self.interrupts.detach();
        self.function.disconnect();
        self.msix.clear();
    }
}

impl nicmodel_transport::Server for Server {
    fn serve(&self) -> Result<bool, Error> {
        if self.listener.stopped() {
            return Ok(false);
        }
        let backend = Arc::new(Backend {
            function: Arc::clone(&self.function),
            commands: Arc::clone(&self.commands),
            interrupts: Arc::clone(&self.interrupts),
            msix: Arc::clone(&self.msix),
            pages: Arc::clone(&self.pages),
            requests: Mutex::default(),
        });
        let name = format!("vhost-{}", self.listener.path().display());
        let mut daemon = VhostUserDaemon::new(name, backend, self.memory.clone())
            .map_err(|error| self.connection(error.to_string()))?;
        let mut socket = self.listener.socket()?.into();
        self.msix.connect();
        let result = match daemon.start(&mut socket) {
            Ok(()) => daemon.wait(),
            Err(Ended::CreateBackendListener(Broken::SocketError(source))) => {
                return self.listener.refused(source);
            }
            Err(error) => Err(error),
        };
        // First the thread that attaches queues, then the queues.
        drop(daemon);
        self.disconnect();
        match result {
            Ok(()) => Ok(true),
            Err(Ended::HandleRequest(Broken::Disconnected | Broken::PartialMessage)) => Ok(true),
            Err(Ended::WaitDaemon(_)) => Err(Error::Protocol(self.listener.path().to_owned())),
            Err(error) => Err(self.connection(error.to_string())),
        }
    }
}
