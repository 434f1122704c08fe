# SPDX-License-Identifier: GPL-2.0
"""No modules of the kernel crate or the driver name items of each other in a circle."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from rust_modules import Modules

CLONE = Path(__file__).parents[3]
DRIVER = "drivers/net/ethernet/intel/ixgbe/rust"


def order(root: Path, folder: str) -> list[str]:
    """The modules, those that others need first."""
    return [
        "::".join(one) for one in TopologicalSorter(Modules(root, folder).imports()).static_order()
    ]


def write(root: Path, **files: str) -> Path:
    """Files of a folder "net", by name."""
    (root / "net/tests").mkdir(parents=True)
    for name, text in files.items():
        (root / "net" / f"{name}.rs").write_text(text)
    return root


@pytest.mark.parametrize(("root", "folder"), [("rust/kernel", "net"), (DRIVER, ".")])
def test_no_modules_need_each_other(root: str, folder: str) -> None:
    assert len(order(CLONE / root, folder)) > 30


def test_those_that_others_need_come_first(tmp_path: Path) -> None:
    found = order(
        write(
            tmp_path,
            a="use super::{\n    b::{self, One as Other},\n    c, //\n};",
            b="// use super::a::Two;\nfn f() { crate::net::c::g() }",
            c="",
        ),
        "net",
    )
    assert found == ["net::c", "net::b", "net::a"]


def test_circles_are_found_through_what_a_module_shows(tmp_path: Path) -> None:
    write(tmp_path, a="use super::One;", b="pub struct One; use super::a::Two;")
    (tmp_path / "net.rs").write_text("pub mod a; mod b; pub use b::One;")
    with pytest.raises(CycleError, match="cycle"):
        order(tmp_path, "net")


def test_a_module_may_need_its_parent_and_tests_anything(tmp_path: Path) -> None:
    write(tmp_path, a="use super::One;", tests="use super::a;")
    (tmp_path / "net.rs").write_text("pub mod a; use a::Two;")
    assert sorted(order(tmp_path, "net")) == ["net", "net::a"]
