# SPDX-License-Identifier: GPL-2.0
"""The modules that modules need are found by their symbols."""

from pathlib import Path

import pytest

from testbed.build import needs

_LISTED = """\
vmlinux.a:net/core/a.o:0000000000000030 r __export_symbol_one
vmlinux.a:net/core/a.o:                 U two
vmlinux.a:lib/b.o:0000000000000000 T two
vmlinux.a:lib/b.o:0000000000000010 r __export_symbol_two
drivers/x.ko:                 U one
"""


def test_symbols_are_read() -> None:
    """Of archives and of modules."""
    found = needs.parse(_LISTED)
    assert found.exports == {"one": "net/core/a.o", "two": "lib/b.o"}
    assert found.needs == {"net/core/a.o": {"two"}, "drivers/x.ko": {"one"}}


def _build(folder: Path, built_in: str) -> None:
    """A build with two objects in the kernel and a module."""
    for name, module in (("net/core/a.o", "net/core/self"), ("lib/b.o", "lib/b")):
        path = folder / name
        path.parent.mkdir(parents=True)
        command = f"savedcmd_{name} := cc -DKBUILD_MODFILE='\"{module}\"' a.c\n"
        (path.parent / f".{path.name}.cmd").write_text(command)
    (folder / "modules.builtin").write_text(built_in)
    (folder / "Module.symvers").write_text(
        "0x0\tone\tvmlinux\tEXPORT_SYMBOL\t\n0x0\ttwo\tvmlinux\tEXPORT_SYMBOL\t\n"
    )


@pytest.mark.parametrize(
    ("built_in", "found"),
    [
        # Neither can be a module.
        ("", set()),
        ("kernel/net/core/self.ko\n", {"net/core/self.ko"}),
        # One needs the other.
        ("kernel/net/core/self.ko\nkernel/lib/b.ko\n", {"net/core/self.ko", "lib/b.ko"}),
    ],
)
def test_what_is_built_in_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, built_in: str, found: set[str]
) -> None:
    _build(tmp_path, built_in)
    monkeypatch.setattr(needs.proc, "output", lambda _: _LISTED)
    assert needs.of(tmp_path, ["drivers/x.ko"]) == found


def test_modules_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Those that are modules here, too."""
    _build(tmp_path, "")
    (tmp_path / "Module.symvers").write_text("0x0\tone\tdrivers/y\tEXPORT_SYMBOL\t\n")
    monkeypatch.setattr(needs.proc, "output", lambda _: _LISTED)
    assert needs.of(tmp_path, ["drivers/x.ko"]) == {"drivers/y.ko"}
