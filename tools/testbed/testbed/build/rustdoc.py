# SPDX-License-Identifier: GPL-2.0
"""rustdoc's warnings about a crate of a built kernel, for instance about links that lead nowhere.

The kernel's own target documents the crates of all others first. So the crate is read as the build
compiled it, and nothing is written.
"""

import re
import subprocess
from pathlib import Path

from testbed.build.saved import words
from testbed.host import proc
from testbed.host.ui import Failure

_WARNING = re.compile(
    r"^(?P<path>\S+\.rs):(?P<line>\d+):\d+: (?:warning|error)(?:\[\S+\])?: (?P<text>.+)$", re.M
)
# Words of the compiler's command that rustdoc has not.
_NOT = ("--emit", "--remap-path-scope", "-Zbinary_dep_depinfo")


def command(saved: str) -> list[str]:
    """rustdoc's command, with its variables in front, from a .cmd file of a crate."""
    found = words(saved)
    place = next((at for at, word in enumerate(found) if "=" not in word), 0)
    if not found[place:] or Path(found[place]).name not in ("rustc", "clippy-driver"):
        return []
    rest = [word for word in found[place + 1 :] if not word.startswith(_NOT)]
    return ["env", *found[:place], "RUSTC_BOOTSTRAP=1", "rustdoc", "--check", "-Zunstable-options",
            "--error-format=short", *rest]  # fmt: skip


def parse(output: str) -> list[str]:
    """rustdoc's warnings, one line each: "in FILE:LINE: text"."""
    found = []
    for one in _WARNING.finditer(output):
        name = one["path"].rpartition("/tree/")[2]
        found.append(f"in {name}:{one['line']}: {one['text']}")
    return found


def of(build: Path, crate: str) -> list[str]:
    """The warnings about a crate, which is named by its object."""
    path = build / crate
    done = proc.capture(command((path.parent / f".{path.name}.cmd").read_text()),
                        stderr=subprocess.PIPE, cwd=build)  # fmt: skip
    found = parse(done.stderr)
    if done.returncode != 0 and not found:
        raise Failure(f"rustdoc cannot read {crate}", *done.stderr.strip().splitlines()[-3:])
    return found
