# SPDX-License-Identifier: GPL-2.0
"""The record of the kernel's selftests: the results of both drivers, and their tables."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from testbed.host.tables import rows
from testbed.selftests.results import FAIL, PASS, SKIP, XFAIL, Program

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


def renewed(
    old: Mapping[str, Any], results: Mapping[str, Mapping[str, Any]], when: str
) -> dict[str, Any]:
    """The record with other results of some programs, and when they were run."""
    found: dict[str, Any] = {
        driver: dict(sorted({**old.get(driver, {}), **results[driver]}.items()))
        for driver in sorted(DRIVERS, reverse=True)
    }
    names = {name for one in results.values() for name in one}
    found["renewed"] = {**old.get("renewed", {}), **dict.fromkeys(sorted(names), when)}
    return found


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


# Of each: the program, the cause, a word of the case's name or of its own reason, and why.
_RULES = rows(Path(__file__).with_name("reasons.txt"), 4)
UNKNOWN = "not explained"


def reasons(record: Mapping[str, Any]) -> list[str]:
    """Why cases do not pass with the Rust driver, as the lines of a Markdown table."""
    found: Counter[tuple[str, str, str]] = Counter()
    for program, entry in record["rust"].items():
        theirs = record["c"].get(program, {"cases": {}})["cases"]
        for name, case in entry["cases"].items():
            if case["result"] != PASS:
                words = f"{name}\n{case['reason']}"
                fits = ((cause, why) for of, cause, word, why in _RULES
                        if fnmatch(program, of) and (word == "-" or word in words))  # fmt: skip
                cause, why = next(fits, (UNKNOWN, name))
                # Alike with both drivers: nothing that one of them lacks.
                both = cause == "driver" and theirs.get(name) == case
                found[program, "both" if both else cause, why] += 1
    return [
        "| program | cases | cause | |",
        "| --- | ---: | --- | --- |",
        *(f"| {program} | {count} | {cause} | {why} |"
          for (program, cause, why), count in found.items()),
    ]  # fmt: skip
