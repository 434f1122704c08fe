// SPDX-License-Identifier: GPL-2.0
//! Guest memory as the client maps and unmaps it.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Weak};

use nicmodel_device::memory::DmaMemory;
use vm_memory::{FileOffset, GuestAddress, GuestRegionMmap, MmapRegion};

/// Which parts of guest memory are mapped, so that one request can unmap several.
#[derive(Debug)]
pub(crate) struct Mappings {
    memory: DmaMemory,
    regions: Vec<(u64, u64)>,
    /// Files by device and inode. Behind an IOMMU, each page that is mapped comes with a
    /// descriptor of its own for the same file: thousands of them, more than a process may have.
    files: HashMap<(u64, u64), Weak<File>>,
}

impl Mappings {
    pub(crate) fn new(memory: DmaMemory) -> Self {
        Self {
            memory,
            regions: Vec::new(),
            files: HashMap::new(),
        }
    }

    /// The one descriptor of the file of `file`.
    fn one(&mut self, file: File, metadata: &Metadata) -> Arc<File> {
        let known = self
            .files
            .entry((metadata.dev(), metadata.ino()))
            .or_default();
        known.upgrade().unwrap_or_else(|| {
            let file = Arc::new(file);
            *known = Arc::downgrade(&file);
            file
        })
    }

    /// Maps `size` bytes of `file`, from `offset`, at `address` of the guest.
    ///
    /// Memory that is not `writable` is mapped, too: behind an IOMMU that is what the device
    /// transmits from.
    ///
    /// Memory without a file (ROM, frame buffer, BARs of other devices) is accepted and left
    /// out: reaching it would take messages that the transport does not have. An access is a DMA
    /// error, as on many machines.
    pub(crate) fn map(
        &mut self,
        address: u64,
        size: u64,
        file: Option<(File, u64)>,
        writable: bool,
    ) -> io::Result<()> {
        let Some((file, offset)) = file else {
            return Ok(());
        };
        let length = usize::try_from(size).map_err(io::Error::other)?;
        let metadata = file.metadata()?;
        let end = offset.checked_add(size);
        if metadata.is_file() && end.is_none_or(|end| end > metadata.len()) {
            // An access to a mapping beyond the end of a file kills the process.
            return Err(invalid(format!(
                "{size:#x} bytes at {offset:#x} are not within the file of {:#x} bytes",
                metadata.len()
            )));
        }
        let place = FileOffset::from_arc(self.one(file, &metadata), offset);
        let write = if writable { libc::PROT_WRITE } else { 0 };
        let flags = libc::MAP_NORESERVE | libc::MAP_SHARED;
        let mapping = MmapRegion::build(Some(place), length, libc::PROT_READ | write, flags)
            .map_err(io::Error::other)?;
        let region = GuestRegionMmap::new(mapping, GuestAddress(address))
            .ok_or_else(|| invalid(format!("{size:#x} bytes at {address:#x} wrap around")))?;
        if !self.memory.insert(region) {
            return Err(invalid(format!(
                "{size:#x} bytes at {address:#x} overlap memory that is mapped already"
            )));
        }
        self.regions.push((address, size));
        Ok(())
    }

    /// Unmaps the range; parts that were left out when it was mapped are no error.
    pub(crate) fn unmap(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size);
        let memory = &self.memory;
        self.regions.retain(|(start, length)| {
            let inside = *start >= address && start.saturating_add(*length) <= end;
            if inside {
                memory.remove(*start, *length);
            }
            !inside
        });
    }

    pub(crate) fn clear(&mut self) {
        self.regions.clear();
        self.memory.clear();
    }
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registers::SharedRegisters;

    fn file() -> File {
        let (_, shared) = SharedRegisters::create().expect("memory");
        shared.file().try_clone().expect("descriptor")
    }

    #[test]
    fn maps_where_told_and_unmaps_by_range() {
        let memory = DmaMemory::default();
        let mut mappings = Mappings::new(memory.clone());
        mappings
            .map(0, 0x1000, Some((file(), 0)), true)
            .expect("first");
        mappings
            .map(0x10000, 0x2000, Some((file(), 0x1000)), true)
            .expect("second");
        memory.view().write(0x10ffe, &[1, 2, 3, 4]).expect("inside");
        assert!(memory.view().write(0x1000, &[0]).is_err(), "a hole");
        mappings.unmap(0, 0x8000);
        assert!(memory.view().write(0, &[0]).is_err(), "unmapped");
        assert!(
            memory.view().write(0x10000, &[0]).is_ok(),
            "not in the range"
        );
        mappings.unmap(0x4_0000, 0x1000);
        mappings.clear();
        assert!(memory.view().write(0x10000, &[0]).is_err(), "all gone");
    }

    #[test]
    fn offset_into_the_file_is_honoured() {
        use std::os::unix::fs::FileExt;
        let memory = DmaMemory::default();
        let mut mappings = Mappings::new(memory.clone());
        let guest = file();
        let copy = guest.try_clone().expect("descriptor");
        mappings
            .map(0x5000, 0x1000, Some((guest, 0x2000)), true)
            .expect("map");
        memory.view().write(0x5010, b"here").expect("write");
        let mut bytes = [0; 4];
        copy.read_exact_at(&mut bytes, 0x2010).expect("read");
        assert_eq!(&bytes, b"here");
    }

    #[test]
    fn descriptors_of_one_file_are_kept_once() {
        let guest = file();
        let count = || {
            std::fs::read_dir("/proc/self/fd")
                .expect("descriptors")
                .count()
        };
        let mut mappings = Mappings::new(DmaMemory::default());
        mappings
            .map(
                0,
                0x1000,
                Some((guest.try_clone().expect("descriptor"), 0)),
                true,
            )
            .expect("first");
        let before = count();
        for page in 1..65 {
            let same = guest.try_clone().expect("descriptor");
            mappings
                .map(page * 0x1000, 0x1000, Some((same, 0)), true)
                .expect("another");
        }
        // Other tests may open and close some at the same time.
        assert!(count() < before + 32, "a descriptor for each page");
        mappings.clear();
        mappings
            .map(0, 0x1000, Some((guest, 0)), true)
            .expect("again");
    }

    #[test]
    fn memory_for_reading_is_mapped_for_reading() {
        use std::os::unix::fs::FileExt;
        let memory = DmaMemory::default();
        let mut mappings = Mappings::new(memory.clone());
        let guest = file();
        guest.write_all_at(b"sent", 0x1000).expect("fill");
        mappings
            .map(0x5000, 0x1000, Some((guest, 0x1000)), false)
            .expect("map");
        let mut bytes = [0; 4];
        memory.view().read(0x5000, &mut bytes).expect("mapped");
        assert_eq!(&bytes, b"sent");
        assert!(memory.view().write(0x5000, b"over").is_err(), "not allowed");
    }

    #[test]
    fn memory_without_a_file_is_left_out() {
        let memory = DmaMemory::default();
        let mut mappings = Mappings::new(memory.clone());
        mappings
            .map(0xf_0000, 0x1_0000, None, true)
            .expect("accepted");
        assert!(memory.view().write(0xf_0000, &[0]).is_err());
    }

    #[test]
    fn overlap_and_nonsense_are_errors() {
        let mut mappings = Mappings::new(DmaMemory::default());
        mappings
            .map(0, 0x2000, Some((file(), 0)), true)
            .expect("first");
        assert!(
            mappings
                .map(0x1000, 0x1000, Some((file(), 0)), true)
                .is_err(),
            "overlap"
        );
        assert!(
            mappings.map(0x8000, 0, Some((file(), 0)), true).is_err(),
            "empty"
        );
        assert!(
            mappings
                .map(u64::MAX - 0xfff, 0x2000, Some((file(), 0)), true)
                .is_err(),
            "wraps"
        );
        assert!(
            mappings
                .map(0x10_0000, 1 << 40, Some((file(), 0)), true)
                .is_err(),
            "beyond the file"
        );
    }
}
