# SPDX-License-Identifier: GPL-2.0
"""The functions of the sources, from the mapping that the compiler leaves beside the counters.

All instances of a generic function are one. A closure belongs to the function around it.
"""

import hashlib
import json
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.host import proc
from testbed.host.ui import Failure

# Generic arguments, and the type or trait of a method: `<ixgbe_rust::Tx as Ops>::xmit::<u32>`.
_ARGUMENTS = re.compile(r"<[^<>]*>")


@dataclass(frozen=True, order=True)
class Function:
    """A function of the sources."""

    file: str
    line: int
    name: str


def of_files(llvm: str, files: Iterable[Path], tree: Path, clone: Path) -> dict[int, Function]:
    """The functions of programs and modules, by the hashes in the records of their counters: those
    whose sources are files of the clone, which has some of its own and lies over a tree."""
    places: dict[str, tuple[str, int]] = {}
    for path in files:
        for one in _exported(llvm, path):
            file = Path(one["filenames"][0])
            for top in (tree, clone):
                if file.is_relative_to(top) and (clone / file.relative_to(top)).is_file():
                    line = min(region[0] for region in one["regions"])
                    places[one["name"]] = str(file.relative_to(top)), line
    names = _demangled(llvm, list(places))
    return {
        _hash(symbol): Function(*place, readable(name))
        for (symbol, place), name in zip(places.items(), names, strict=True)
        if "{closure" not in name
    }


def _exported(llvm: str, path: Path) -> list[dict[str, Any]]:
    """The functions in the mapping of a program or module."""
    command = [f"llvm-cov{llvm}", "export", "--empty-profile", str(path)]
    done = proc.capture(command, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Failure(f"llvm-cov does not read {path}", *done.stderr.splitlines()[:3])
    found: list[dict[str, Any]] = json.loads(done.stdout)["data"][0]["functions"]
    return found


def _demangled(llvm: str, symbols: Sequence[str]) -> list[str]:
    done = subprocess.run([f"llvm-cxxfilt{llvm}"], input="\n".join(symbols), check=True,
                          stdout=subprocess.PIPE, text=True)  # fmt: skip
    return done.stdout.splitlines()


def readable(name: str) -> str:
    """The last word of a demangled name."""
    name = name.replace("->", "")
    while (shorter := _ARGUMENTS.sub("", name)) != name:
        name = shorter
    return name.strip(":").rpartition("::")[2]


def _hash(symbol: str) -> int:
    return int.from_bytes(hashlib.md5(symbol.encode()).digest()[:8], "little")
