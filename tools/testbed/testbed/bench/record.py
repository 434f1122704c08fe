# SPDX-License-Identifier: GPL-2.0
"""Recorded results: one file per part, written with RECORD=1, from which RESULTS.md is made.

A file holds everything that was measured, so that no figure is chosen by hand, and the
circumstances: date, commit, processor, kernel, rounds.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testbed.bench.rows import Row
from testbed.catalogue import MEMORY
from testbed.env import Env
from testbed.host import proc
from testbed.host.ui import Failure, say

FOLDER = Path("tools/testbed/record/results")
# All that RECORD=1 writes.
RECORDED = (str(FOLDER), "tools/insn/record", "RESULTS.md", "README.md")
# The benchmarks of make bench that a part is made of.
PARTS: Mapping[str, frozenset[str]] = {
    "forward": frozenset({"forward"}),
    "window": frozenset({"forward"}),
    "tcp": frozenset({"tcp"}),
    "insn": frozenset({"insn"}),
    "xdp": frozenset({"xdp"}),
    "xmit": frozenset({"xmit"}),
    "memory": frozenset(MEMORY),
    "maple": frozenset({"maple"}),
    "ablation": frozenset({"ablation"}),
}
# Parts whose cases CASES= selects, with a value that selects all of them.
WITH_CASES: Mapping[str, str] = {"forward": "", "window": "window", "tcp": "", "xdp": ""}
# Those that a busy machine does not disturb: they count instructions.
_COUNTS = frozenset({"insn"})
Content = dict[str, Any]


@dataclass(frozen=True)
class Circumstances:
    """The conditions of a measurement."""

    date: str
    commit: str
    cpu: str
    processors: int
    # Empty where no kernel was measured.
    kernel: str
    rounds: int = 1

    @classmethod
    def now(cls, env: Env, kernel: str, rounds: int = 1) -> Circumstances:
        """Those of a measurement made now, from this clone."""
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.M)
        cpu, today = found[1] if found else platform.machine(), datetime.now(UTC).date()
        return cls(today.isoformat(), commit(env.clone), cpu, os.cpu_count() or 1, kernel, rounds)

    @classmethod
    def of(cls, content: Content) -> Circumstances:
        """Those of a file."""
        return cls(**{one.name: content[one.name] for one in fields(cls) if one.name in content})

    def sentence(self) -> str:
        """All of it, for a reader."""
        rounds = f", {self.rounds} rounds" if self.rounds > 1 else ""
        kernel = f", Linux {self.kernel}" if self.kernel else ""
        return (
            f"{self.date}, commit {self.commit}, {self.processors} processors of "
            f"{self.cpu}{kernel}{rounds}."
        )


def commit(clone: Path) -> str:
    """The commit of a clone, with a + if the work tree differs from it."""
    # It may belong to another user, also where a user namespace makes the owner another one.
    git = ["git", "-c", f"safe.directory={clone}", "-C", str(clone)]
    head = proc.output([*git, "rev-parse", "--short=7", "HEAD"])
    # A run that writes several records does not count its own.
    sources = [".", *(f":!{one}" for one in RECORDED)]
    changed = proc.output([*git, "status", "--porcelain", "-uno", "--", *sources])
    return f"{head.strip()}{'+' if changed and changed.strip() else ''}" if head else "unknown"


def refusals(names: Iterable[str], cases: str, quiet: bool) -> dict[str, str]:
    """The parts with measurements, each with a reason not to record it, or an empty string."""
    measured = set(names)
    found: dict[str, str] = {}
    for part, benches in PARTS.items():
        if not benches & measured:
            continue
        found[part] = ""
        if missing := sorted(benches - measured):
            found[part] = f"it needs {', '.join(missing)} as well"
        elif part in WITH_CASES and cases not in ("", WITH_CASES[part]):
            found[part] = f"CASES={cases} leaves some out"
        elif part not in _COUNTS and not quiet:
            found[part] = "the machine was busy"
    return found


def rows_of(part: str, rows: Iterable[Row]) -> list[Content]:
    """The rows that belong to a part, as its file has them."""
    # The benchmark that measures windows is another one.
    tables = {part} if part == "window" else PARTS[part]
    return [row.record() for row in rows if row.bench.split("-")[0] in tables]


def keep(env: Env, part: str, content: Content, kernel: str = "", rounds: int = 1) -> None:
    """Write a part that was measured now."""
    say(f"written: {save(env.clone, part, Circumstances.now(env, kernel, rounds), content)}")


def save(clone: Path, part: str, circumstances: Circumstances, content: Content) -> Path:
    """Write a part; rows get a line each, so that a diff shows which have changed."""
    path = clone / FOLDER / f"{part}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = content.pop("rows", None)
    text = json.dumps({**asdict(circumstances), **content}, indent=1)
    if rows is not None:
        lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        text = f'{text[:-2]},\n "rows": [\n{lines}\n ]\n}}'
    path.write_text(f"{text}\n")
    return path


def load(clone: Path) -> dict[str, Content]:
    """All parts that were recorded, by name."""
    found: dict[str, Content] = {}
    for path in sorted((clone / FOLDER).glob("*.json")):
        try:
            found[path.stem] = json.loads(path.read_text())
            Circumstances.of(found[path.stem])
        except (ValueError, KeyError, TypeError) as error:
            raise Failure(
                f"{path} is no recorded result ({error!r})",
                f"git checkout {path.relative_to(clone)} restores it, RECORD=1 renews it",
            ) from error
    return found
