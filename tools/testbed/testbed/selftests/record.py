# SPDX-License-Identifier: GPL-2.0
"""out/selftests.json: the results of both drivers, and their table."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from testbed.host.ui import Failure
from testbed.selftests.results import FAIL, PASS, SKIP, XFAIL, Program

FILE = "selftests.json"
# In the order of the table's columns.
DRIVERS = {"c": "C", "rust": "Rust"}
# As in kselftest's totals, an expected failure is neither a failure nor a success.
_COUNTED = {PASS: (PASS,), FAIL: (FAIL,), SKIP: (SKIP, XFAIL)}


def of_driver(programs: Iterable[Program]) -> dict[str, Any]:
    """The results of one driver, by the names of the programs' files."""
    found: dict[str, Any] = {}
    for program in programs:
        entry: dict[str, Any] = {name: program.count(*those) for name, those in _COUNTED.items()}
        entry["cases"] = {name: asdict(case) for name, case in program.cases.items()}
        found[program.name.rpartition("/")[2]] = entry
    return dict(sorted(found.items()))


def load(path: Path) -> dict[str, Any]:
    """Read a record."""
    try:
        record: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Failure(
            f"{path} cannot be read: {error}", "make test ONLY=selftests writes it"
        ) from error
    return record


def save(record: Mapping[str, Any], path: Path) -> None:
    """Write a record."""
    path.write_text(json.dumps(record, indent=2) + "\n")


def totals(results: Mapping[str, Any]) -> tuple[int, int, int]:
    """Cases of one driver that passed, failed and were skipped."""
    passed, failed, skipped = (
        sum(entry[name] for entry in results.values()) for name in (PASS, FAIL, SKIP)
    )
    return passed, failed, skipped


def table(record: Mapping[str, Any]) -> list[str]:
    """The record as the lines of a Markdown table: a program a line, C beside Rust."""
    lines = [
        "| program | C: pass | fail | skip | Rust: pass | fail | skip |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    results = [record.get(driver, {}) for driver in DRIVERS]
    for name in sorted({name for one in results for name in one}):
        cells = [_cells(one.get(name)) for one in results]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    sums = [" | ".join(f"**{number}**" for number in totals(one)) for one in results]
    lines.append(f"| **all** | {' | '.join(sums)} |")
    return lines


def _cells(entry: Mapping[str, Any] | None) -> str:
    """The three cells of a driver; a program that was not run has dashes."""
    return " | ".join("-" if entry is None else str(entry[name]) for name in (PASS, FAIL, SKIP))


def is_alike(record: Mapping[str, Any], program: str, name: str) -> bool:
    """Whether a case passes with neither driver, and says the same words with both."""
    ours, theirs = (
        record.get(driver, {}).get(program, {"cases": {}})["cases"].get(name)
        for driver in ("rust", "c")
    )
    return ours is not None and ours == theirs and ours["result"] != PASS


def share(record: Mapping[str, Any]) -> str:
    """The passes among the cases that can tell one driver from the other."""
    alike = sum(
        is_alike(record, program, name)
        for program, entry in record["rust"].items()
        for name in entry["cases"]
    )
    passed, counted = (
        {driver: sum(totals(record[driver])[:end]) for driver in DRIVERS} for end in (1, 3)
    )
    parts = " and ".join(
        f"{passed[driver]} of {counted[driver] - alike} pass with the {name} driver"
        for driver, name in DRIVERS.items()
    )
    return (
        f"{alike} cases pass with neither driver and say the same words with both, which tells "
        f"nothing about either. Of the others, {parts}."
    )


def behind(record: Mapping[str, Any], result: str = FAIL) -> list[str]:
    """Cases that pass with the C driver and have another result with the Rust driver."""
    found = []
    for program, entry in record.get("c", {}).items():
        others = record.get("rust", {}).get(program, {"cases": {}})["cases"]
        for name, case in entry["cases"].items():
            other = others.get(name, {"result": FAIL, "reason": "no result"})
            if case["result"] == PASS and other["result"] == result:
                found.append(f"{program} {name}: {other['reason']}")
    return found
