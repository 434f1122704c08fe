// SPDX-License-Identifier: GPL-2.0
//! A tap device of the host.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

const DEVICE: &str = "/dev/net/tun";
/// `_IOW('T', 202, int)`
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const IFF_TAP: u16 = 0x0002;
const IFF_NO_PI: u16 = 0x1000;
const NAME: usize = 16;

/// An attached tap device.
#[derive(Debug)]
pub(crate) struct Tap {
    file: File,
    buffer: Vec<u8>,
}

impl Tap {
    /// Attaches to the device `name`, which is made if it is not there.
    pub(crate) fn attach(name: &str) -> Result<Self, String> {
        if name.is_empty() || name.len() >= NAME || name.contains(['/', '\0']) {
            return Err(format!("{name:?} is no name of a network device"));
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(DEVICE)
            .map_err(|error| format!("cannot open {DEVICE}: {error}; is the tun module there?"))?;
        let mut request = [0_u8; 40];
        request[..name.len()].copy_from_slice(name.as_bytes());
        request[NAME..NAME + 2].copy_from_slice(&(IFF_TAP | IFF_NO_PI).to_ne_bytes());
        // SAFETY: the descriptor is open, and the request is as large as struct ifreq.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF, request.as_mut_ptr()) };
        if result < 0 {
            let error = std::io::Error::last_os_error();
            return Err(format!(
                "cannot attach to tap device {name}: {error}; it needs root"
            ));
        }
        Ok(Self {
            file,
            buffer: vec![0; 65536],
        })
    }

    /// The next frame that the host sent, if there is one.
    pub(crate) fn receive(&mut self) -> Option<&[u8]> {
        loop {
            match self.file.read(&mut self.buffer) {
                Ok(length) => return Some(&self.buffer[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Nothing there, or the device is down.
                Err(_) => return None,
            }
        }
    }

    /// Hands a frame to the host; lost if the host does not take it.
    pub(crate) fn send(&mut self, frame: &[u8]) {
        let _ = self.file.write(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_names_are_refused_before_anything_is_opened() {
        for name in ["", "a/b", "sixteen-letters!"] {
            assert!(Tap::attach(name).expect_err(name).contains("no name"));
        }
    }
}
