# SPDX-License-Identifier: GPL-2.0
"""Instruction counts by call stack as a flame graph: insn-flame draws it, on inferno."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from testbed.host.ui import Failure

Stacks = Iterable[tuple[Sequence[str], int]]


def folded(stacks: Stacks) -> str:
    """A line for each stack, outermost function first, with its count at the end."""
    return "".join(f"{';'.join(stack)} {amount}\n" for stack, amount in stacks if amount)


def draw(
    program: Path, stacks: Stacks, path: Path, title: str, note: str = "", packets: int = 1
) -> None:
    """Write the picture, an SVG in instructions per packet."""
    command = [str(program), "--title", title, "--note", note, "--packets", str(packets)]
    try:
        done = subprocess.run(command, input=folded(stacks).encode(), capture_output=True)
    except OSError as error:
        raise Failure(f"cannot run {program}: {error.strerror}") from error
    if done.returncode:
        raise Failure(f"{program}: {done.stderr.decode(errors='replace').strip()}")
    path.write_bytes(done.stdout)
