# SPDX-License-Identifier: GPL-2.0
"""The list of all checks: what a run had to report, and did not.

A check that is no longer made fails nothing by itself. So record/checks lists those of each item
(a program, a file of unit tests, a boot), and an item that has run must report them all. Those
that were skipped in the recorded run are marked; another that is skipped now is a failure, unless
its reason is the machine's.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

FOLDER = "tools/testbed/record/checks"
# Reasons of skipped checks that are the machine's, not the code's.
MACHINES = re.compile(r"the machine was too busy|the record is of|.* is not (installed|available)")

# "excused": skipped, for a reason of the machine's.
Outcome = Literal["passed", "failed", "skipped", "excused"]
# The outcome of each check, by item.
Checks = dict[str, dict[str, Outcome]]

_SKIPPED = " # SKIP"
# As many names are printed.
_NAMED = 5


def load(clone: Path) -> Checks:
    """The record: each item is "passed" or "skipped"."""
    known: Checks = {}
    for path in sorted((clone / FOLDER).glob("*.txt")):
        item = ""
        for line in path.read_text().splitlines():
            if line.startswith("\t"):
                name = line[1:].removesuffix(_SKIPPED)
                known[item][name] = "skipped" if line.endswith(_SKIPPED) else "passed"
            else:
                item = line
                known[item] = {}
    return known


def save(clone: Path, seen: Checks) -> None:
    """Put the items of a run that passed in place of the recorded ones."""
    fine = {
        item: checks
        for item, checks in seen.items()
        if not {"failed", "excused"} & set(checks.values())
    }
    known = {**load(clone), **fine}
    folder = clone / FOLDER
    folder.mkdir(exist_ok=True)
    texts: dict[str, list[str]] = {}
    for item, checks in sorted(known.items()):
        lines = texts.setdefault(suite_of(item), [])
        lines.append(item)
        lines += [f"\t{name}{_SKIPPED if outcome == 'skipped' else ''}"
                  for name, outcome in sorted(checks.items())]  # fmt: skip
    for suite, lines in texts.items():
        (folder / f"{suite}.txt").write_text("\n".join(lines) + "\n")


def suite_of(item: str) -> str:
    """The suite in the name of an item."""
    return item.partition("/")[0]


def lacking(known: Checks, seen: Checks, unfinished: Iterable[str]) -> dict[str, str]:
    """The checks that items of this run lack, in words, by item; `unfinished` ones had no time
    for all of theirs."""
    found = {}
    for item in sorted(set(known) & set(seen) - set(unfinished)):
        gone = sorted(set(known[item]) - set(seen[item]))
        skipped = sorted(
            name for name, outcome in seen[item].items()
            if outcome == "skipped" and known[item].get(name) == "passed"
        )  # fmt: skip
        words = [*_words("not reported", gone), *_words("skipped now", skipped)]
        if words:
            found[item] = "; ".join(words)
    return found


def _words(what: str, names: list[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return [f"{what}: {', '.join(names[:_NAMED])}{more}"]


def unknown(known: Checks, seen: Checks) -> int:
    """How many checks the record does not have."""
    return sum(len(set(checks) - set(known.get(item, ()))) for item, checks in seen.items())
