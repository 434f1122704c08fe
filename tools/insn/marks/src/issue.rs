// SPDX-License-Identifier: GPL-2.0

//! Issuing the marks.

use std::arch::asm;

use crate::encoding;

/// Executes one mark.
#[inline(never)]
fn mark<const LOW: u32>() {
    // SAFETY: a no-op that touches neither registers nor memory.
    unsafe {
        asm!(
            ".byte 0x0f, 0x1f, 0x84, 0x00",
            ".long {}",
            const encoding::BASE | LOW,
            options(nomem, nostack, preserves_flags),
        )
    }
}

/// The marks of the sixteen nibbles, by value.
const NIBBLES: [fn(); 16] = [
    mark::<0>, mark::<1>, mark::<2>, mark::<3>, mark::<4>, mark::<5>, mark::<6>, mark::<7>,
    mark::<8>, mark::<9>, mark::<10>, mark::<11>, mark::<12>, mark::<13>, mark::<14>, mark::<15>,
];

/// Opens a window under `text`.
pub fn open(text: &str) {
    for byte in text.bytes() {
        NIBBLES[usize::from(byte >> 4)]();
        NIBBLES[usize::from(byte & 15)]();
    }
    mark::<{ encoding::ON }>();
}

/// Closes the window.
pub fn close() {
    mark::<{ encoding::OFF }>();
}
