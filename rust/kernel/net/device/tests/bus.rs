// SPDX-License-Identifier: GPL-2.0

//! Tests of resetting a PCI device that did not stop.

use super::super::bus::reset_function;

use crate::{
    bindings,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use core::ptr;

// Bits of the command register, and places in the configuration: BAR 0, control and status of
// power management.
const MEMORY: u32 = bindings::PCI_COMMAND_MEMORY;
const MASTER: u32 = bindings::PCI_COMMAND_MASTER;
const INTX_OFF: u32 = bindings::PCI_COMMAND_INTX_DISABLE;
const BAR: usize = bindings::PCI_BASE_ADDRESS_0 as usize;
const POWER: usize = 0x40;
const CONTROL: usize = POWER + bindings::PCI_PM_CTRL as usize;
const D3_HOT: u32 = 3;

/// A device that forgets all when it comes back from D3hot.
struct Nic {
    /// The configuration, in words of 32 bits.
    words: [Atomic<u32>; 32],
    /// It is not there: all reads return ones.
    is_deaf: Atomic<u32>,
    resets: Atomic<u32>,
    /// The command register before the last reset.
    command: Atomic<u32>,
}

impl Nic {
    fn new(power: u32) -> Result<KBox<Self>> {
        let nic = KBox::new(
            Self {
                words: [const { Atomic::new(0) }; 32],
                is_deaf: Atomic::new(0),
                resets: Atomic::new(0),
                command: Atomic::new(0),
            },
            GFP_KERNEL,
        )?;

        nic.set(0, 0x10fb_8086);
        nic.set(bindings::PCI_COMMAND as usize, MEMORY | MASTER);
        nic.set(BAR, 0xfe00_0000);
        nic.set(CONTROL, power);
        Ok(nic)
    }

    fn word(&self, place: usize) -> Option<&Atomic<u32>> {
        self.words.get(place / 4)
    }

    fn get(&self, place: usize) -> u32 {
        self.word(place).map_or(0, |word| word.load(Relaxed))
    }

    fn set(&self, place: usize, value: u32) {
        if let Some(word) = self.word(place) {
            word.store(value, Relaxed);
        }
    }

    /// The command register, without the status behind it.
    fn command(&self) -> u32 {
        self.get(bindings::PCI_COMMAND as usize) & 0xffff
    }

    fn reset(&self) {
        self.resets.fetch_add(1, Relaxed);
        self.command.store(self.command(), Relaxed);
        self.set(bindings::PCI_COMMAND as usize, 0);
        self.set(BAR, 0);
    }
}

/// The device behind an access, and the place of the least significant bit in its word.
///
/// # Safety
///
/// `bus` must be that of [`reset`], during `'a`.
unsafe fn accessed<'a>(bus: *mut bindings::pci_bus, place: c_int) -> (&'a Nic, usize, usize) {
    // SAFETY: By the safety requirements.
    let nic = unsafe { &*(*bus).sysdata.cast_const().cast::<Nic>() };
    // CAST: Places are small numbers.
    let place = place as usize;

    (nic, place, place % 4 * 8)
}

/// The bits of so many bytes.
fn bits(size: c_int) -> u32 {
    u32::MAX >> (32 - 8 * size)
}

/// # Safety
///
/// `value` must be valid, and `bus` as for [`accessed`].
unsafe extern "C" fn read(
    bus: *mut bindings::pci_bus,
    _devfn: c_uint,
    place: c_int,
    size: c_int,
    value: *mut u32,
) -> c_int {
    // SAFETY: By the safety requirements.
    let (nic, place, shift) = unsafe { accessed(bus, place) };
    let word = match nic.is_deaf.load(Relaxed) {
        0 => nic.get(place),
        _ => u32::MAX,
    };

    // SAFETY: By the safety requirements.
    unsafe { *value = word >> shift & bits(size) };
    0
}

/// # Safety
///
/// `bus` must be as for [`accessed`].
unsafe extern "C" fn write(
    bus: *mut bindings::pci_bus,
    _devfn: c_uint,
    place: c_int,
    size: c_int,
    value: u32,
) -> c_int {
    // SAFETY: By the safety requirements.
    let (nic, place, shift) = unsafe { accessed(bus, place) };
    let before = nic.get(place);
    let after = before & !(bits(size) << shift) | (value & bits(size)) << shift;

    nic.set(place, after);
    if place == CONTROL && before & 3 == D3_HOT && after & 3 == 0 {
        nic.reset();
    }
    0
}

/// Tries to reset a device. Returns whether it knows of no memory any more.
///
/// It `can` be reset by coming back from D3hot.
fn reset(nic: &Nic, state: bindings::pci_channel_state_t, can: bool) -> Result<bool> {
    let mut ops = bindings::pci_ops {
        read: Some(read),
        write: Some(write),
        ..Default::default()
    };
    let zeroed = GFP_KERNEL | __GFP_ZERO;
    // SAFETY: All zeros are a valid value of both C structures.
    let (mut bus, mut dev) = unsafe {
        (
            KBox::<bindings::pci_bus>::new_uninit(zeroed)?.assume_init(),
            KBox::<bindings::pci_dev>::new_uninit(zeroed)?.assume_init(),
        )
    };

    bus.ops = &raw mut ops;
    bus.sysdata = ptr::from_ref(nic).cast_mut().cast();
    dev.bus = ptr::from_mut(&mut *bus);
    dev.error_state = state;
    dev.pm_cap = POWER as u8;
    // CAST: There are four states.
    dev.current_state = (nic.get(CONTROL) & 3) as bindings::pci_power_t;
    if can {
        // All methods before that of power management, and this, see `pci_reset_fn_methods`. The
        // device has none of the others.
        dev.reset_methods[..5].copy_from_slice(&[1, 2, 3, 4, 5]);
    }
    let dev = &raw mut *dev;
    // SAFETY: The device is valid as far as it is used: its configuration, its lock, and that it
    // has no capabilities of which something were saved. It is not used after this.
    unsafe {
        bindings::device_initialize(&raw mut (*dev).dev);
        bindings::mutex_lock(&raw mut (*dev).dev.mutex);
        let is_reset = reset_function(dev);
        bindings::mutex_unlock(&raw mut (*dev).dev.mutex);
        Ok(is_reset)
    }
}

#[macros::kunit_tests(rust_net_bus)]
mod cases {
    use super::*;

    #[test]
    fn a_device_that_reads_as_all_ones_may_access_memory() -> Result {
        let nic = Nic::new(0)?;

        nic.is_deaf.store(1, Relaxed);
        assert!(!reset(&nic, bindings::pci_channel_io_normal, true)?);
        assert!(!reset(&nic, bindings::pci_channel_io_frozen, true)?);
        Ok(())
    }

    #[test]
    fn a_device_that_was_removed_accesses_no_memory() -> Result {
        let nic = Nic::new(0)?;

        nic.is_deaf.store(1, Relaxed);
        assert!(reset(&nic, bindings::pci_channel_io_perm_failure, true)?);
        Ok(())
    }

    #[test]
    fn a_device_that_was_reset_accesses_no_memory() -> Result {
        let nic = Nic::new(0)?;

        assert!(reset(&nic, bindings::pci_channel_io_normal, true)?);
        assert_eq!(nic.resets.load(Relaxed), 1);
        // It was disabled before, and has its configuration again, but for bus mastering.
        assert_eq!(nic.command.load(Relaxed), INTX_OFF);
        assert_eq!((nic.command(), nic.get(BAR)), (MEMORY, 0xfe00_0000));
        Ok(())
    }

    #[test]
    fn a_device_that_sleeps_is_reset_when_it_is_awake() -> Result {
        let nic = Nic::new(D3_HOT)?;

        assert!(reset(&nic, bindings::pci_channel_io_normal, true)?);
        assert_eq!((nic.get(CONTROL) & 3, nic.resets.load(Relaxed)), (0, 2));
        assert_eq!(nic.command.load(Relaxed), INTX_OFF);
        Ok(())
    }

    #[test]
    fn a_device_without_a_reset_may_access_memory() -> Result {
        let nic = Nic::new(0)?;

        assert!(!reset(&nic, bindings::pci_channel_io_normal, false)?);
        assert_eq!((nic.command(), nic.resets.load(Relaxed)), (MEMORY, 0));
        Ok(())
    }
}
