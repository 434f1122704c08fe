# SPDX-License-Identifier: GPL-2.0
"""The warnings that make W=1 adds, for some files of a built kernel alone.

With W=1 the kernel's build would read the comments of every file, too, and compile all
bindings again. So files are compiled as the build did, but with W=1's flags and no output.
"""

import re
import subprocess
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed.build.saved import c_command
from testbed.host import proc
from testbed.host.ui import Failure

# The flags of the levels, in the tree.
_MAKEFILE = "scripts/Makefile.warn"
_LEVEL = re.compile(
    r"findstring 1, \$\(KBUILD_EXTRA_WARN\).*?\n(?P<on>.*?)\nelse\n(?P<off>.*?)^# W=2", re.S | re.M
)
_FLAG = re.compile(r"(?:\+=|,) *(-W[\w=-]+)")
_WARNING = re.compile(r"^(?P<path>\S+\.[ch]):(?P<line>\d+):\d+: (?:warning|error): (?P<text>.+)$",
                      re.M)  # fmt: skip


def flags(makefile: str) -> tuple[list[str], set[str]]:
    """The flags that W=1 adds, and those that it leaves out."""
    found = _LEVEL.search(makefile)
    if not found:
        raise Failure(f"{_MAKEFILE} has no flags for W=1")
    return _FLAG.findall(found["on"]), set(_FLAG.findall(found["off"]))


def command(saved: str, on: Iterable[str], off: Collection[str]) -> list[str] | None:
    """A compiler's command from a .cmd file, with these flags and no output; None if it is
    not one for C."""
    words = [one for one in c_command(saved) if one not in off]
    return [*words[:-1], *on, "-fsyntax-only", words[-1]] if words else None


def parse(output: str) -> list[str]:
    """The compiler's warnings, one line each: "in FILE:LINE: text"; "tree" is the tree's folder."""
    found = []
    for one in _WARNING.finditer(output):
        name = one["path"].rpartition("/tree/")[2].removeprefix("./")
        found.append(f"in {name}:{one['line']}: {one['text']}")
    return list(dict.fromkeys(found))


def of(build: Path, tree: Path, objects: Iterable[str]) -> list[str]:
    """The warnings about objects that a build has made, and about the headers that they include."""
    on, off = flags((tree / _MAKEFILE).read_text())

    def compile_one(name: str) -> str:
        path = build / name
        words = command((path.parent / f".{path.name}.cmd").read_text(), on, off)
        if words is None:
            return ""
        done = proc.capture(words, stderr=subprocess.PIPE, cwd=build)
        if done.returncode != 0:
            raise Failure(f"{name} does not compile with the flags of W=1",
                          *done.stderr.strip().splitlines()[-3:])  # fmt: skip
        return done.stderr

    with ThreadPoolExecutor(max_workers=2) as pool:
        return parse("".join(pool.map(compile_one, objects)))
