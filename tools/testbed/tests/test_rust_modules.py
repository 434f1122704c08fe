# SPDX-License-Identifier: GPL-2.0
"""No modules of the kernel crate or the driver name items of each other in a circle."""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

CLONE = Path(__file__).parents[3]
DRIVER = "drivers/net/ethernet/intel/ixgbe/rust"
Name = tuple[str, ...]
_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', re.S)
_USE = re.compile(r"(pub(?:\([^)]*\))? )?\buse ([^;]+);")
_PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")
_TESTS = re.compile(r"(?:.*_)?tests?(?:\.rs)?")


class Modules:
    """Those of a folder below the root of a crate, or of "." there; tests are left out."""

    def __init__(self, root: Path, folder: str) -> None:
        files = [root / f"{folder}.rs", *sorted((root / folder).rglob("*.rs"))]
        self._texts = {
            _module(path.relative_to(root)): _COMMENT.sub("", path.read_text())
            for path in files
            if path.exists() and not any(map(_TESTS.fullmatch, path.relative_to(root).parts))
        }
        self._shown = {
            (*module, found[-1]): found
            for module, text in self._texts.items()
            for use in _USE.finditer(text)
            if use[1]
            for found in (self._absolute(module, leaf) for leaf in _leaves(use[2]))
            if found
        }

    def imports(self) -> dict[Name, set[Name]]:
        """By module: those whose items it names, other than what it is inside of or is in it."""
        named = {module: set(map(self._home, self._paths(module))) for module in self._texts}
        return {
            module: {one for one in ones if one and not _nested(one, module)}
            for module, ones in named.items()
        }

    def _paths(self, module: Name) -> Iterator[Name]:
        text = self._texts[module]
        used = [leaf for use in _USE.finditer(text) for leaf in _leaves(use[2])]
        for path in [*used, *_PATH.findall(_USE.sub("", text))]:
            if found := self._absolute(module, path):
                yield found

    def _absolute(self, module: Name, path: str) -> Name:
        """A path below the root of the crate; empty if it is none of it."""
        first, *rest = [word for word in path.split("::") if word != "*"]
        if first == "crate":
            return (*rest,)
        if (*module, first) in self._texts:
            return (*module, first, *rest)
        if first not in ("self", "super"):
            return ()
        above = module[: len(module) - [first, *rest].count("super")]
        return (*above, *(word for word in rest if word not in ("self", "super")))

    def _home(self, path: Name) -> Name:
        """The module that has what a path names, wherever it is shown."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._texts:
                shown = self._shown.get(path[: length + 1])
                return self._home(shown + path[length + 1 :]) if shown else path[:length]
        return ()


def _module(path: Path) -> Name:
    return path.parent.parts if path.name == "mod.rs" else path.with_suffix("").parts


def _nested(one: Name, other: Name) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _leaves(tree: str) -> Iterator[str]:
    """The paths of a use tree."""
    heads, path = [""], ""
    for word in re.findall(r"[{},]|[^{},]+", re.sub(r"\s+as\s+\w+|\s", "", tree) + ","):
        if word not in "{},":
            path = heads[-1] + word
            continue
        if word == "{":
            heads.append(path)
        elif path:
            yield path
        if word == "}":
            heads.pop()
        path = ""


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
