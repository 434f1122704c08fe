# SPDX-License-Identifier: GPL-2.0
"""The layout of the sources: modules lie where the compiler looks for them."""

from __future__ import annotations

import re
from pathlib import Path

CLONE = Path(__file__).parents[3]
SKIPPED_FOLDERS = {".git", "out", "target"}
# In code, and in the lines that patches add.
PATH_ATTRIBUTE = re.compile(r"^\+?[ \t]*#!?\[(?:cfg_attr\([^\n]*)?path\b.*", re.M)


def test_no_module_needs_a_path_attribute() -> None:
    found = [
        f"{path.relative_to(CLONE)}: {match[0].strip()}"
        for pattern in ("*.rs", "patches/*.patch")
        for path in sorted(CLONE.rglob(pattern))
        if not SKIPPED_FOLDERS & {*path.relative_to(CLONE).parts}
        for match in PATH_ATTRIBUTE.finditer(path.read_text())
    ]
    assert not found, "\n".join(["move the file to its module's place:", *found])


def test_the_attribute_is_found() -> None:
    for line in ('#[path = "x.rs"]', '+    #[path="x.rs"]', '#[cfg_attr(test, path = "x.rs")]'):
        assert PATH_ATTRIBUTE.search(f"mod a;\n{line}\nmod b;\n"), line
    assert not PATH_ATTRIBUTE.search("// the attribute #[path] is not used\n")
