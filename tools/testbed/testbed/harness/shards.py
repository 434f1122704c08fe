# SPDX-License-Identifier: GPL-2.0
"""SHARD=i/n: the i-th of n parts of the tests, of about the same duration each.

A part is a piece of the whole order and has whole groups, which are the suites of one kernel for
example: few machines of a matrix have to build the same kernel.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

# Seconds by key, of the last run with RECORD=1.
RECORD = "tools/testbed/record/test-seconds.json"
# The seconds of each item, by its key, in the process that ran it.
SECONDS = pytest.StashKey[dict[str, float]]()
# For a test that is not in the record.
UNKNOWN = 0.2


def key(suite: str, nodeid: str) -> str:
    """The name of a test in the record: unit tests are counted by file."""
    name = nodeid.partition("@")[0]
    return f"{suite} {name.partition('::')[0] if suite == 'python' else name}"


def load(clone: Path) -> dict[str, float]:
    """The record, or nothing."""
    try:
        return {str(name): float(value)
                for name, value in json.loads((clone / RECORD).read_text()).items()}  # fmt: skip
    except FileNotFoundError:
        return {}


def save(clone: Path, seconds: Mapping[str, float]) -> None:
    """Update the tests that ran; the rest stays."""
    known = {**load(clone), **{name: round(value, 1) for name, value in seconds.items()}}
    path = clone / RECORD
    path.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def share(seconds: Sequence[float], part: int, parts: int) -> list[int]:
    """The indexes of the groups of one part, from 1 to `parts`.

    Each part takes its share of what is left: a group that is longer than that leaves less to the
    others, and none of them empty.
    """
    found: list[list[int]] = [[]]
    left, taken = sum(seconds), 0.0
    for index, one in enumerate(seconds):
        most = left / (parts + 1 - len(found))
        if found[-1] and taken + one / 2 > most and len(found) < parts:
            left -= taken
            taken = 0.0
            found.append([])
        found[-1].append(index)
        taken += one
    return found[part - 1] if part <= len(found) else []
