// SPDX-License-Identifier: GPL-2.0
//! Pages of registers that lie in guest memory, so that the guest reaches them without a message.
//!
//! A guest that supports it requests it page by page. The page of guest memory is then mapped in
//! the place of the page of registers: the card goes on as before, and polls for changes.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nicmodel_device::regs::file::{BYTES, RegisterFile, TooSmall};
use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryRegion, MmapRegion};

use crate::ring::Map;

/// Size of a page.
pub const PAGE: u64 = 4096;
/// The BAR that the registers are.
const BAR: u8 = 0;
/// As many as the list in the device's configuration can hold.
const MAX_PAGES: usize = 8;
const CONFIG: usize = 8 + 16 * MAX_PAGES;

/// Why a page is not shared.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Not one of the pages that may be.
    #[error("page {address:#x} of BAR {bar} is not one that can be shared")]
    NotOffered {
        /// BAR.
        bar: u8,
        /// Offset in the BAR.
        address: u64,
    },
    /// Not a page of guest memory.
    #[error("{0:#x} is not a page of guest memory")]
    NotMemory(u64),
    /// The host has its reasons.
    #[error("cannot map a page: {0}")]
    Map(#[from] io::Error),
}

/// The memory of the registers, parts of which can be exchanged for guest memory.
#[derive(Debug)]
pub struct SharedPages {
    memory: Arc<MmapRegion<()>>,
    offered: Vec<u64>,
    shared: Mutex<Vec<u64>>,
}

impl SharedPages {
    /// New registers, and the `offered` pages of them that a guest may share.
    pub fn create(offered: &[u64]) -> Result<(RegisterFile, Self), TooSmall> {
        let memory = Arc::new(MmapRegion::new(BYTES).map_err(|_| TooSmall)?);
        let registers = RegisterFile::from_shared(Arc::clone(&memory))?;
        let offered = offered
            .iter()
            .copied()
            .filter(|page| page.is_multiple_of(PAGE) && page + PAGE <= BYTES as u64)
            .take(MAX_PAGES)
            .collect();
        Ok((
            registers,
            Self {
                memory,
                offered,
                shared: Mutex::default(),
            },
        ))
    }

    /// Whether there is anything to share.
    pub(crate) fn any_offered(&self) -> bool {
        !self.offered.is_empty()
    }

    /// The device's configuration: which pages may be shared.
    pub(crate) fn config(&self) -> [u8; CONFIG] {
        let mut config = [0; CONFIG];
        config[..4].copy_from_slice(&(self.offered.len() as u32).to_le_bytes());
        for (page, entry) in self.offered.iter().zip(config[8..].chunks_exact_mut(16)) {
            entry[..8].copy_from_slice(&page.to_le_bytes());
            entry[8] = BAR;
        }
        config
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn offered(&self, bar: u8, address: u64) -> Result<u64, Refused> {
        if bar == BAR && self.offered.contains(&address) {
            return Ok(address);
        }
        Err(Refused::NotOffered { bar, address })
    }

    /// Lets the registers of a page lie at `place` of guest memory from now on.
    pub(crate) fn share(
        &self,
        map: &Map,
        bar: u8,
        address: u64,
        place: u64,
    ) -> Result<(), Refused> {
        let page = self.offered(bar, address)?;
        let (file, offset) = locate(map, place).ok_or(Refused::NotMemory(place))?;
        let mut shared = self.lock();
        // The card's values must be there before the guest looks.
        let values = self.values(page);
        map.write_slice(&values, GuestAddress(place))
            .map_err(|_| Refused::NotMemory(place))?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the page lies within the mapping, which lives as long as `self.memory` and is
        // reached by atomic accesses only, so that memory which others write may take its place.
        let mapped = unsafe {
            libc::mmap(
                self.place(page),
                PAGE as usize,
                protection,
                libc::MAP_SHARED | libc::MAP_FIXED,
                file,
                offset,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().into());
        }
        if !shared.contains(&page) {
            shared.push(page);
        }
        Ok(())
    }

    /// Takes the registers of a page back.
    pub(crate) fn unshare(&self, bar: u8, address: u64) -> Result<(), Refused> {
        let page = self.offered(bar, address)?;
        let mut shared = self.lock();
        if shared.contains(&page) {
            self.take_back(page)?;
            shared.retain(|other| *other != page);
        }
        Ok(())
    }

    /// Takes all of them back, as when the guest has gone.
    pub(crate) fn clear(&self) {
        let mut shared = self.lock();
        for page in shared.drain(..) {
            if let Err(error) = self.take_back(page) {
                eprintln!("nicmodel: registers at {page:#x} stay in guest memory: {error}");
            }
        }
    }

    /// Whether a page is shared now.
    pub(crate) fn any_shared(&self) -> bool {
        !self.lock().is_empty()
    }

    fn place(&self, page: u64) -> *mut libc::c_void {
        self.memory.as_ptr().wrapping_add(page as usize).cast()
    }

    fn values(&self, page: u64) -> [u8; PAGE as usize] {
        use vm_memory::VolatileMemory;
        let mut values = [0; PAGE as usize];
        if let Ok(slice) = self.memory.get_slice(page as usize, PAGE as usize) {
            slice.copy_to(&mut values[..]);
        }
        values
    }

    /// Puts a page of our own with the same values in the place of the guest's, in one step.
    fn take_back(&self, page: u64) -> io::Result<()> {
        let values = self.values(page);
        let length = PAGE as usize;
        // SAFETY: the first call makes a page that nothing else uses, which is filled before it
        // is moved over one within the mapping that `self.memory` keeps.
        unsafe {
            let fresh = libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if fresh == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            std::ptr::copy_nonoverlapping(values.as_ptr(), fresh.cast(), length);
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            if libc::mremap(fresh, length, length, flags, self.place(page)) == libc::MAP_FAILED {
                let error = io::Error::last_os_error();
                libc::munmap(fresh, length);
                return Err(error);
            }
        }
        Ok(())
    }
}

/// The file behind a page of guest memory, and where in it the page is.
fn locate(map: &Map, place: u64) -> Option<(RawFd, libc::off_t)> {
    let region = map.find_region(GuestAddress(place))?;
    let inside = place.checked_sub(region.start_addr().0)?;
    let file = region.file_offset()?;
    let offset = file.start().checked_add(inside)?;
    let whole = inside.checked_add(PAGE)? <= region.len();
    (whole && place.is_multiple_of(PAGE) && offset.is_multiple_of(PAGE))
        .then(|| Some((file.file().as_raw_fd(), offset.try_into().ok()?)))?
}
