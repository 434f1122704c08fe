# SPDX-License-Identifier: GPL-2.0
"""Counters in a process, found by the records of its file."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest

from testbed.coverage import counters
from testbed.coverage.counters import Records
from testbed.host.ui import Failure

RECORD = 64
NAMES = (0xA1B2C3D4E5F60718, 0x1122334455667788)


def made(distances: tuple[int, int], counts: tuple[int, int] = (2, 1)) -> bytes:
    """Two records."""
    return b"".join(
        struct.pack("<QQq24xI12x", name, 7, distance, count)
        for name, distance, count in zip(NAMES, distances, counts, strict=True)
    )


# As a module's file has them: the kernel fills in the distances.
FILE = made((0, 0))
# Counters behind the records: two of the first function, one of the second.
LOADED = made((2 * RECORD, RECORD + 16))


# Maps the files that it is told, as its own or shared, and waits.
PROCESS = """
import mmap, sys
share = {"own": mmap.MAP_PRIVATE, "shared": mmap.MAP_SHARED}[sys.argv[1]]
maps = []
for name in sys.argv[2:]:
    with open(name, "r+b") as file:
        maps.append(mmap.mmap(file.fileno(), 0, flags=share))
        maps[-1][:1]
print("ready", flush=True)
sys.stdin.read()
"""


class Found(Protocol):
    """Counters in a process that maps some contents."""

    def __call__(self, *contents: bytes, share: str = "own") -> dict[int, int]: ...


@pytest.fixture
def found(tmp_path: Path) -> Found:
    """A process, and its end."""

    def run(*contents: bytes, share: str = "own") -> dict[int, int]:
        files = [tmp_path / str(number) for number in range(len(contents))]
        for file, content in zip(files, contents, strict=True):
            file.write_bytes(content)
        command = [sys.executable, "-c", PROCESS, share, *files]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe) as child:
            assert child.stdout
            child.stdout.readline()
            return counters.totals(child.pid, [Records(FILE)])

    return run


def counted(*values: int) -> bytes:
    """A loaded module."""
    return LOADED + struct.pack("<3Q", *values)


def test_counters_of_a_function_are_added_up(found: Found) -> None:
    assert found(counted(3, 4, 5)) == {NAMES[0]: 7, NAMES[1]: 5}


def test_a_module_that_was_loaded_again_counts_with_both(found: Found) -> None:
    assert found(counted(1, 0, 0), counted(1, 0, 2)) == {NAMES[0]: 2, NAMES[1]: 2}


def test_a_file_in_memory_is_no_module(found: Found) -> None:
    assert not found(FILE + bytes(64))


def test_a_module_with_some_of_the_records_is_another_one(found: Found) -> None:
    assert not found(LOADED[:RECORD] + made((1, 1), (2, 9))[RECORD:] + bytes(64))


def test_records_that_end_with_the_memory_are_not_whole() -> None:
    assert list(Records(FILE).at(LOADED)) == [0]
    assert not list(Records(FILE).at(LOADED[:RECORD]))


def test_the_guests_memory_as_a_whole_is_left_out(found: Found) -> None:
    """Among the shared mappings, it is large; parts of it are mapped elsewhere, too."""
    whole = counted(1, 1, 1) + bytes(1 << 20)
    assert not found(whole, share="shared")
    assert found(counted(2, 0, 0), whole, whole, share="shared") == {NAMES[0]: 2, NAMES[1]: 0}


def assembled(folder: Path, text: str) -> Path:
    """An object file."""
    path = folder / "module.o"
    subprocess.run(["gcc", "-c", "-x", "assembler", "-", "-o", path], input=text.encode(),
                   check=True)  # fmt: skip
    return path


def test_the_records_of_a_file_are_those_of_its_section(tmp_path: Path) -> None:
    words = ",".join(map(str, struct.unpack("<16Q", FILE)))
    path = assembled(tmp_path, f'.section __llvm_prf_data,"aw"\n.quad {words}\n')
    assert counters.records(path) == Records(FILE)


def test_a_module_in_c_has_none(tmp_path: Path) -> None:
    assert counters.records(assembled(tmp_path, ".text\nnop\n")) is None


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda at: assembled(at, '.section __llvm_prf_data,"aw"\n.quad 1\n'), "another size"),
        (lambda at: at / "absent.ko", "No such file"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(
    tmp_path: Path, make: Callable[[Path], Path], why: str
) -> None:
    with pytest.raises(Failure, match=why):
        counters.records(make(tmp_path))


def test_a_process_that_is_gone_is_refused() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    with pytest.raises(Failure, match="cannot read the memory"):
        counters.totals(child.pid, [Records(FILE)])
