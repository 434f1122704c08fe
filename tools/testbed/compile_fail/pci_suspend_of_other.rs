//@ error: E0308 mismatched types
// SPDX-License-Identifier: GPL-2.0

//! A driver cannot have the callbacks of another one, which take its private data for theirs.

#![forbid(unsafe_code)]

use kernel::pci;

pub const fn callbacks<Mine, Other>() -> pci::SuspendOps<Mine>
where
    Mine: pci::Suspend,
    Other: pci::Suspend,
{
    //~ pci::SuspendOps::<Mine>::of_driver()
    pci::SuspendOps::<Other>::of_driver()
}
