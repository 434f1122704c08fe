# SPDX-License-Identifier: GPL-2.0
"""Warnings of earlier builds are remembered."""

from __future__ import annotations

from pathlib import Path

from testbed.build import warnings

LOG = """\
  CLIPPY     L rust/kernel.o
warning: unused variable: `x`
  --> /somewhere/tree/rust/kernel/net/napi.rs:12:9
   |
  RUSTC [M] samples/rust/rust_minimal.o
"""


def test_a_warning_lives_until_its_crate_is_compiled_again(tmp_path: Path) -> None:
    warnings.update(tmp_path, LOG)
    expected = {"in rust/kernel/net/napi.rs:12: unused variable: `x`"}
    assert warnings.known(tmp_path) == expected
    warnings.update(tmp_path, "  RUSTC [M] samples/rust/rust_minimal.o\n")
    assert warnings.known(tmp_path) == expected
    warnings.update(tmp_path, "  CLIPPY     L rust/kernel.o\n")
    assert warnings.known(tmp_path) == set()


def test_a_module_belongs_to_the_crate_beside_it(tmp_path: Path) -> None:
    warning = "warning: it is odd\n  --> /w/tree/drivers/x/{}.rs:7:1\n"
    (tmp_path / "drivers/x").mkdir(parents=True)
    (tmp_path / "drivers/x/other.o").touch()
    warnings.update(
        tmp_path, "".join(warning.format(name) for name in ("part", "sub/part", "other"))
    )
    warnings.update(tmp_path, "  CLIPPY [M] drivers/x/crate.o\n")
    # That one is a crate of its own.
    assert warnings.known(tmp_path) == {"in drivers/x/other.rs:7: it is odd"}
