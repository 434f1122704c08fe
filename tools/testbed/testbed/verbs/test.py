# SPDX-License-Identifier: GPL-2.0
"""make test: pytest with the testbed's plugin, in lanes, and one line at the end."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from testbed.catalogue import ON_REQUEST, SUITES, TIER
from testbed.env import Env
from testbed.harness import checks, lanes, repeat, shards
from testbed.harness.plugin import TURN
from testbed.harness.summary import Summary
from testbed.host.ui import Failure, clock, say, since_start

_UNIT_TESTS = ("testbed/tests", "insn/tests", "txsim/tests")


def main(env: Env) -> int:
    """Run the suites that ONLY selects, or those of ALL."""
    names = env.settings.names("ONLY")
    if "list" in names:
        say(*(f"{name:<16} {text}{_when(name)}" for name, text in SUITES.items()))
        return 0
    names = names or (["ports"] if env.settings.given("NETIF") else [])
    times = env.settings.number("REPEAT")
    with repeat.load(env.settings.switch("LOAD")):
        if times == 1:
            return run(env, names, Summary())
        return repeat.run(times, lambda summary: run(env, names, summary))


def _when(suite: str) -> str:
    if suite in ON_REQUEST:
        return ", on request"
    return "" if suite in TIER else ", with ALL=1"


def run(env: Env, names: Sequence[str], summary: Summary) -> int:
    """Run some suites or programs of them, or those of ALL; returns the exit code."""
    only = [name.partition("/")[0] for name in names]
    suites = [name for name in SUITES if name in only or (not only and name not in ON_REQUEST)]
    forget(env.out)
    sys.stdout.flush()
    # The output of lanes comes by standard error.
    os.dup2(1, 2)
    code = int(pytest.main(_words(env, suites, names), plugins=[summary]))
    if code == pytest.ExitCode.INTERRUPTED and not summary.failed:
        raise KeyboardInterrupt
    known = checks.load(env.clone)
    if not env.settings.switch("RECORD"):
        summary.call_the_roll(known)
    say("")
    summary.show()
    if more := checks.unknown(known, summary.checks):
        say(f"{more} checks are not in {checks.FOLDER} yet: RECORD=1 adds those of a run")
    say(f"all of it took {clock(since_start())}; logs: {env.logs}, JUnit: {env.out / 'results'}")
    lost = [] if env.settings.given("SHARD") else summary.without(names)
    if lost or code == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise Failure(f"no test was run: {', '.join(lost)}",
                      "make test ONLY=list names the suites",
                      "a program of one: ONLY=e2e-uml/forward")  # fmt: skip
    if env.settings.switch("RECORD"):
        shards.save(env.clone, summary.seconds)
        checks.save(env.clone, summary.checks)
    say(summary.last_line)
    return code or int(summary.failed)


def forget(out: Path) -> None:
    """Remove the results of an earlier run, which readers would take for those of the last one,
    and its locks."""
    results = out / "results"
    for path in (results / "junit.xml", *out.glob(f"{TURN}*")):
        path.unlink(missing_ok=True)


def _words(env: Env, suites: Sequence[str], names: Sequence[str]) -> list[str]:
    tools = env.clone / "tools"
    places = ["testbed/testbed/suites", *(_UNIT_TESTS if "python" in suites else ())]
    words = [
        f"--rootdir={tools}",
        "-c", str(tools / "pyproject.toml"),
        "-p", "testbed.harness.plugin",
        f"--junitxml={env.out / 'results/junit.xml'}",
        *(f"--suite={name}" for name in names),
        *(str(tools / place) for place in places),
    ]  # fmt: skip
    number = env.settings.number("LANES", lanes.side_by_side(os.cpu_count() or 1))
    # A single program needs no lanes; xdist ends those for which there is nothing.
    if number > 1 and (len(suites) > 1 or suites[0] in names):
        words += ["-n", str(number), "--dist", "loadgroup"]
    return words
