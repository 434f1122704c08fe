// SPDX-License-Identifier: GPL-2.0
//! Common to the transports: a socket on which one client at a time is served.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An error of a server.
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
    #[error("the connection to the client on {path} broke: {cause}")]
    Connection {
        /// The path.
        path: PathBuf,
        /// How.
        cause: String,
    },
    /// The client sent something that the protocol does not know.
    #[error("the client on {0} broke the protocol")]
    Protocol(PathBuf),
}

/// Shows one function to one client after the other.
pub trait Server: Send {
    /// Waits for a client and serves it until it goes; then the function is as after power on.
    ///
    /// False: the server was stopped before a client came.
    fn serve(&self) -> Result<bool, Error>;
}

/// A listening socket that is removed when it goes out of use.
#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    socket: Arc<UnixListener>,
    stopped: Arc<AtomicBool>,
}

/// Makes a server stop waiting for clients.
#[derive(Debug, Clone)]
pub struct Stop {
    socket: Arc<UnixListener>,
    stopped: Arc<AtomicBool>,
}

impl Stop {
    /// [`Server::serve`] returns at once if it waits for a client, else when its client is gone.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        // SAFETY: the descriptor is open as long as the listener lives. A listening socket that
        // is shut down makes accept() return; there is nothing to do should this fail.
        unsafe { libc::shutdown(self.socket.as_raw_fd(), libc::SHUT_RDWR) };
    }
}

impl Listener {
    /// Listens on `path`; a socket that was left behind there is replaced.
    pub fn bind(path: &Path) -> Result<Self, Error> {
        make_free(path)?;
        let socket = UnixListener::bind(path).map_err(|source| Error::Bind {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            path: path.to_owned(),
            socket: Arc::new(socket),
            stopped: Arc::default(),
        })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The socket once more, to accept the connections.
    pub fn socket(&self) -> Result<UnixListener, Error> {
        self.socket.try_clone().map_err(|source| Error::Bind {
            path: self.path.clone(),
            source,
        })
    }

    /// A handle that stops the waiting from another thread.
    pub fn stopper(&self) -> Stop {
        Stop {
            socket: Arc::clone(&self.socket),
            stopped: Arc::clone(&self.stopped),
        }
    }

    /// Whether the waiting is over.
    pub fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// The meaning of a failed accept(): the end, if it was asked for.
    pub fn refused(&self, source: io::Error) -> Result<bool, Error> {
        if self.stopped() {
            return Ok(false);
        }
        Err(Error::Accept {
            path: self.path.clone(),
            source,
        })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes a socket that was left behind.
pub fn make_free(path: &Path) -> Result<(), Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!(
            "nicmodel-transport-{}-{name}.sock",
            std::process::id()
        ))
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
        let path = path("stale");
        drop(UnixListener::bind(&path).expect("bind"));
        assert!(path.exists(), "left behind");
        let listener = Listener::bind(&path).expect("replaces it");
        assert!(matches!(Listener::bind(&path), Err(Error::InUse(_))));
        drop(listener);
        assert!(!path.exists(), "cleaned up");
        std::fs::write(&path, "precious").expect("write");
        assert!(matches!(Listener::bind(&path), Err(Error::NotASocket(_))));
        assert!(path.exists(), "untouched");
        std::fs::remove_file(&path).expect("remove");
    }

    #[test]
    fn stopping_ends_the_wait() {
        let path = path("stop");
        let listener = Listener::bind(&path).expect("bind");
        let socket = listener.socket().expect("socket");
        let stop = listener.stopper();
        let waiting = std::thread::spawn(move || socket.accept().map(drop));
        stop.stop();
        let error = waiting.join().expect("no panic").expect_err("stopped");
        assert!(matches!(listener.refused(error), Ok(false)));
    }
}
