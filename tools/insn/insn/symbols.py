# SPDX-License-Identifier: GPL-2.0
"""Code addresses of the kernel and of loaded modules, by name."""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.constants import SH_FLAGS
from elftools.elf.elffile import ELFFile

from testbed.host.ui import Failure

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
        start = end = None
        for number, line in enumerate(_read(system_map).decode("utf-8", "replace").splitlines(), 1):
            fields = line.split()
            if len(fields) < 3 or not re.fullmatch(r"[0-9a-f]+", fields[0]):
                raise Failure(f"{system_map}:{number}: no line of a System.map: {line!r}")
            address, kind, name = int(fields[0], 16), fields[1], fields[2]
            if name == "_stext":
                start = address
            elif name == "_etext":
                end = address
            elif kind in "tTwW":
                self._symbols.append((address, name))
        if start is None or end is None:
            raise Failure(f"{system_map}: _stext or _etext is missing; is it a System.map?")
        self._ranges.append(_Range(start, end, KERNEL))
        self._sort()

    def add_module(self, name: str, file: Path, sections: Mapping[str, int]) -> None:
        """Adds the functions of a module file, loaded at these section addresses."""
        for section in _load(file).sections:
            base = sections.get(section.name)
            # The kernel frees initialisation code, and may have reused the memory.
            if base is None or section.size == 0 or section.name.startswith(".init"):
                continue
            self._ranges.append(_Range(base, base + section.size, name))
            self._symbols += [(base + offset, symbol) for offset, symbol in section.functions]
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
    return sorted({readable(name) for name in _load(path).undefined if is_panic(name)})


@dataclass(frozen=True)
class _Section:
    name: str
    size: int
    functions: list[tuple[int, str]]


@dataclass(frozen=True)
class _File:
    sections: list[_Section]
    undefined: list[str]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from error


def _load(path: Path) -> _File:
    """Reads code sections, their functions, and undefined symbols of a relocatable ELF file."""
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            if elf.elfclass != 64 or not elf.little_endian:
                raise Failure(f"{path}: not a 64-bit little-endian ELF file")
            return _parse(elf)
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from error
    except (ELFError, ConstructError, UnicodeDecodeError, AttributeError, ValueError) as error:
        raise Failure(f"{path}: not a 64-bit ELF file, or a damaged one ({error})") from error


def _parse(elf: ELFFile) -> _File:
    functions: dict[int, list[tuple[int, str]]] = {}
    undefined = []
    for table in elf.iter_sections(type="SHT_SYMTAB"):
        for symbol in table.iter_symbols():
            section = symbol["st_shndx"]
            if symbol["st_info"]["type"] == "STT_FUNC":
                if isinstance(section, int):
                    functions.setdefault(section, []).append((symbol["st_value"], symbol.name))
            elif section == "SHN_UNDEF" and symbol.name:
                undefined.append(symbol.name)
    sections = [
        _Section(section.name, section["sh_size"], functions.get(index, []))
        for index, section in enumerate(elf.iter_sections())
        if section["sh_flags"] & SH_FLAGS.SHF_EXECINSTR
    ]
    return _File(sections, undefined)
