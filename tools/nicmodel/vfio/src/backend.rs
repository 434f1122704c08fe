// SPDX-License-Identifier: GPL-2.0
//! Requests of the client, turned into calls of the function.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use nicmodel_device::function::{Notifier, PciFunction};
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_IRQ_SET_ACTION_TYPE_MASK, VFIO_IRQ_SET_DATA_EVENTFD,
    VFIO_IRQ_SET_DATA_TYPE_MASK, VFIO_PCI_BAR5_REGION_INDEX, VFIO_PCI_CONFIG_REGION_INDEX,
    VFIO_PCI_MSIX_IRQ_INDEX,
};
use vfio_user::{DmaMapFlags, DmaUnmapFlags, ServerBackend};

use crate::memory::Mappings;

/// An eventfd of the client behind a vector.
struct Eventfd(File);

impl Notifier for Eventfd {
    fn signal(&self) {
        // It fails only if the counter is full, and then the client has not yet seen the last
        // message: one is as good as two.
        let _ = (&self.0).write(&1_u64.to_ne_bytes());
    }
}

pub(crate) struct Backend<'a> {
    pub(crate) function: &'a dyn PciFunction,
    pub(crate) mappings: Mappings,
}

impl Backend<'_> {
    /// The vectors that a request names.
    fn vectors(&self, start: u32, count: u32) -> io::Result<std::ops::Range<u32>> {
        start
            .checked_add(count)
            .filter(|end| *end <= self.function.vectors())
            .map(|end| start..end)
            .ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("there are no {count} vectors from {start} on"),
                )
            })
    }
}

/// Bytes of one access at most: what the protocol server negotiates, and does not check. It has
/// allocated more by then, but memory that nothing touches is none.
const MAX_TRANSFER: usize = 1 << 20;

fn check_length(data: &[u8]) -> io::Result<()> {
    if data.len() > MAX_TRANSFER {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(())
}

impl ServerBackend for Backend<'_> {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> io::Result<()> {
        check_length(data)?;
        match region {
            0..=VFIO_PCI_BAR5_REGION_INDEX => self.function.bar_read(region, offset, data),
            VFIO_PCI_CONFIG_REGION_INDEX => self.function.config_read(offset, data),
            _ => data.fill(0xff),
        }
        Ok(())
    }

    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> io::Result<()> {
        check_length(data)?;
        match region {
            0..=VFIO_PCI_BAR5_REGION_INDEX => self.function.bar_write(region, offset, data),
            VFIO_PCI_CONFIG_REGION_INDEX => self.function.config_write(offset, data),
            _ => {}
        }
        Ok(())
    }

    fn dma_map(
        &mut self,
        flags: DmaMapFlags,
        offset: u64,
        address: u64,
        size: u64,
        fd: Option<File>,
    ) -> io::Result<()> {
        let file = fd.map(|file| (file, offset));
        let writable = flags.contains(DmaMapFlags::WRITE);
        self.mappings.map(address, size, file, writable)
    }

    fn dma_unmap(&mut self, flags: DmaUnmapFlags, address: u64, size: u64) -> io::Result<()> {
        if flags.contains(DmaUnmapFlags::UNMAP_ALL) {
            self.mappings.clear();
        } else {
            self.mappings.unmap(address, size);
        }
        // Once the client has the answer, nothing may be written there any more.
        self.function.quiesce();
        Ok(())
    }

    fn reset(&mut self) -> io::Result<()> {
        self.function.reset();
        Ok(())
    }

    fn set_irqs(
        &mut self,
        index: u32,
        flags: u32,
        start: u32,
        count: u32,
        fds: Vec<File>,
    ) -> io::Result<()> {
        // The client also offers descriptors for a pin that the function does not have, and
        // masks vectors by itself: only triggers of MSI-X mean something here.
        let trigger = flags & VFIO_IRQ_SET_ACTION_TYPE_MASK == VFIO_IRQ_SET_ACTION_TRIGGER;
        if index != VFIO_PCI_MSIX_IRQ_INDEX || !trigger {
            return Ok(());
        }
        if flags & VFIO_IRQ_SET_DATA_TYPE_MASK != VFIO_IRQ_SET_DATA_EVENTFD {
            // No data and no count: all of them go.
            if count == 0 {
                for vector in 0..self.function.vectors() {
                    self.function.set_vector(vector, None);
                }
            }
            return Ok(());
        }
        // A vector for which there is no descriptor is disconnected.
        let mut fds = fds.into_iter();
        for vector in self.vectors(start, count)? {
            let notifier = fds
                .next()
                .map(|file| Arc::new(Eventfd(file)) as Arc<dyn Notifier>);
            self.function.set_vector(vector, notifier);
        }
        Ok(())
    }
}
