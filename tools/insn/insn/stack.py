# SPDX-License-Identifier: GPL-2.0
"""How much of the stack functions take, in object code.

The compiler warns about functions in C that take too much (CONFIG_FRAME_WARN), not about those in
Rust.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from insn.disassembly import FUNCTION, listing

_FRAME = re.compile(r"\ssubq?\s+\$(0x[0-9a-f]+|\d+), ?%rsp")


def frames(lines: Iterable[str]) -> dict[str, int]:
    """The bytes of stack that each function takes for itself, from the output of `objdump -d`."""
    found: dict[str, int] = {}
    function = ""
    for line in lines:
        if head := FUNCTION.match(line):
            function = head[2]
            found.setdefault(function, 0)
        elif function and (frame := _FRAME.search(line)):
            found[function] = max(found[function], int(frame[1], 0))
    return found


def measure(objdump: str, path: Path) -> dict[str, int]:
    """The same of an object file or module."""
    return frames(listing(objdump, path, "-d"))
