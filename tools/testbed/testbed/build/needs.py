# SPDX-License-Identifier: GPL-2.0
"""The modules that modules need, in any configuration.

modinfo knows those of one kernel only. What another one has as a module may be built in here: then
`modules.builtin` lists it, and its objects name it in the commands that made them.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.host import proc
from testbed.host.ui import Failure

_MODULE = re.compile(r"KBUILD_MODFILE='\"([^\"]+)\"'")
_EXPORTED = "__export_symbol_"
_VMLINUX = "vmlinux"


@dataclass(frozen=True)
class Symbols:
    """The symbols that objects export and need, by the object."""

    exports: Mapping[str, str]
    needs: Mapping[str, Collection[str]]


def parse(listed: str) -> Symbols:
    """Read a list of nm -A: FILE:OBJECT:ADDRESS TYPE NAME, or FILE:ADDRESS ... of a module."""
    exports: dict[str, str] = {}
    needs: dict[str, set[str]] = defaultdict(set)
    for line in listed.splitlines():
        place, _, rest = line.rpartition(":")
        name = place.rpartition(":")[2]
        kind, _, symbol = rest[17:].partition(" ")
        if kind == "U":
            needs[name].add(symbol)
        elif symbol.startswith(_EXPORTED):
            exports[symbol.removeprefix(_EXPORTED)] = name
    return Symbols(exports, needs)


def symbol_versions(text: str) -> dict[str, str]:
    """The modules that export symbols, from Module.symvers; vmlinux is one, too."""
    rows = (line.split("\t") for line in text.splitlines())
    return {row[1]: row[2] for row in rows if len(row) > 2}


def module_of(build: Path, name: str) -> str:
    """The module that an object is a part of, by its path without a suffix; or its own."""
    path = build / name
    saved = proc.text_of(path.parent / f".{path.name}.cmd")
    found = _MODULE.search(saved)
    return found[1] if found else name


def of(build: Path, modules: Collection[str]) -> set[str]:
    """All that some modules need, as paths of modules, whether they are ones here or built in."""
    files = [f"{Path(one).with_suffix('.ko')}" for one in modules]
    listed = proc.output(["nm", "-A", build / "vmlinux.a", *(build / one for one in files)])
    if listed is None:
        raise Failure(f"nm cannot read the objects in {build}")
    symbols = parse(listed.replace(f"{build}/", ""))
    owners = symbol_versions((build / "Module.symvers").read_text())
    built_in = {Path(one).relative_to("kernel").with_suffix("")
                for one in (build / "modules.builtin").read_text().split()}  # fmt: skip

    def owner(symbol: str) -> str:
        """The module that exports a symbol; empty if it is always in the kernel."""
        found = owners.get(symbol, "")
        if found != _VMLINUX:
            return found
        module = module_of(build, symbols.exports.get(symbol, ""))
        return module if Path(module) in built_in else ""

    found: set[str] = set()
    left = set(files)
    while left:
        needed = {owner(symbol) for name in left for symbol in symbols.needs.get(name, ())}
        new = needed - found - {""}
        found |= new
        left = {name for name in symbols.needs for module in new
                if Path(name).parent == Path(module).parent
                and module_of(build, name) == module}  # fmt: skip
    return {f"{one}.ko" for one in found}
