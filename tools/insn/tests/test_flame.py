# SPDX-License-Identifier: GPL-2.0
"""Flame graphs: the input of insn-flame. Its drawing is tested in tools/insn/flame."""

from __future__ import annotations

from pathlib import Path

import pytest

from insn import flame
from testbed.host.ui import Failure

STACKS = [
    (("vmlinux net_rx_action", "ixgbe_rust poll"), 30),
    (("vmlinux net_rx_action", "ixgbe_rust poll", "vmlinux a<b>"), 60),
    (("vmlinux net_rx_action",), 10),
    (("vmlinux idle",), 0),
]


def program(folder: Path, text: str) -> Path:
    """A program in place of insn-flame."""
    path = folder / "insn-flame"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_stack_is_a_line_outermost_function_first() -> None:
    lines = flame.folded(STACKS).splitlines()
    assert lines[1] == "vmlinux net_rx_action;ixgbe_rust poll;vmlinux a<b> 60"
    # inferno takes a count of 0 for a frame that is wanted.
    assert len(lines) == 3


def test_the_picture_is_what_the_program_prints(tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    shown = program(tmp_path, 'echo "$@"; cat')
    flame.draw(shown, STACKS, path, "a & b", "note", packets=7)
    assert path.read_text() == "--title a & b --note note --packets 7\n" + flame.folded(STACKS)


def test_a_program_that_is_missing_or_fails_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.svg"
    with pytest.raises(Failure, match=r"cannot run .*/none"):
        flame.draw(tmp_path / "none", STACKS, path, "t")
    with pytest.raises(Failure, match="no stacks"):
        flame.draw(program(tmp_path, "echo no stacks >&2; exit 1"), [], path, "t")
    assert not path.exists()
