# SPDX-License-Identifier: GPL-2.0
"""Files of ours before all that they list is there."""

from __future__ import annotations

from testbed.source import listing

FACE = """\
//! Devices.

mod early;
/// Comes later,
/// as this says.
#[cfg(CONFIG_LATER)]
pub mod later;

#[cfg(CONFIG_KUNIT)]
mod tests;

pub use self::{
    early::{
        First,
        Second, //
    },
    later::{
        Third,
        Fourth, //
    }, //
};
pub(super) use self::later::{
    Fifth,
    Sixth, //
};

/// Uses it.
fn f(_: later::Third) {}
"""
FIRST = """\
//! Devices.

mod early;

pub use self::{
    early::{
        First,
        Second, //
    }, //
};

/// Uses it.
fn f(_: later::Third) {}
"""


def at_that_time(name: str, text: str, missing: list[str]) -> str:
    """The file with the modules of which the files are missing left out."""
    content = text.encode()
    return listing.without(content, set(listing.listed(name, content, missing))).decode()


def test_lines_that_list_come_with_what_they_list() -> None:
    name = "rust/kernel/device.rs"
    assert at_that_time(name, FACE, []) == FACE
    assert at_that_time(name, FACE, ["rust/kernel/device/other.rs", "rust/kernel/later.rs"]) == FACE
    missing = ["rust/kernel/device/later/mod.rs", "rust/kernel/device/tests.rs"]
    assert at_that_time(name, FACE, missing) == FIRST


def test_a_folder_may_have_its_list_inside() -> None:
    text = "mod a;\nmod b;\n"
    assert at_that_time("rust/x/mod.rs", text, ["rust/x/b.rs"]) == "mod a;\n"
    assert at_that_time("rust/x.rs", text, ["rust/x/b.rs"]) == "mod a;\n"
    assert at_that_time("rust/y.rs", text, ["rust/x/b.rs"]) == text


def test_other_files_stay_as_they_are() -> None:
    assert at_that_time("rust/x.c", "mod b;\n", ["rust/x/b.rs"]) == "mod b;\n"
