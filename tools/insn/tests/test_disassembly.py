# SPDX-License-Identifier: GPL-2.0
"""Running objdump, with programs that stand in for it."""

from pathlib import Path

import pytest

from insn.disassembly import FUNCTION, listing
from testbed.host.ui import Failure


def program(folder: Path, *lines: str) -> str:
    """A shell script."""
    path = folder / "objdump"
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return str(path)


def test_the_lines_of_a_listing(tmp_path: Path) -> None:
    """The flags come first, and the file last."""
    objdump = program(tmp_path, 'echo "$@"', 'echo "0000000000000040 <send>:"')
    first, second = listing(objdump, Path("nic.ko"), "-d", "-r")
    assert first == "-d -r --no-show-raw-insn nic.ko"
    head = FUNCTION.match(second)
    assert head and head.groups() == ("0000000000000040", "send")


def test_what_objdump_says_is_passed_on(tmp_path: Path) -> None:
    """A file that it cannot read."""
    objdump = program(tmp_path, "echo damaged >&2", "exit 1")
    with pytest.raises(Failure, match=r"objdump cannot read nic\.ko: damaged"):
        listing(objdump, Path("nic.ko"), "-d")
