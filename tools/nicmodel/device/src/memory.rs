// SPDX-License-Identifier: GPL-2.0
//! Guest memory as the device's DMA sees it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use vm_memory::{
    Bytes, GuestAddress, GuestAddressSpace, GuestMemoryAtomic, GuestMemoryMmap, GuestRegionMmap,
};

/// A DMA access that does not lie in the guest's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("DMA at {address:#x}, {length} bytes, is outside the guest's memory")]
pub struct DmaError {
    /// First byte of the access.
    pub address: u64,
    /// Length of the access.
    pub length: usize,
}

/// One consistent view of guest memory; cheap to take, valid while held.
#[derive(Debug)]
pub struct View(Arc<GuestMemoryMmap<()>>);

impl View {
    /// Copies out of guest memory.
    pub fn read(&self, address: u64, data: &mut [u8]) -> Result<(), DmaError> {
        let length = data.len();
        self.0
            .read_slice(data, GuestAddress(address))
            .map_err(|_| DmaError { address, length })
    }

    /// Copies into guest memory.
    pub fn write(&self, address: u64, data: &[u8]) -> Result<(), DmaError> {
        self.0
            .write_slice(data, GuestAddress(address))
            .map_err(|_| DmaError {
                address,
                length: data.len(),
            })
    }

    /// Reads one aligned 64-bit word in one access.
    pub fn load64(&self, address: u64) -> Result<u64, DmaError> {
        self.0
            .load::<u64>(GuestAddress(address), Ordering::Acquire)
            .map(u64::from_le)
            .map_err(|_| DmaError { address, length: 8 })
    }

    /// Writes one aligned 64-bit word in one access, after everything written before.
    pub fn store64(&self, address: u64, value: u64) -> Result<(), DmaError> {
        self.0
            .store(value.to_le(), GuestAddress(address), Ordering::Release)
            .map_err(|_| DmaError { address, length: 8 })
    }

    /// Writes one aligned 32-bit word in one access, after everything written before.
    pub fn store32(&self, address: u64, value: u32) -> Result<(), DmaError> {
        self.0
            .store(value.to_le(), GuestAddress(address), Ordering::Release)
            .map_err(|_| DmaError { address, length: 4 })
    }
}

/// The guest's memory, exchanged as a whole when a transport maps or unmaps a part of it.
#[derive(Debug, Clone)]
pub struct DmaMemory(GuestMemoryAtomic<GuestMemoryMmap<()>>);

impl Default for DmaMemory {
    fn default() -> Self {
        Self::new(GuestMemoryMmap::new())
    }
}

impl DmaMemory {
    /// Wraps a memory map.
    pub fn new(map: GuestMemoryMmap<()>) -> Self {
        Self(GuestMemoryAtomic::new(map))
    }

    /// The memory as it is now.
    pub fn view(&self) -> View {
        View(self.0.memory().into_inner())
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
        let guard = match self.0.lock() {
            Ok(guard) => guard,
            Err(poisoned) => poisoned.into_inner(),
        };
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
