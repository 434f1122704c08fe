// SPDX-License-Identifier: GPL-2.0
//! Register memory that can be mapped by another process.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::sync::Arc;

use nicmodel_device::regs::file::{BYTES, RegisterFile};
use vm_memory::{FileOffset, MmapRegion};

/// The file behind a [`RegisterFile`].
#[derive(Debug, Clone)]
pub struct SharedRegisters(Arc<File>);

impl SharedRegisters {
    /// New registers, all zero, and the file that they lie in.
    pub fn create() -> io::Result<(RegisterFile, Self)> {
        // SAFETY: the name is a string with a terminator that is static.
        let fd = unsafe {
            libc::memfd_create(
                c"nicmodel-registers".as_ptr(),
                libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above made this descriptor, and nothing else uses it.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(BYTES as u64)?;
        // A client that gets the file must not be able to shorten it: our mapping would fault.
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: the command takes one integer and changes no memory of ours.
        if unsafe { libc::fcntl(fd, libc::F_ADD_SEALS, seals) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let file = Arc::new(file);
        let offset = FileOffset::from_arc(Arc::clone(&file), 0);
        let mapping = MmapRegion::from_file(offset, BYTES).map_err(io::Error::other)?;
        let registers = RegisterFile::new(mapping).map_err(io::Error::other)?;
        Ok((registers, Self(file)))
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn the_file_shows_what_the_registers_hold() {
        let (registers, shared) = SharedRegisters::create().expect("memory");
        registers.store(0x6018, 0x1122_3344);
        let mut bytes = [0; 4];
        shared
            .file()
            .read_exact_at(&mut bytes, 0x6018)
            .expect("read");
        assert_eq!(bytes, [0x44, 0x33, 0x22, 0x11]);
        shared
            .file()
            .write_all_at(&[5, 0, 0, 0], 0x1018)
            .expect("write");
        assert_eq!(registers.load(0x1018), 5);
    }

    #[test]
    fn the_file_cannot_be_shortened() {
        let (_registers, shared) = SharedRegisters::create().expect("memory");
        assert!(shared.file().set_len(0).is_err());
    }
}
