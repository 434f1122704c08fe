# SPDX-License-Identifier: GPL-2.0
"""Code addresses of the kernel and of loaded modules, by name."""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

KERNEL = "vmlinux"
USER = "[user]"
UNKNOWN = "[unknown]"

# Addresses from here on belong to the kernel.
KERNEL_HALF = 1 << 63


@dataclass(frozen=True)
class Place:
    """The module and function of an address."""

    module: str
    function: str
    offset: int


@dataclass(frozen=True)
class _Range:
    start: int
    end: int
    module: str


class SymbolTable:
    """Functions of the kernel and of modules as they were loaded."""

    def __init__(self) -> None:
        self._symbols: list[tuple[int, str]] = []
        self._ranges: list[_Range] = []
        self._addresses: list[int] = []

    def add_kernel(self, system_map: Path) -> None:
        """Adds the functions of a System.map (kernel booted with nokaslr)."""
        bounds = {}
        for line in system_map.read_text(encoding="utf-8").splitlines():
            number, kind, name = line.split()[:3]
            address = int(number, 16)
            if name in ("_stext", "_etext"):
                bounds[name] = address
            elif kind in "tTwW":
                self._symbols.append((address, name))
        self._ranges.append(_Range(bounds["_stext"], bounds["_etext"], KERNEL))
        self._sort()

    def add_module(self, name: str, file: Path, sections: Mapping[str, int]) -> None:
        """Adds the functions of a module file, loaded at these section addresses."""
        with file.open("rb") as opened:
            elf = ELFFile(opened)
            symbols = list(elf.get_section_by_name(".symtab").iter_symbols())
            for index, section in enumerate(elf.iter_sections()):
                base, size = sections.get(section.name), section["sh_size"]
                # The kernel frees initialisation code, and may have reused the memory.
                if base is None or size == 0 or section.name.startswith(".init"):
                    continue
                self._ranges.append(_Range(base, base + size, name))
                self._symbols += [
                    (base + one["st_value"], one.name) for one in symbols
                    if one["st_info"]["type"] == "STT_FUNC" and one["st_shndx"] == index
                ]  # fmt: skip
        self._sort()

    def _sort(self) -> None:
        self._symbols.sort()
        self._addresses = [address for address, _ in self._symbols]
        self._ranges.sort(key=lambda each: each.start)

    def find(self, address: int) -> Place:
        """The module and function of an address."""
        if address < KERNEL_HALF:
            return Place(USER, USER, 0)
        for each in self._ranges:
            if each.start <= address < each.end:
                index = bisect.bisect_right(self._addresses, address) - 1
                if index >= 0 and self._addresses[index] >= each.start:
                    # Aliases share an address: take the first of them.
                    index = bisect.bisect_left(self._addresses, self._addresses[index])
                    at, name = self._symbols[index]
                    return Place(each.module, name, address - at)
                return Place(each.module, f"[{each.module}]", address - each.start)
        return Place(UNKNOWN, UNKNOWN, 0)

    def address(self, name: str) -> int | None:
        """The address of a function, None if it does not exist."""
        return next((address for address, symbol in self._symbols if symbol == name), None)


def readable(name: str) -> str:
    """Shortens a mangled Rust name to the path of identifiers in it.

    This is for tables; generic arguments and the hashes of crates are omitted.
    """
    if not name.startswith("_R"):
        return name
    parts, position = [], 2
    while match := _RUST_TOKEN.match(name, position):
        position = match.end()
        if match["length"]:
            length = int(match["length"])
            parts.append(name[position : position + length])
            position += length
    return "::".join(parts) or name


# Of a mangled Rust name: a namespace, a hash or reference back (both end with
# an underscore), a constant, the length of an identifier, or any other tag.
_RUST_TOKEN = re.compile(
    r"N[a-zA-Z]C?|[sB][0-9A-Za-z]*_|K[a-z][0-9a-f]*_|(?P<length>[1-9][0-9]*)_?|."
)


# Functions of Rust's core library that panic, by the beginning of their path; and a function that
# the kernel declares without a definition, for checks that the compiler has to remove.
_PANICS = (
    "core::panicking::",
    "core::option::expect_failed",
    "core::option::unwrap_failed",
    "core::result::unwrap_failed",
    "core::slice::index::",
    "core::slice::copy_from_slice_impl",
    "core::str::slice_error_fail",
    "core::cell::panic_already",
    "rust_build_error",
)


def is_panic(name: str) -> bool:
    """Whether calling this function is a panic."""
    return readable(name).startswith(_PANICS)


def panics(path: Path) -> list[str]:
    """The panicking functions that a module calls, readable; none if it cannot panic."""
    with path.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".symtab").iter_symbols()
        undefined = [one.name for one in symbols if one["st_shndx"] == "SHN_UNDEF"]
    return sorted({readable(name) for name in undefined if is_panic(name)})
