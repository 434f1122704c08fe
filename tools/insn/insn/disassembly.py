# SPDX-License-Identifier: GPL-2.0
"""Disassembled object code, as objdump of GNU and of LLVM print it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from testbed.host import proc
from testbed.host.ui import Failure

# The head of a function: its address and its name.
FUNCTION = re.compile(r"^([0-9a-f]+) <(.+)>:$")


def listing(objdump: str, path: Path, *flags: str) -> Iterable[str]:
    """The lines that objdump prints about an object file or module."""
    done = proc.capture([objdump, *flags, "--no-show-raw-insn", path], stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Failure(f"{objdump} cannot read {path}: {done.stderr.strip()}")
    return done.stdout.splitlines()
