// SPDX-License-Identifier: GPL-2.0
//! The interface between a device and its transport.

use std::sync::Arc;

use crate::memory::DmaMemory;

/// How the device signals one MSI-X vector; the transport supplies it.
pub trait Notifier: Send + Sync {
    /// Sends the message of the vector.
    fn signal(&self);
}

/// Called when the guest did something that the packet engine may be waiting for.
pub trait Kick: Send + Sync {
    /// Wakes the engine (or, in a synchronous model, runs it now).
    fn kick(&self);
}

/// A queue of the guest's accesses, for a transport that is polled.
pub trait Source: Send + Sync {
    /// Serves waiting work, up to a bound; true if there was some.
    fn poll(&self) -> bool;
    /// Polling stops: asks the guest for notifications. True if an access came before it knew.
    fn sleep(&self) -> bool;
    /// Polling goes on: the guest need not notify.
    fn wake(&self);
}

/// Size of the configuration space.
pub const CONFIG_SIZE: usize = 4096;

/// A PCI function as a transport drives it.
///
/// Every method returns at once: a transport may hold a lock of the hypervisor meanwhile.
pub trait PciFunction: Send + Sync {
    /// Reads configuration space; bytes past its end read as ones.
    fn config_read(&self, offset: u64, data: &mut [u8]);
    /// Writes configuration space; writes past its end are ignored.
    fn config_write(&self, offset: u64, data: &[u8]);
    /// Size of a BAR in bytes, 0 when it does not exist.
    fn bar_size(&self, bar: u32) -> u64;
    /// Reads a BAR.
    fn bar_read(&self, bar: u32, offset: u64, data: &mut [u8]);
    /// Writes a BAR.
    fn bar_write(&self, bar: u32, offset: u64, data: &[u8]);
    /// Number of MSI-X vectors.
    fn vectors(&self) -> u32;
    /// Connects or disconnects a vector.
    fn set_vector(&self, vector: u32, notifier: Option<Arc<dyn Notifier>>);
    /// Guest memory, for the transport to map and unmap.
    fn memory(&self) -> &DmaMemory;
    /// The guest has pages of registers mapped from now on, or has none any more.
    fn pages_mapped(&self, mapped: bool);
    /// Returns when the function no longer uses memory that was unmapped before.
    fn quiesce(&self);
    /// Resets the function as a bus reset does.
    fn reset(&self);
    /// The guest is gone: forget its vectors and memory, and reset.
    fn disconnect(&self);
}
