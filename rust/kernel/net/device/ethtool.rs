// SPDX-License-Identifier: GPL-2.0

//! Settings and views of a device for users of `ethtool`.
//!
//! C header: [`include/linux/ethtool.h`](srctree/include/linux/ethtool.h)
//!
//! All of it is optional: a driver implements the traits of those that its NIC has a use for, and
//! adds each to its [`Driver::OPS`](super::Driver::OPS) by the method of the same name.
//!
//! Their callbacks run in process context with the lock of the device's operations held, while the
//! device is up or down. While it is suspended, those that return a setting may be called, and no
//! others. Exceptions are noted.

pub mod coalesce;
pub mod drvinfo;
pub mod eeprom;
pub mod link;
pub mod mac_stats;
pub mod module_eeprom;
pub mod msglevel;
pub mod pause;
pub mod phys_id;
pub mod regs;
pub mod ringparam;
pub mod rmon_stats;
pub mod rxfh;
pub mod rxnfc;
pub mod self_test;
pub mod statistics;
pub(super) mod strings;
pub(super) mod table;
mod ts_info;
pub mod wol;
