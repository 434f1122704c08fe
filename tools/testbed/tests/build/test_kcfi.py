# SPDX-License-Identifier: GPL-2.0
"""Tests of the comparison of callbacks' types in C and in Rust."""

import tempfile
import unittest
from pathlib import Path

from testbed.build import kcfi
from testbed.build.kcfi import Field

BINDINGS = """
pub struct other_ops {
    pub open: ::core::option::Option<unsafe extern "C" fn(dev: *mut other) -> ffi::c_int>,
}
pub struct some_ops {
    pub flags: u32_,
    pub open: ::core::option::Option<unsafe extern "C" fn(dev: *mut some) -> ffi::c_int>,
    pub walk: ::core::option::Option<
        unsafe extern "C" fn(
            dev: *mut some,
            each: ::core::option::Option<unsafe extern "C" fn(arg1: u32_)>,
        ),
    >,
    pub state:
        ::core::option::Option<unsafe extern "C" fn(arg1: some_state) -> *mut ffi::c_void>,
}
"""
OPEN = Field("some_ops", "open", "dev: *mut some", "ffi::c_int")
STATE = Field("some_ops", "state", "arg1: some_state", "*mut ffi::c_void")
C_IR = """
declare !kcfi_type !27 dso_local i32 @probe_some_ops__open(ptr noundef) #0
declare !kcfi_type !28 dso_local ptr @probe_some_ops__state(i32 noundef) #0
!27 = !{i32 -5}
!28 = !{i32 6}
"""
RUST_IR = """
define dso_local noundef i32 @probe_some_ops__open(ptr %arg1) unnamed_addr #0 !kcfi_type !4 {
define dso_local noundef ptr @probe_some_ops__state(i32 %arg1) unnamed_addr #0 !kcfi_type !5 {
define dso_local void @another(ptr %sch) unnamed_addr #0 !kcfi_type !5 {
!4 = !{i32 -5}
!5 = !{i32 7}
"""


class Kcfi(unittest.TestCase):
    """Fields of the bindings, and the numbers that compilers give to their types."""

    def test_fields(self) -> None:
        """Those that point to functions, with the types of these."""
        found = list(kcfi.fields(BINDINGS, "some_ops"))
        self.assertEqual([one.name for one in found], ["open", "walk", "state"])
        self.assertEqual((found[0], found[2]), (OPEN, STATE))
        self.assertEqual(found[1].result, "()")
        self.assertIn('each: ::core::option::Option<unsafe extern "C" fn(arg1: u32_)>,',
                      found[1].parameters)  # fmt: skip

    def test_used(self) -> None:
        """Only fields that the sources set are compared."""
        before, kcfi.STRUCTS = kcfi.STRUCTS, ("some_ops",)
        try:
            with tempfile.TemporaryDirectory() as folder:
                source = Path(folder) / "ops.rs"
                source.write_text("let mut ops = some_ops { state: Some(f), ..zeroed() };\n")
                self.assertEqual(kcfi.used(BINDINGS, [source]), [STATE])
                source.write_text("ops.open = Some(f);\n")
                self.assertEqual(kcfi.used(BINDINGS, [source]), [OPEN])
        finally:
            kcfi.STRUCTS = before

    def test_sources(self) -> None:
        """Both languages have a function of the same name."""
        self.assertIn("extern typeof(*((struct some_ops *)0)->open) probe_some_ops__open;",
                      kcfi.c_source([OPEN]))  # fmt: skip
        self.assertIn("fn probe_some_ops__open(dev: *mut some) -> ffi::c_int {",
                      kcfi.rust_source([OPEN]))  # fmt: skip

    def test_numbers(self) -> None:
        """The numbers of both compilers are found, and a difference is told."""
        c, rust = kcfi.numbers(C_IR), kcfi.numbers(RUST_IR)
        self.assertEqual(c, {OPEN.probe: -5, STATE.probe: 6})
        self.assertEqual(rust, {OPEN.probe: -5, STATE.probe: 7})
        found = kcfi.compare([OPEN, STATE], c, rust)
        self.assertIsNone(found["some_ops.open"])
        self.assertIn("another type", found["some_ops.state"] or "")

    def test_absent(self) -> None:
        """A function that a compiler has left out is no success."""
        found = kcfi.compare([OPEN], {OPEN.probe: 1}, {})
        self.assertIn("no number", found["some_ops.open"] or "")
