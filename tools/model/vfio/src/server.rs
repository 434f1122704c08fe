// SPDX-License-Identifier: GPL-2.0
//! The listening socket and its connections, one after the other.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nicmodel_device::function::PciFunction;
use nicmodel_device::memory::DmaMemory;

use crate::backend::Backend;
use crate::layout::{self, Layout};
use crate::memory::Mappings;
use crate::registers::SharedRegisters;

/// What can go wrong with a server.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something other than a socket has the path.
    #[error("{0} exists and is not a socket: choose another folder or remove it")]
    NotASocket(PathBuf),
    /// Another process listens there.
    #[error("{0} is in use by another process: choose another folder or end that process")]
    InUse(PathBuf),
    /// The path cannot be bound.
    #[error("cannot listen on {path}: {source}")]
    Bind {
        /// The path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// No connection can be accepted.
    #[error("cannot wait for a client on {path}: {source}")]
    Accept {
        /// The path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The connection ended in the middle of something.
    #[error("the connection to the client on {path} broke: {source}")]
    Connection {
        /// The path.
        path: PathBuf,
        /// How.
        source: vfio_user::Error,
    },
    /// The client sent something that is not vfio-user.
    #[error("the client on {0} broke the protocol")]
    Protocol(PathBuf),
}

/// A socket on which one function is shown to one client at a time.
pub struct Server {
    path: PathBuf,
    listener: Arc<UnixListener>,
    stopped: Arc<AtomicBool>,
    function: Arc<dyn PciFunction>,
    memory: DmaMemory,
    inner: vfio_user::Server,
    /// The protocol server knows only the number of the descriptor.
    _registers: Option<SharedRegisters>,
}

/// Makes a server stop waiting for clients.
#[derive(Debug, Clone)]
pub struct Stop {
    listener: Arc<UnixListener>,
    stopped: Arc<AtomicBool>,
}

impl Stop {
    /// [`Server::serve`] returns at once if it waits for a client, else when its client is gone.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        // SAFETY: the descriptor is open as long as the listener lives. A listening socket that
        // is shut down makes accept() return; there is nothing to do should this fail.
        unsafe { libc::shutdown(self.listener.as_raw_fd(), libc::SHUT_RDWR) };
    }
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
        make_free(path)?;
        let bound = |source| Error::Bind {
            path: path.to_owned(),
            source,
        };
        let listener = Arc::new(UnixListener::bind(path).map_err(bound)?);
        let inner = vfio_user::Server::from_owned_fd(
            OwnedFd::from(listener.try_clone().map_err(bound)?),
            true,
            layout::irqs(&*function),
            layout.regions(&*function, registers.as_ref()),
        );
        Ok(Self {
            path: path.to_owned(),
            listener,
            stopped: Arc::default(),
            function,
            memory,
            inner,
            _registers: registers,
        })
    }

    /// A handle that stops the server from another thread.
    pub fn stopper(&self) -> Stop {
        Stop {
            listener: Arc::clone(&self.listener),
            stopped: Arc::clone(&self.stopped),
        }
    }

    /// Waits for a client and serves it until it goes; then the function is as after power on.
    ///
    /// False: the server was stopped before a client came.
    pub fn serve(&self) -> Result<bool, Error> {
        if self.stopped.load(Ordering::Acquire) {
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
        match result {
            Ok(Ok(())) => Ok(true),
            Ok(Err(vfio_user::Error::SocketAccept(source))) => {
                if self.stopped.load(Ordering::Acquire) {
                    Ok(false)
                } else {
                    Err(Error::Accept {
                        path: self.path.clone(),
                        source,
                    })
                }
            }
            Ok(Err(source)) => Err(Error::Connection {
                path: self.path.clone(),
                source,
            }),
            Err(_) => Err(Error::Protocol(self.path.clone())),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // If it is gone already, so much the better.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes a socket that was left behind.
fn make_free(path: &Path) -> Result<(), Error> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !metadata.file_type().is_socket() {
        return Err(Error::NotASocket(path.to_owned()));
    }
    if UnixStream::connect(path).is_ok() {
        return Err(Error::InUse(path.to_owned()));
    }
    std::fs::remove_file(path).map_err(|source| Error::Bind {
        path: path.to_owned(),
        source,
    })
}
