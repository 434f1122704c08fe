# SPDX-License-Identifier: GPL-2.0
"""The functions that each program of a guest enters, in a file of each lane."""

import json
from collections.abc import Sequence
from pathlib import Path

from testbed.coverage import counters
from testbed.host.ui import Failure

# In out/: the files of the lanes, a line for each program.
PARTS = "coverage"
# Asked for before the first program of a guest, so that the boot is not counted as its work.
BOOT = "boot"


def objects(build: Path, tools: Path) -> list[Path]:
    """Programs and modules that have counters: of those of a kernel's build, and the model."""
    modules = [(build / name).with_suffix(".ko") for name in
               (build / "modules.order").read_text().split()]  # fmt: skip
    every = [build / "linux", *modules, tools / "nicmodel"]
    return [path for path in every if counters.records(path)]


class Recorder:
    """One guest and its model."""

    def __init__(self, out: Path, lane: int, files: Sequence[Path]) -> None:
        self._file = out / PARTS / f"lane-{lane}.jsonl"
        self._records = [one for path in files if (one := counters.records(path))]
        self._before: dict[int, dict[int, int]] = {}

    def follow(self, processes: Sequence[int]) -> None:
        """The guest has begun to boot."""
        self._before = {process: {} for process in processes}

    def note(self, program: str) -> None:
        """Write down what has been entered since the last call."""
        entered: set[int] = set()
        for process, before in self._before.items():
            now = counters.totals(process, self._records)
            if any(now.get(name, 0) < count for name, count in before.items()) or not now:
                raise Failure(f"{program}: process {process} has lost its counters")
            entered |= {name for name, count in now.items() if count > before.get(name, 0)}
            self._before[process] = now
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a") as file:
            file.write(json.dumps({"program": program, "entered": sorted(entered)}) + "\n")


def files(out: Path) -> list[Path]:
    """The files of the last run."""
    return sorted((out / PARTS).glob("*.jsonl"))


def load(out: Path) -> dict[str, set[int]]:
    """By program: the hashes of the functions that it has entered."""
    found: dict[str, set[int]] = {}
    for path in files(out):
        for line in path.read_text().splitlines():
            part = json.loads(line)
            found.setdefault(part["program"], set()).update(part["entered"])
    return found
