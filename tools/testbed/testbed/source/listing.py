# SPDX-License-Identifier: GPL-2.0
"""Files of ours before all that they list is there.

A file of ours belongs to one topic, and is kept as it is in the end. If it lists modules
that later topics bring, the lines that do only that come with these topics:

  mod name;                   with its visibility, documentation and attributes
  pub use self::name::Item;   alone, or as an entry of pub use self::{ ... }
"""

import re
from collections import deque
from collections.abc import Container

from testbed.source.diff import split_lines

_MODULE = re.compile(r" *(?:pub(?:\([^)]*\))? )?mod (\w+);")
_USE = re.compile(r"\s*pub(?:\([^)]*\))? use self::(\w+)\b")
_USES = re.compile(r"\s*pub(?:\([^)]*\))? use self::\{$")
_ENTRY = re.compile(r" {4}(\w+)::")
# rustfmt's mark of the last entry.
_LAST = re.compile(r" {4}\S.*//$")
# Documentation and attributes of the line that follows.
_ABOVE = re.compile(r"\s*(?:///|#\[)")


def listed(name: str, content: bytes, own: Container[str]) -> dict[str, str]:
    """The modules that the file `name` declares in files of ours, and these files."""
    if not name.endswith(".rs"):
        return {}
    folder, _, stem = name.removesuffix(".rs").rpartition("/")
    if stem != "mod":
        folder = f"{folder}/{stem}"
    found = {}
    for line in content.splitlines():
        if declared := _MODULE.match(line.decode(errors="replace")):
            module = declared[1]
            for file in (f"{folder}/{module}.rs", f"{folder}/{module}/mod.rs"):
                if file in own:
                    found[module] = file
    return found


def without(content: bytes, gone: Container[str]) -> bytes:
    """The content while some of the modules are gone."""
    return "".join(_without(deque(split_lines(content.decode())), gone)).encode()


def _without(rest: deque[str], gone: Container[str]) -> list[str]:
    """Leave out the lines that only list modules that are gone."""
    kept: list[str] = []
    while rest:
        line = rest.popleft()
        found = _MODULE.match(line) or _USE.match(line)
        if found and found[1] in gone:
            while not line.rstrip().endswith(";"):
                line = rest.popleft()
            _close_gap(kept, rest)
            continue
        kept.append(line)
        if _USES.match(line):
            _entries(kept, rest, gone)
    return kept


def _entries(kept: list[str], rest: deque[str], gone: Container[str]) -> None:
    """The entries of one pub use self::{ ... }."""
    skipping = False
    while rest[0].strip() != "};":
        line = rest.popleft()
        if found := _ENTRY.match(line):
            skipping = found[1] in gone
        if not skipping:
            kept.append(line)
        elif _LAST.match(line):
            kept[-1] = kept[-1].rstrip("\n") + " //\n"


def _close_gap(kept: list[str], rest: deque[str]) -> None:
    """Drop what is above a line that was left out, and one of two empty lines that meet."""
    while kept and _ABOVE.match(kept[-1]):
        kept.pop()
    if kept and rest and kept[-1] == rest[0] == "\n":
        kept.pop()
