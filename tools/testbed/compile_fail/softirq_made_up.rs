//@ error: E0133 call to unsafe function
// SPDX-License-Identifier: GPL-2.0

//! Claiming to be in a softirq without proof is unsafe.

#![forbid(unsafe_code)]

use kernel::softirq::Softirq;

//~ pub fn claim(guard: &kernel::softirq::BhGuard) -> Softirq<'_> {
pub fn claim() -> Softirq<'static> {
    //~ guard.softirq()
    Softirq::assume()
}
