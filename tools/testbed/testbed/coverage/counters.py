# SPDX-License-Identifier: GPL-2.0
"""Counters of rustc's -Cinstrument-coverage, in the memory of a process.

The kernel of User-Mode Linux is a process, and so is the model. In the section __llvm_prf_data of a
program or a module, each function has a record with a hash of its name and the distance from the
record to its counters. The records are found in memory by their content, wherever a module was
loaded to.
"""

import os
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from testbed.host.ui import Failure

_SECTION = "__llvm_prf_data"
# Of LLVM's InstrProfData.inc: the hashes of name and body, the distance to the counters, their
# number; in between, pointers that nothing here needs.
_RECORD = struct.Struct("<QQq24xI12x")
# The bytes of a record that are the same in a file and in memory.
_SAME = 16


@dataclass(frozen=True)
class Records:
    """The records of a program or a module, as its file has them."""

    data: bytes

    def at(self, memory: bytes) -> Iterator[int]:
        """The places in memory where all of them are."""
        place = memory.find(self.data[:_SAME])
        while place >= 0:
            if self._match(memory[place : place + len(self.data)]):
                yield place
            place = memory.find(self.data[:_SAME], place + 1)

    def _match(self, found: bytes) -> bool:
        """Whether they are the same, and loaded: no counters lie at the record itself."""
        if len(found) < len(self.data):
            return False
        pairs = zip(_RECORD.iter_unpack(self.data), _RECORD.iter_unpack(found), strict=True)
        return all((*a[:2], a[3]) == (*b[:2], b[3]) and b[2] for a, b in pairs)


def records(path: Path) -> Records | None:
    """The records of an ELF file; None if it has none."""
    try:
        with path.open("rb") as file:
            section = ELFFile(file).get_section_by_name(_SECTION)
            data: bytes = section.data() if section else b""
    except (OSError, ELFError) as error:
        raise Failure(f"cannot read {path}: {error}") from error
    if len(data) % _RECORD.size:
        raise Failure(f"{path}: this compiler's section {_SECTION} has records of another size",
                      "testbed/coverage/counters.py knows those of LLVM 22")  # fmt: skip
    return Records(data) if data else None


def totals(pid: int, known: Sequence[Records]) -> dict[int, int]:
    """The sum of each function's counters in a process, by the hash of the function's name.

    A module that was loaded several times counts with all of them.
    """
    found: Counter[int] = Counter()
    try:
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as file:
            for start, end in _mapped(pid):
                content = _read(file.fileno(), start, end)
                for one in known:
                    for place in one.at(content):
                        held = content[place : place + len(one.data)]
                        found.update(_sums(file.fileno(), start + place, held))
    except OSError as error:
        raise Failure(f"cannot read the memory of process {pid}: {error.strerror}") from error
    return dict(found)


def _sums(memory: int, address: int, held: bytes) -> Counter[int]:
    """The sum of the counters of each record; all of them lie side by side."""
    places = [
        (name, address + _RECORD.size * index + distance, count)
        for index, (name, _, distance, count) in enumerate(_RECORD.iter_unpack(held))
    ]
    first = min(place for _, place, _ in places)
    counters = _read(memory, first, max(place + 8 * count for _, place, count in places))
    found: Counter[int] = Counter()
    for name, place, count in places:
        found[name] += sum(struct.unpack_from(f"<{count}Q", counters, place - first))
    return found


def _mapped(pid: int) -> list[tuple[int, int]]:
    """Ranges of readable memory, without the guest's memory as a whole, which the model maps for
    each port: there, pages that belong together lie apart."""
    maps = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        bounds, access, offset, device, inode = line.split()[:5]
        start, end = (int(one, 16) for one in bounds.split("-"))
        # Of shared memory: the file, and the address at which its beginning would be.
        file = (device, inode, start - int(offset, 16)) if "s" in access else None
        maps.append((start, end, access, file))
    largest = max((end - start for start, end, _, file in maps if file), default=0)
    whole = {file for start, end, _, file in maps if file and end - start > largest // 2}
    found: list[tuple[int, int]] = []
    for start, end, access, file in maps:
        if "r" not in access or file in whole:
            continue
        if found and found[-1][1] == start:
            start = found.pop()[0]
        found.append((start, end))
    return found


def _read(memory: int, start: int, end: int) -> bytes:
    """Memory up to the first page that cannot be read."""
    content = b""
    try:
        while part := os.pread(memory, end - start - len(content), start + len(content)):
            content += part
    except OSError:
        pass
    return content
