# SPDX-License-Identifier: GPL-2.0
"""The record of a run: entered functions by part of the sources and by program, and its text."""

import json
import textwrap
from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any

from testbed.bench import record
from testbed.boot import nicmodel
from testbed.build import kernel
from testbed.coverage import functions, recorder
from testbed.coverage.functions import Function
from testbed.env import Env
from testbed.host.ui import Step, say
from testbed.selftests.kinds import COVERED, in_tier
from testbed.source import tree

DRIVER = "drivers/net/ethernet/intel/ixgbe/rust"
# Folders that count: their part, and the depth down to which each has a row of its own. Of the
# samples, programs need some, but no part of the tier is chosen for them.
_FOLDERS = {
    DRIVER: ("driver", 7),
    "rust/kernel": ("abstractions", 5),
    "tools/nicmodel": ("model", 5),
}
# Files that a row of RESULTS.md names.
_FILES = 3
Content = Mapping[str, Any]


def finish(env: Env, passed: bool) -> None:
    """Say what has been entered, and write it down. The record takes a whole run that passed."""
    if not recorder.files(env.out):
        return
    build = kernel.build_folder(env, kernel.COVERAGE)
    with Step("functions of the sources: llvm-cov"):
        files = recorder.objects(build, nicmodel.output_folder(env))
        known = functions.of_files(env.llvm, files, tree.place(env) / "tree", env.clone)
    found = of_run(env.out, env.clone, known)
    for part, (entered, every) in sums(found).items():
        say(f"    {part}: {entered} of {every} functions entered")
    path = env.out / "coverage.json"
    path.write_text(json.dumps(found, indent=1) + "\n")
    say(f"written: {path}")
    if not env.settings.switch("RECORD"):
        return
    problems = [f"{name} has not run" for name in missing(env.clone, found)]
    if problems or not passed:
        say(f"not recorded: {', '.join(problems) or 'a test failed'}")
        return
    record.keep(env, "coverage", found)


def of_run(out: Path, clone: Path, known: Mapping[int, Function]) -> dict[str, Any]:
    """The content of out/coverage.json, of the programs that have run."""
    every = {one for one in known.values() if part_of(one.file)}
    runs = {
        program: {known[one] for one in entered if one in known} & every
        for program, entered in recorder.load(out).items()
    }
    return content(every, runs, {recorder.BOOT, *in_tier(clone, COVERED)})


def part_of(file: str) -> str:
    """The part that a source file belongs to; empty if its functions do not count."""
    return next((part for top, (part, _) in _FOLDERS.items() if file.startswith(f"{top}/")), "")


def _folder_of(file: str, folders: Set[str]) -> str:
    """The folder whose row has a file: x.rs is the head of the folder x."""
    depth = next(depth for top, (_, depth) in _FOLDERS.items() if file.startswith(f"{top}/"))
    own = file.removesuffix(".rs")
    folder = own if own in folders else file.rpartition("/")[0]
    return "/".join(folder.removesuffix("/src").replace("/src/", "/").split("/")[:depth])


def content(
    every: Set[Function], runs: Mapping[str, Set[Function]], tier: Set[str]
) -> dict[str, Any]:
    """Functions that programs of the tier enter, and those that others enter beside."""
    entered = set[Function]().union(*(run for name, run in runs.items() if name in tier))
    folders = {one.file.rpartition("/")[0] for one in every}
    rows: dict[str, dict[str, list[int]]] = {part: {} for part, _ in _FOLDERS.values()}
    for one in sorted(every):
        row = rows[part_of(one.file)].setdefault(_folder_of(one.file, folders), [0, 0])
        row[0] += one in entered
        row[1] += 1
    programs = {}
    for name, run in sorted(runs.items()):
        others = [other for it, other in runs.items() if it in tier and it != name]
        alone = run - set[Function]().union(*others)
        programs[name] = {
            "tier": name in tier,
            "entered": len(run),
            "alone": len(alone),
            "files": sorted({one.file for one in alone}),
        }
    idle: dict[str, list[str]] = {}
    for one in sorted(every - entered):
        idle.setdefault(one.file, []).append(one.name)
    busy = {one.file for one in entered}
    return {
        "parts": {part: dict(sorted(row.items())) for part, row in rows.items()},
        "programs": programs,
        "files": [file for file in idle if file not in busy],
        "driver": {file: names for file, names in idle.items() if part_of(file) == "driver"},
    }


def missing(clone: Path, content: Content) -> list[str]:
    """Programs of the tier that have not run."""
    return sorted(set(in_tier(clone, COVERED)) - set(content["programs"]))


def sums(content: Content) -> dict[str, tuple[int, int]]:
    """Entered functions and all of them, by part."""
    return {
        part: (sum(row[0] for row in rows.values()), sum(row[1] for row in rows.values()))
        for part, rows in content["parts"].items()
    }


def lines(content: Content) -> list[str]:
    """The record as a document: two tables, and lists of what nothing enters."""
    found = ["| part | functions | entered |", "| --- | ---: | ---: |"]
    for part, (entered, every) in sums(content).items():
        found.append(f"| **{part}** | **{every}** | **{entered}** |")
        found += [f"| `{folder}` | {row[1]} | {row[0]} |"
                  for folder, row in content["parts"][part].items()]  # fmt: skip
    found += ["", *_fill("By program: functions entered, and those that no other program of the "
                         "tier enters, with files that they are in.")]  # fmt: skip
    found += ["", "| program | functions | it alone | in |", "| --- | ---: | ---: | --- |"]
    programs = sorted(content["programs"].items(), key=lambda one: (-one[1]["alone"], one[0]))
    found += [_row(name, one) for name, one in programs]
    found += ["", "Files of which no program enters a function:", ""]
    found += _fill(_listed(content["files"]))
    found += ["", "Functions of the driver that no program enters:", ""]
    for file, names in content["driver"].items():
        found += textwrap.wrap(f"- `{file.removeprefix(f'{DRIVER}/')}`: {_listed(names)}", 100,
                               subsequent_indent="  ", break_on_hyphens=False)  # fmt: skip
    return found


def _row(name: str, one: Content) -> str:
    files = [file.rpartition("/")[2] for file in one["files"]]
    more = " ..." if len(files) > _FILES else ""
    when = "" if one["tier"] else " (`ALL=1`)"
    return (f"| {name}{when} | {one['entered']} | {one['alone']} | "
            f"{', '.join(files[:_FILES])}{more} |")  # fmt: skip


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{one}`" for one in names) or "none"


def _fill(text: str) -> list[str]:
    return textwrap.wrap(text, 100, break_on_hyphens=False)
