# SPDX-License-Identifier: GPL-2.0
"""Remembers the compiler's warnings about Rust code from build to build.

A crate that is not compiled again prints nothing, but its warnings stay true:
they are kept until the next time that the crate is compiled.
"""

import json
import re
from pathlib import Path, PurePosixPath

_COMPILED = re.compile(r"^  (?:RUSTC|CLIPPY)\b.* (\S+)\.o$", re.M)
_WARNING = re.compile(r"^(?:warning|error)(?:\[\w+\])?: (.+)\n +--> (\S+?):(\d+):\d+$", re.M)
_FILE = ".skbulk-warnings.json"


def parse(log: str) -> list[str]:
    """The warnings in a build's log, one line each: "FILE:LINE: text"."""
    found = []
    for text, path, line in _WARNING.findall(log):
        # A path is relative to the tree or absolute; the tree's folder is "tree".
        name = path.rpartition("/tree/")[2]
        found.append(f"in {name}:{line}: {text}")
    return found


def covers(build: Path, crate: str, warning: str) -> bool:
    """Whether a warning is about a file of the crate that was compiled.

    A file without an object of its own belongs to the crate beside it.
    """
    file = PurePosixPath(warning.split(" ")[1].split(":")[0])
    root = PurePosixPath(crate)
    if file == root.with_suffix(".rs") or root in file.parents:
        return True
    folder = root.parent
    if folder == PurePosixPath("rust") or folder not in file.parents:
        return False
    return not (build / file.with_suffix(".o")).exists()


def known(build: Path) -> set[str]:
    """The warnings that still hold for a build folder."""
    try:
        texts = json.loads((build / _FILE).read_text())
    except (OSError, ValueError):
        return set()
    return {str(text) for text in texts}


def update(build: Path, log: str) -> None:
    """Take a build's log into account."""
    crates = _COMPILED.findall(log)
    kept = {one for one in known(build) if not any(covers(build, crate, one) for crate in crates)}
    (build / _FILE).write_text(json.dumps(sorted(kept | set(parse(log)))))
