//@ error: E0451 of struct `Budget` are private
// SPDX-License-Identifier: GPL-2.0

//! Only the core creates a budget.

#![forbid(unsafe_code)]

use kernel::net::napi::Budget;

pub fn make(old: Budget<'_>) -> Budget<'_> {
    //~ old
    Budget { value: 64, ..old }
}
