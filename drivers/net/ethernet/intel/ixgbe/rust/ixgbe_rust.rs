// SPDX-License-Identifier: GPL-2.0

//! Driver for the Intel 82599 10 GbE controller.
//!
//! See `Documentation/networking/device_drivers/ethernet/intel/ixgbe_rust.rst`.
//!
//! | module | contents |
//! | --- | --- |
//! | [`port`] | the callbacks of the network device, and the state they share |
//! | [`ethtool`], [`dump`], [`self_test`] | what users see, change and test with `ethtool` |
//! | [`rx`], [`tx`] | the descriptor rings |
//! | [`rss`], [`flow_director`] | the queues of received frames: by a hash, or by rules |
//! | [`atr`], [`director_hash`] | connections that stay with the queue that sends for them |
//! | [`desc`] | descriptor formats |
//! | [`offload`] | offloads of transmitted packets |
//! | [`hw`], [`irq`], [`moderation`], [`flow`], [`flush`], [`eeprom`] | the NIC |
//! | [`link`], [`sfp`], [`i2c`] | the link, and the module that it goes over |
//! | [`firmware`], [`semaphore`] | the NIC's firmware, and what is shared with it |
//! | [`filter`], [`vlan`] | the frames that it receives |
//! | [`ptp`] | the clock, and time stamps |
//! | [`regs`] | registers |
//! | [`stats`] | counters |

#![forbid(unsafe_code)]

use kernel::{
    device::Core,
    dma::DmaMask,
    net::device,
    pci,
    prelude::*, //
};

mod atr;
mod board;
mod desc;
mod director_hash;
mod dump;
mod eeprom;
mod ethtool;
mod filter;
mod firmware;
mod flow;
mod flow_director;
mod flush;
mod hw;
mod i2c;
mod irq;
mod link;
mod media;
mod mmio;
mod moderation;
mod offload;
mod port;
mod ptp;
mod regs;
mod rss;
mod rx;
mod self_test;
mod semaphore;
mod sfp;
mod stats;
mod tx;
mod vlan;

use crate::{
    media::Media,
    port::PortDriver, //
};

/// The PCI driver. The network device owns all state of a port.
struct Ixgbe;

kernel::pci_device_table!(
    PCI_TABLE,
    <Ixgbe as pci::Driver>::IdInfo,
    [
        // 82599 with a cage for SFP+ modules.
        (
            pci::DeviceId::from_id(pci::Vendor::INTEL, 0x10fb),
            Media::SfpPlus
        ),
        // The same on a mezzanine card.
        (
            pci::DeviceId::from_id(pci::Vendor::INTEL, 0x1507),
            Media::SfpPlus
        ),
        // The same, a later design.
        (
            pci::DeviceId::from_id(pci::Vendor::INTEL, 0x154d),
            Media::SfpPlus
        ),
        // The same with four ports.
        (
            pci::DeviceId::from_id(pci::Vendor::INTEL, 0x154a),
            Media::SfpPlus
        ),
        // The same with FCoE in its NVM.
        (
            pci::DeviceId::from_id(pci::Vendor::INTEL, 0x1529),
            Media::SfpPlus
        ),
        // The same with one port.
        (
            pci::DeviceId::from_id(pci::Vendor::INTEL, 0x1557),
            Media::SfpPlus
        ),
        // 82599 behind KX4.
        (
            pci::DeviceId::from_id(pci::Vendor::INTEL, 0x10f7),
            Media::Backplane
        ),
        // 82599 behind XAUI on a main board.
        (
            pci::DeviceId::from_id(pci::Vendor::INTEL, 0x10fc),
            Media::Backplane
        ),
        // 82599 behind KX4 on a mezzanine card.
        (
            pci::DeviceId::from_id(pci::Vendor::INTEL, 0x1514),
            Media::Backplane
        ),
        // 82599 behind KR.
        (
            pci::DeviceId::from_id(pci::Vendor::INTEL, 0x1517),
            Media::Backplane
        ),
        // 82599 behind KX4, KX or KR, whichever the NVM selects.
        (
            pci::DeviceId::from_id(pci::Vendor::INTEL, 0x10f8),
            Media::Backplane
        ),
        // The same with FCoE in its NVM.
        (
            pci::DeviceId::from_id(pci::Vendor::INTEL, 0x152a),
            Media::Backplane
        ),
    ]
);

impl pci::Driver for Ixgbe {
    type IdInfo = Media;
    type Data<'bound> = ();

    const ID_TABLE: pci::IdTable<Self::IdInfo> = &PCI_TABLE;
    const DMA_MASK: Option<DmaMask> = Some(DmaMask::new::<64>());
    const SUSPEND: Option<pci::SuspendOps<Self>> = Some(pci::SuspendOps::of_driver());

    fn probe<'bound>(
        pdev: &'bound pci::Device<Core<'_>>,
        id_info: Option<&'bound Self::IdInfo>,
    ) -> impl PinInit<(), Error> + 'bound {
        pin_init::pin_init_scope(move || {
            pdev.enable_device_mem()?;
            // An ID added at run time (new_id) does not tell the medium.
            device::register::<PortDriver>(pdev, id_info.copied())?;

            Ok(Ok::<(), Error>(()))
        })
    }
}

// The network device does all of it.
#[vtable]
impl pci::Suspend for Ixgbe {}

kernel::module_pci_driver! {
    type: Ixgbe,
    name: "ixgbe_rust",
    authors: ["The skbulk authors"],
    description: "Intel(R) 82599 10 Gigabit network driver in Rust",
    license: "GPL v2",
    // As `ixgbe` has it: users of such modules set it for both.
    params: {
        allow_unsupported_sfp: bool {
            default: false,
            description: "Allow SFP+ modules that Intel has not tested",
        },
    },
}
