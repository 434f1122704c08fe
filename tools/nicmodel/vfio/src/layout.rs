// SPDX-License-Identifier: GPL-2.0
//! The regions and interrupts as the client sees them.

use std::os::fd::{AsRawFd, RawFd};

use nicmodel_device::function::{CONFIG_SIZE, PciFunction};
use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_INFO_AUTOMASKED, VFIO_IRQ_INFO_EVENTFD, VFIO_IRQ_INFO_MASKABLE,
    VFIO_IRQ_INFO_NORESIZE, VFIO_PCI_BAR5_REGION_INDEX, VFIO_PCI_CONFIG_REGION_INDEX,
    VFIO_PCI_INTX_IRQ_INDEX, VFIO_PCI_MSIX_IRQ_INDEX, VFIO_PCI_NUM_IRQS, VFIO_PCI_NUM_REGIONS,
    VFIO_REGION_INFO_FLAG_MMAP, VFIO_REGION_INFO_FLAG_READ, VFIO_REGION_INFO_FLAG_WRITE,
    vfio_region_info, vfio_region_sparse_mmap_area,
};
use vfio_user::{IrqInfo, ServerRegion, SparseArea};

use crate::registers::SharedRegisters;

/// Size of a page that can be mapped.
pub const PAGE: u64 = 4096;

/// Which pages of BAR 0 the guest sees as plain shared memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pages: Vec<u64>,
}

impl Layout {
    /// Every access is trapped.
    pub fn trapped() -> Self {
        Self { pages: Vec::new() }
    }

    /// The page with the registers of the receive rings and the one with those of the transmit
    /// rings: the card notices a moved tail by looking.
    pub fn mapped() -> Self {
        Self {
            pages: vec![0x1000, 0x6000],
        }
    }

    /// Offsets of the pages.
    pub fn pages(&self) -> &[u64] {
        &self.pages
    }

    pub(crate) fn regions(
        &self,
        function: &dyn PciFunction,
        registers: Option<&SharedRegisters>,
    ) -> Vec<ServerRegion> {
        let file = registers.map(|registers| registers.file().as_raw_fd());
        (0..VFIO_PCI_NUM_REGIONS)
            .map(|index| match index {
                0..=VFIO_PCI_BAR5_REGION_INDEX => {
                    let file = file.filter(|_| index == 0);
                    self.region(index, function.bar_size(index), file)
                }
                VFIO_PCI_CONFIG_REGION_INDEX => self.region(index, CONFIG_SIZE as u64, None),
                _ => self.region(index, 0, None),
            })
            .collect()
    }

    fn region(&self, index: u32, size: u64, file: Option<RawFd>) -> ServerRegion {
        let file = file.filter(|_| !self.pages.is_empty());
        let mut flags = 0;
        if size != 0 {
            flags |= VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
        }
        if file.is_some() {
            flags |= VFIO_REGION_INFO_FLAG_MMAP;
        }
        let pages = file.map_or(&[][..], |_| &self.pages);
        ServerRegion {
            region_info: vfio_region_info {
                argsz: size_of::<vfio_region_info>() as u32,
                flags,
                index,
                size,
                ..Default::default()
            },
            sparse_areas: pages
                .iter()
                .map(|page| SparseArea {
                    area: vfio_region_sparse_mmap_area {
                        offset: *page,
                        size: PAGE,
                    },
                })
                .collect(),
            mmap_fd: file,
        }
    }
}

pub(crate) fn irqs(function: &dyn PciFunction) -> Vec<IrqInfo> {
    let mut pin = [0];
    function.config_read(0x3d, &mut pin);
    (0..VFIO_PCI_NUM_IRQS)
        .map(|index| {
            let (flags, count) = match index {
                VFIO_PCI_INTX_IRQ_INDEX => (
                    VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_MASKABLE | VFIO_IRQ_INFO_AUTOMASKED,
                    u32::from(pin[0] != 0),
                ),
                VFIO_PCI_MSIX_IRQ_INDEX => (
                    VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE,
                    function.vectors(),
                ),
                _ => (0, 0),
            };
            IrqInfo {
                index,
                flags,
                count,
            }
        })
        .collect()
}
