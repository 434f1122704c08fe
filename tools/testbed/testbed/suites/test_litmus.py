# SPDX-License-Identifier: GPL-2.0
"""Checks the litmus tests of the clone with herd7 and the kernel's memory model."""

import re
from pathlib import Path

import pytest

from testbed.build.kernel import UML
from testbed.harness.results import Results
from testbed.host import debian, proc
from testbed.host.ui import Failure, Step
from testbed.suites.conftest import Ready

FOLDER = "Documentation/litmus-tests"
# Of a newer Debian.
_PACKAGES = ("herdtools7", "libc6", "libgmp10")
_EXPECTED = re.compile(r"^\s*\*?\s*Result:\s*(Never|Sometimes|Always)\b", re.M)
_OBSERVED = re.compile(r"^Observation \S+ (Never|Sometimes|Always)\b", re.M)
_RACE = re.compile(r"^Flag data-race", re.M)


def command(herd: Path, test: Path) -> list[str | Path]:
    """The command that checks a test with the model in the current folder. herd7 has libraries of
    its own, since they are newer than the root's."""
    libraries = herd / "usr/lib/x86_64-linux-gnu"
    return [
        libraries / "ld-linux-x86-64.so.2", "--library-path", libraries, herd / "usr/bin/herd7",
        "-set-libdir", herd / "usr/share/herdtools7/herd", "-conf", "linux-kernel.cfg", test,
    ]  # fmt: skip


def judge(test: str, output: str) -> str | None:
    """The problem with the outcome of a test, if there is one."""
    expected = _EXPECTED.search(test)
    if expected is None:
        return "the file says no expected result (a comment with Result: Never)"
    observed = _OBSERVED.search(output)
    if observed is None:
        return "herd7 gave no result"
    if observed[1] != expected[1]:
        return f"expected {expected[1]}, observed {observed[1]}"
    # A test of a missing ordering may have races.
    if expected[1] == "Never" and _RACE.search(output):
        return "herd7 flags a data race"
    return None


@pytest.mark.suite("litmus")
def test_litmus(ready: Ready, results: Results) -> None:
    """Every litmus test of the clone has its expected result."""
    built = ready(UML)
    env = built.env
    tests = sorted((env.clone / FOLDER).rglob("*.litmus"))
    if not tests:
        raise Failure(f"there is no test in {FOLDER}")
    try:
        herd = debian.unpacked(env, "herd7", _PACKAGES)
    except Failure as error:
        results.skip("litmus", f"herd7 is not available: {error}")
        return
    model = built.kernels[UML].tree.base / "tools/memory-model"
    with Step(f"litmus tests: {len(tests)}, herd7 with the kernel's memory model"):
        for test in tests:
            log = proc.fresh(env.logs / f"litmus-{test.stem}.log")
            proc.run(command(herd, test), log, what="herd7", cwd=model, timeout=300, check=False)
            found = judge(test.read_text(), log.read_text(errors="replace"))
            results.add(test.stem, f"{found} (log: {log})" if found else None)
