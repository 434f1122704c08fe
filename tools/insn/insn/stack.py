# SPDX-License-Identifier: GPL-2.0
"""How much of the stack functions take, in object code.

The compiler warns about functions in C that take too much (CONFIG_FRAME_WARN), not about those in
Rust.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from testbed.host import proc
from testbed.host.ui import Failure

_FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
_FRAME = re.compile(r"\ssubq?\s+\$(0x[0-9a-f]+|\d+), ?%rsp")


def frames(listing: Iterable[str]) -> dict[str, int]:
    """The bytes of stack that each function takes for itself, from the output of `objdump -d`."""
    found: dict[str, int] = {}
    function = ""
    for line in listing:
        if head := _FUNCTION.match(line):
            function = head[1]
            found.setdefault(function, 0)
        elif function and (frame := _FRAME.search(line)):
            found[function] = max(found[function], int(frame[1], 0))
    return found


def measure(objdump: str, path: Path) -> dict[str, int]:
    """The same of an object file or module."""
    try:
        done = proc.capture([objdump, "-d", "--no-show-raw-insn", path], stderr=subprocess.PIPE)
    except OSError as error:
        raise Failure(f"{objdump}: {error.strerror}") from error
    if done.returncode != 0:
        raise Failure(f"{objdump} cannot read {path}: {done.stderr.strip()}")
    return frames(done.stdout.splitlines())
