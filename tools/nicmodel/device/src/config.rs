// SPDX-License-Identifier: GPL-2.0
//! PCI configuration space.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::function::CONFIG_SIZE;
use crate::irq::VECTORS;

const VENDOR_INTEL: u16 = 0x8086;
/// Revision of production silicon.
const REVISION: u8 = 0x01;

const COMMAND: usize = 0x04;
const PM: usize = 0x40;
/// The byte of the PMCSR with the bits about power management events, and these bits.
const PME: usize = PM + 5;
const PME_EN: u8 = 1 << 0;
const PME_STATUS: u8 = 1 << 7;
const MSIX: usize = 0x70;
const PCIE: usize = 0xa0;

/// BAR of the MSI-X table.
pub const MSIX_BAR: u32 = 3;
/// Size of that BAR.
pub const MSIX_BAR_SIZE: u64 = 0x4000;
const MSIX_PBA: u32 = 0x2000;

/// Configuration space: bytes, which bits of each the guest may change, and which it clears by
/// writing 1.
#[derive(Debug)]
pub struct Config {
    bytes: Vec<AtomicU8>,
    writable: Vec<u8>,
    cleared: Vec<u8>,
    reset: Vec<u8>,
}

impl Config {
    /// The space of one function.
    pub fn new(device_id: u16) -> Self {
        let mut b = vec![0_u8; CONFIG_SIZE];
        let mut w = vec![0_u8; CONFIG_SIZE];
        let mut c = vec![0_u8; CONFIG_SIZE];
        put(&mut b, 0x00, &VENDOR_INTEL.to_le_bytes());
        put(&mut b, 0x02, &device_id.to_le_bytes());
        put(&mut w, COMMAND, &0x0547_u16.to_le_bytes());
        put(&mut b, 0x06, &0x0010_u16.to_le_bytes()); // capability list
        put(&mut b, 0x08, &[REVISION, 0x00, 0x00, 0x02]);
        put(&mut w, 0x0c, &[0xff]);
        put(
            &mut w,
            0x10,
            &(!(crate::regs::file::BYTES as u32 - 1)).to_le_bytes(),
        );
        put(&mut w, 0x1c, &(!(MSIX_BAR_SIZE as u32 - 1)).to_le_bytes());
        put(&mut b, 0x2c, &VENDOR_INTEL.to_le_bytes());
        put(&mut b, 0x2e, &0x0003_u16.to_le_bytes());
        b[0x34] = PM as u8;
        w[0x3c] = 0xff;

        // PME# from D0 and D3hot; there is no auxiliary power for D3cold.
        put(&mut b, PM, &[0x01, MSIX as u8, 0x23, 0x48, 0x00, 0x00]);
        put(&mut w, PM + 4, &[0x03, PME_EN]);
        c[PME] = PME_STATUS;

        put(&mut b, MSIX, &[0x11, PCIE as u8]);
        put(&mut b, MSIX + 2, &(VECTORS as u16 - 1).to_le_bytes());
        put(&mut w, MSIX + 2, &0xc000_u16.to_le_bytes());
        put(&mut b, MSIX + 4, &MSIX_BAR.to_le_bytes());
        put(&mut b, MSIX + 8, &(MSIX_PBA | MSIX_BAR).to_le_bytes());

        put(&mut b, PCIE, &[0x10, 0x00, 0x02, 0x00]); // endpoint, version 2
        put(&mut b, PCIE + 4, &0x0000_8cc2_u32.to_le_bytes());
        put(&mut w, PCIE + 8, &0x7fff_u16.to_le_bytes());
        put(&mut b, PCIE + 8, &0x2810_u16.to_le_bytes());
        put(&mut b, PCIE + 12, &0x0002_4c82_u32.to_le_bytes()); // x8, 5 GT/s
        put(&mut w, PCIE + 16, &0x00c3_u16.to_le_bytes());
        put(&mut b, PCIE + 18, &0x0082_u16.to_le_bytes());
        put(&mut b, PCIE + 36, &0x0000_001f_u32.to_le_bytes());
        put(&mut w, PCIE + 40, &0x001f_u16.to_le_bytes());
        put(&mut b, PCIE + 44, &0x0000_0006_u32.to_le_bytes());
        put(&mut b, PCIE + 48, &0x0002_u16.to_le_bytes());
        Self {
            bytes: b.iter().map(|byte| AtomicU8::new(*byte)).collect(),
            writable: w,
            cleared: c,
            reset: b,
        }
    }

    /// Reads; past the end are ones.
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        for (i, byte) in data.iter_mut().enumerate() {
            *byte = self
                .at(offset, i)
                .map_or(0xff, |at| self.bytes[at].load(Ordering::Acquire));
        }
    }

    /// Writes the writable bits, and clears those that are cleared by writing 1.
    pub fn write(&self, offset: u64, data: &[u8]) {
        for (i, new) in data.iter().enumerate() {
            if let Some(at) = self.at(offset, i) {
                let (mask, cleared) = (self.writable[at], self.cleared[at]);
                self.change(at, |old| (old & !mask | new & mask) & !(new & cleared));
            }
        }
    }

    /// Whether the function may access memory by itself (Command, Bus Master Enable).
    pub fn is_bus_master(&self) -> bool {
        self.bytes[COMMAND].load(Ordering::Acquire) & 1 << 2 != 0
    }

    /// Whether interrupts are messages of MSI-X (Message Control, MSI-X Enable).
    pub fn uses_msix(&self) -> bool {
        self.bytes[MSIX + 3].load(Ordering::Acquire) & 1 << 7 != 0
    }

    /// The power state, 0 for D0 (PMCSR, PowerState).
    #[inline]
    pub fn power_state(&self) -> u8 {
        self.bytes[PM + 4].load(Ordering::Acquire) & 3
    }

    /// Whether the function has no power for its registers: it is in another state than D0.
    #[inline]
    pub fn is_asleep(&self) -> bool {
        self.power_state() != 0
    }

    /// Whether the function may ask for power (PMCSR, PME_En).
    pub fn pme_enabled(&self) -> bool {
        self.bytes[PME].load(Ordering::Acquire) & PME_EN != 0
    }

    /// Whether the function asks for power (PMCSR, PME_Status).
    pub fn pme_status(&self) -> bool {
        self.bytes[PME].load(Ordering::Acquire) & PME_STATUS != 0
    }

    pub(crate) fn enable_pme(&self, enabled: bool) {
        let bit = if enabled { PME_EN } else { 0 };
        self.change(PME, |old| old & !PME_EN | bit);
    }

    pub(crate) fn clear_pme_status(&self) {
        self.change(PME, |old| old & !PME_STATUS);
    }

    /// Asks for power, if the function may. True if it did not ask before.
    pub(crate) fn raise_pme(&self) -> bool {
        let old = self.change(PME, |old| {
            if old & PME_EN != 0 {
                old | PME_STATUS
            } else {
                old
            }
        });
        old & (PME_EN | PME_STATUS) == PME_EN
    }

    /// Changes a byte in one step, as engine and transport may both change it. Returns the old one.
    fn change(&self, at: usize, new: impl Fn(u8) -> u8) -> u8 {
        let byte = &self.bytes[at];
        let update = |old| Some(new(old));
        byte.fetch_update(Ordering::AcqRel, Ordering::Acquire, update)
            .unwrap_or_else(|old| old)
    }

    fn at(&self, offset: u64, i: usize) -> Option<usize> {
        let at = usize::try_from(offset).ok()?.checked_add(i)?;
        (at < CONFIG_SIZE).then_some(at)
    }

    /// Values after a bus reset.
    pub fn reset(&self) {
        for (byte, value) in self.bytes.iter().zip(&self.reset) {
            byte.store(*value, Ordering::Release);
        }
    }
}

fn put(space: &mut [u8], at: usize, value: &[u8]) {
    space[at..at + value.len()].copy_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(config: &Config, at: u64) -> u16 {
        let mut data = [0; 2];
        config.read(at, &mut data);
        u16::from_le_bytes(data)
    }

    #[test]
    fn identity_and_capabilities() {
        let config = Config::new(0x10fb);
        assert_eq!((word(&config, 0), word(&config, 2)), (0x8086, 0x10fb));
        assert_eq!(word(&config, 0x72) & 0x7ff, 63, "64 vectors");
        assert_eq!(word(&config, 0xb2) & 0xff, 0x82, "x8 at 5 GT/s");
        assert!(!config.uses_msix());
        config.write(0x72, &[0, 0x80]);
        assert!(config.uses_msix());
    }

    #[test]
    fn bars_size_and_identity_is_read_only() {
        let config = Config::new(0x10fb);
        config.write(0x10, &[0xff; 4]);
        config.write(0, &[0; 4]);
        assert_eq!((word(&config, 0x10), word(&config, 0x12)), (0, 0xfffe));
        assert_eq!(word(&config, 0), 0x8086);
    }

    #[test]
    fn sleeps_without_keeping_its_state() {
        let config = Config::new(0x10fb);
        assert!(!config.is_asleep());
        config.write(0x44, &[0x03]);
        assert!(config.is_asleep());
        assert_eq!(word(&config, 0x44) & 0x08, 0, "No_Soft_Reset");
        config.reset();
        assert!(!config.is_asleep());
    }

    #[test]
    fn asks_for_power_until_it_is_told_that_this_was_heard() {
        let config = Config::new(0x10fb);
        assert_eq!(word(&config, 0x42), 0x4823, "PME# from D0 and D3hot");
        assert!(!config.raise_pme(), "it may not");
        config.write(0x44, &[0x03, 0x81]);
        assert_eq!(word(&config, 0x44), 0x0103);
        assert!(config.raise_pme() && !config.raise_pme());
        assert_eq!(word(&config, 0x44), 0x8103);
        // As Linux does to power a function up.
        config.write(0x44, &[0, 0]);
        assert_eq!(word(&config, 0x44), 0x8000);
        config.write(0x45, &[0x80]);
        assert_eq!(word(&config, 0x44), 0);
    }

    #[test]
    fn past_the_end_is_ones() {
        let config = Config::new(0x10fb);
        let mut data = [0; 4];
        config.read(4094, &mut data);
        assert_eq!(data[2..], [0xff, 0xff]);
        config.write(u64::MAX, &[0; 4]);
        config.read(u64::MAX, &mut data);
        assert_eq!(data, [0xff; 4]);
    }
}
