// SPDX-License-Identifier: GPL-2.0
//! Guest memory as the device's DMA sees it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use vm_memory::{
    Bytes, GuestAddress, GuestAddressSpace, GuestMemoryAtomic, GuestMemoryBackend,
    GuestMemoryLoadGuard, GuestMemoryMmap, GuestMemoryRegion, GuestRegionMmap, VolatileMemory,
    VolatileSlice,
};

use crate::descriptor::Descriptor;

mod mapped;

pub use mapped::Mapped;

/// A DMA access that does not lie in the guest's memory, or that the memory does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("DMA at {address:#x}, {length} bytes, is not to memory that allows it")]
pub struct DmaError {
    /// First byte of the access.
    pub address: u64,
    /// Length of the access.
    pub length: usize,
}

/// Behind an IOMMU, memory that a driver has mapped for reading only allows no writes.
#[inline]
fn allows_writes(region: &GuestRegionMmap<()>) -> bool {
    region.prot() & libc::PROT_WRITE != 0
}

/// One consistent view of guest memory; cheap to take, valid while held.
#[derive(Debug)]
pub struct View(
    GuestMemoryLoadGuard<GuestMemoryMmap<()>>,
    Option<Arc<Mapped>>,
);

impl View {
    /// Whether the driver has mapped the memory of an access, as far as that is known.
    #[inline]
    fn is_mapped(&self, address: u64, length: usize, writes: bool) -> bool {
        let mapped = self.1.as_ref();
        mapped.is_none_or(|mapped| mapped.allows(address, length, writes))
    }

    /// The memory of an access, if it lies in one region, as nearly all do.
    #[inline]
    fn slice(&self, address: u64, length: usize) -> Option<VolatileSlice<'_>> {
        let region = self.0.find_region(GuestAddress(address))?;
        let inside = usize::try_from(address - region.start_addr().0).ok()?;
        VolatileMemory::get_slice(&**region, inside, length).ok()
    }

    /// The same for a write, which not all memory allows.
    #[inline]
    fn writable(&self, address: u64, length: usize) -> Option<VolatileSlice<'_>> {
        let region = self.0.find_region(GuestAddress(address))?;
        if !allows_writes(region) {
            return None;
        }
        let inside = usize::try_from(address - region.start_addr().0).ok()?;
        VolatileMemory::get_slice(&**region, inside, length).ok()
    }

    /// Whether all of it, in however many regions, is memory that allows writes.
    fn all_writable(&self, address: u64, length: usize) -> bool {
        let Some(end) = address.checked_add(length as u64) else {
            return false;
        };
        let mut at = address;
        while at < end {
            match self.0.find_region(GuestAddress(at)) {
                Some(region) if allows_writes(region) => at = region.last_addr().0 + 1,
                _ => return false,
            }
        }
        true
    }

    fn error(address: u64, length: usize) -> DmaError {
        DmaError { address, length }
    }

    /// Copies out of guest memory.
    pub fn read(&self, address: u64, data: &mut [u8]) -> Result<(), DmaError> {
        if !self.is_mapped(address, data.len(), false) {
            return Err(Self::error(address, data.len()));
        }
        if let Some(slice) = self.slice(address, data.len()) {
            slice.copy_to(data);
            return Ok(());
        }
        self.0
            .read_slice(data, GuestAddress(address))
            .map_err(|_| Self::error(address, data.len()))
    }

    /// Copies into guest memory.
    pub fn write(&self, address: u64, data: &[u8]) -> Result<(), DmaError> {
        if !self.is_mapped(address, data.len(), true) {
            return Err(Self::error(address, data.len()));
        }
        if let Some(slice) = self.writable(address, data.len()) {
            slice.copy_from(data);
            return Ok(());
        }
        if !self.all_writable(address, data.len()) {
            return Err(Self::error(address, data.len()));
        }
        self.0
            .write_slice(data, GuestAddress(address))
            .map_err(|_| Self::error(address, data.len()))
    }

    /// Reads one aligned 64-bit word in one access.
    pub fn load64(&self, address: u64) -> Result<u64, DmaError> {
        self.slice(address, 8)
            .filter(|_| self.is_mapped(address, 8, false))
            .and_then(|slice| slice.load::<u64>(0, Ordering::Acquire).ok())
            .map(u64::from_le)
            .ok_or(Self::error(address, 8))
    }

    /// Writes one aligned 64-bit word in one access, after everything written before.
    pub fn store64(&self, address: u64, value: u64) -> Result<(), DmaError> {
        self.writable(address, 8)
            .filter(|_| self.is_mapped(address, 8, true))
            .and_then(|slice| slice.store(value.to_le(), 0, Ordering::Release).ok())
            .ok_or(Self::error(address, 8))
    }

    /// Writes one aligned 32-bit word in one access, after everything written before.
    pub fn store32(&self, address: u64, value: u32) -> Result<(), DmaError> {
        self.writable(address, 4)
            .filter(|_| self.is_mapped(address, 4, true))
            .and_then(|slice| slice.store(value.to_le(), 0, Ordering::Release).ok())
            .ok_or(Self::error(address, 4))
    }

    /// Reads descriptors, which must not cross the end of a page.
    pub(crate) fn load_descriptors(
        &self,
        address: u64,
        descriptors: &mut [Descriptor],
    ) -> Result<(), DmaError> {
        let words = descriptors.as_flattened_mut();
        let length = size_of_val(words);
        let slice = self
            .slice(address, length)
            .filter(|_| self.is_mapped(address, length, false))
            .ok_or(Self::error(address, length))?;
        let source = slice
            .get_array_ref::<u64>(0, words.len())
            .map_err(|_| Self::error(address, length))?;
        source.copy_to(words);
        for word in words {
            *word = u64::from_le(*word);
        }
        Ok(())
    }

    /// Writes a descriptor back: the second word, which drivers poll, after the first one and
    /// everything written before, and each in one access.
    pub(crate) fn store_descriptor(
        &self,
        address: u64,
        descriptor: Descriptor,
    ) -> Result<(), DmaError> {
        let [low, high] = descriptor.map(u64::to_le);
        self.writable(address, size_of::<Descriptor>())
            .filter(|_| self.is_mapped(address, size_of::<Descriptor>(), true))
            .and_then(|slice| {
                slice.store(low, 0, Ordering::Release).ok()?;
                slice.store(high, 8, Ordering::Release).ok()
            })
            .ok_or(Self::error(address, size_of::<Descriptor>()))
    }

    /// Lets the processor fetch the memory at `address`, if there is any, while it goes on.
    pub(crate) fn touch(&self, address: u64) {
        if let Some(slice) = self.slice(address, 1) {
            // A load with an order is not left out, although nothing uses its result.
            let _ = slice.load::<u8>(0, Ordering::Acquire);
        }
    }
}

/// The guest's memory, exchanged as a whole when a transport maps or unmaps a part of it.
#[derive(Debug, Clone)]
pub struct DmaMemory(GuestMemoryAtomic<GuestMemoryMmap<()>>, Option<Arc<Mapped>>);

impl Default for DmaMemory {
    fn default() -> Self {
        Self::new(GuestMemoryMmap::new())
    }
}

impl DmaMemory {
    /// Wraps a memory map.
    pub fn new(map: GuestMemoryMmap<()>) -> Self {
        Self(GuestMemoryAtomic::new(map), None)
    }

    /// From now on, there is no access but to pages that are mapped.
    pub fn restrict(&mut self, mapped: Arc<Mapped>) {
        self.1 = Some(mapped);
    }

    /// The memory as it is now.
    pub fn view(&self) -> View {
        View(self.0.memory(), self.1.clone())
    }

    /// The map itself, for a transport that exchanges it as a whole.
    pub fn shared(&self) -> GuestMemoryAtomic<GuestMemoryMmap<()>> {
        self.0.clone()
    }

    fn change(
        &self,
        edit: impl FnOnce(&GuestMemoryMmap<()>) -> Option<GuestMemoryMmap<()>>,
    ) -> bool {
        // A poisoned lock only means that another edit panicked before it replaced the map.
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = edit(&self.0.memory());
        match next {
            Some(next) => {
                guard.replace(next);
                true
            }
            None => false,
        }
    }

    /// Adds a region; false when it overlaps one that is there.
    pub fn insert(&self, region: GuestRegionMmap<()>) -> bool {
        self.change(|map| map.insert_region(Arc::new(region)).ok())
    }

    /// Removes the region that starts at `address`; false when there is none of that size.
    pub fn remove(&self, address: u64, size: u64) -> bool {
        self.change(|map| {
            map.remove_region(GuestAddress(address), size)
                .ok()
                .map(|(map, _)| map)
        })
    }

    /// Removes everything.
    pub fn clear(&self) {
        self.change(|_| Some(GuestMemoryMmap::new()));
    }
}

#[cfg(test)]
mod tests;
