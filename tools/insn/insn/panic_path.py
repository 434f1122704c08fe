# SPDX-License-Identifier: GPL-2.0
"""Finds ways from a function to a panic, in object code of modules and of the kernel crate.

The undefined symbols of a module show its own panics, see `symbols.panics`, but not those of the
functions that it calls in the `kernel` crate, which is part of the kernel. So this module follows
calls through the module and the crate.
"""

from __future__ import annotations

import bisect
import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from insn.disassembly import FUNCTION, listing
from insn.symbols import is_panic, readable

_SECTION = re.compile(r"^Disassembly of section (\S+):$")
_TARGET = re.compile(r"\s(?:call|j[a-z]+)q?\s+0x[0-9a-f]+ <([^>+]+)(?:\+0x[0-9a-f]+)?>")
_RELOCATION = re.compile(r"\sR_X86_64_\w+\s+([^\s+-]\S*?)([+-]0x[0-9a-f]+)?$")
# A relative reference counts from the end of its four bytes.
_RELATIVE = 4


@dataclass
class _Section:
    starts: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def at(self, offset: int) -> str | None:
        """The function that an offset lies in."""
        index = bisect.bisect_right(self.starts, offset) - 1
        return self.names[index] if index >= 0 else None


def references(lines: Iterable[str]) -> dict[str, set[str]]:
    """The references of each function, from the output of `objdump -dr`."""
    sections: dict[str, _Section] = {}
    found: dict[str, set[str]] = {}
    # References to local functions may be offsets into sections, which are resolved at the end.
    local: list[tuple[str, str, int]] = []
    section, function = _Section(), ""
    for line in lines:
        if start := _SECTION.match(line):
            section = sections.setdefault(start[1], _Section())
        elif head := FUNCTION.match(line):
            function = head[2]
            section.starts.append(int(head[1], 16))
            section.names.append(function)
            found.setdefault(function, set())
        elif not function:
            continue
        elif target := _TARGET.search(line):
            found[function].add(target[1])
        elif to := _RELOCATION.search(line):
            if to[1].startswith("."):
                local.append((function, to[1], int(to[2] or "0", 16) + _RELATIVE))
            else:
                found[function].add(to[1])
    for function, name, offset in local:
        if name in sections and (there := sections[name].at(offset)):
            found[function].add(there)
    return found


def disassemble(objdump: str, path: Path) -> dict[str, set[str]]:
    """The references of each function of an object file or module."""
    return references(listing(objdump, path, "-dr"))


def way(graph: Mapping[str, set[str]], root: str) -> list[str]:
    """A shortest way from a function to a panic, readable; empty if there is none."""
    came: dict[str, str | None] = {root: None}
    work = deque([root])
    while work:
        function = work.popleft()
        if is_panic(function):
            path: list[str] = []
            at: str | None = function
            while at is not None:
                path.append(readable(at))
                at = came[at]
            return path[::-1]
        for target in sorted(graph.get(function, ())):
            if target not in came:
                came[target] = function
                work.append(target)
    return []


def reached(graph: Mapping[str, set[str]], root: str) -> set[str]:
    """The functions with code in the graph that can be reached, the root included."""
    seen, work = {root}, [root]
    while work:
        for target in graph.get(work.pop(), ()):
            if target in graph and target not in seen:
                seen.add(target)
                work.append(target)
    return seen


def named(graph: Mapping[str, set[str]], end: str) -> list[str]:
    """The functions whose readable name ends with these path components."""
    return sorted(name for name in graph if f"::{readable(name)}".endswith(f"::{end}"))
