# SPDX-License-Identifier: GPL-2.0
""".ci/run: what continuous integration runs, by the number of commits."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

CLONE = Path(__file__).resolve().parents[4]
MUTANTS = {path.stem for path in (CLONE / "tools/testbed/mutants").glob("*.patch")}


def _program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


def _run(folder: Path, commits: int, make: str = "") -> Sequence[str]:
    """The words of each call of make, in a clone with so many commits."""
    calls = folder / "calls"
    calls.unlink(missing_ok=True)
    _program(folder / "make", f'echo "$*" >> {calls}\n{make}')
    _program(folder / "git", f"echo {commits}")
    path = f"{folder}:{os.environ['PATH']}"
    subprocess.run([CLONE / ".ci/run"], env={**os.environ, "PATH": path}, check=False,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    return calls.read_text().splitlines()


def _tried(call: str) -> list[str]:
    """The mutants of a call."""
    (only,) = [word for word in call.split() if word.startswith("ONLY=")]
    return [name.removeprefix("mutants/") for name in only.removeprefix("ONLY=").split(",")]


def test_a_change_a_few_mutants_and_a_slice(tmp_path: Path) -> None:
    """In this order."""
    change, mutants, rest = _run(tmp_path, 6)
    assert change == "test"
    assert 0 < len(_tried(mutants)) < 10
    assert "LIMIT=" in mutants
    assert rest.startswith("test ALL=rest SHARD=3/4 LIMIT=")


def test_each_mutant_has_its_turn(tmp_path: Path) -> None:
    """One few after the other, and none is left out at the end of a turn."""
    tried: list[str] = []
    commits = 1000
    while len(tried) < len(MUTANTS):
        tried += _tried(_run(tmp_path, commits)[1])
        commits += 1
    assert set(tried[: len(MUTANTS)]) == MUTANTS


def test_a_failure_ends_the_run(tmp_path: Path) -> None:
    """Of the tests of the change."""
    assert _run(tmp_path, 1, "exit 1") == ["test"]
