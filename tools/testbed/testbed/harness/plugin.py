# SPDX-License-Identifier: GPL-2.0
"""The pytest plugin of make test: which items run, in which lane, and how they are reported.

It is loaded into the process that counts and into those that xdist starts, one per lane. The
output of a lane goes to the terminal immediately, behind the lane's name.
"""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from xdist.remote import Producer

from testbed.catalogue import ON_REQUEST, SUITES
from testbed.env import Env
from testbed.harness import shards
from testbed.harness.lanes import lane_of
from testbed.harness.results import SUITE, Results
from testbed.harness.scheduling import LanesInOrder
from testbed.harness.summary import TOO_LATE
from testbed.host.ui import Failure, enter_lane, since_start

ENV = pytest.StashKey[Env]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--suite", dest="suites", action="append", default=[],
                     help="run this suite, whatever ONLY= says")  # fmt: skip


def is_lane(config: pytest.Config) -> bool:
    """Whether this process runs a lane."""
    return hasattr(config, "workerinput")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[ENV] = Env.read("test")
    config.stash[shards.SECONDS] = {}
    config.addinivalue_line("markers", "suite(name): the suite that ONLY= names")
    if is_lane(config):
        # Standard output is not the terminal here; standard error still is.
        sys.stdout = os.fdopen(os.dup(2), "w", buffering=1)


def suite_of(item: pytest.Item) -> str:
    """The suite of an item: its mark, or the unit tests."""
    mark = item.get_closest_marker("suite")
    return str(mark.args[0]) if mark else "python"


def program_of(item: pytest.Item) -> str:
    """The program that an item runs, as in ONLY=suite/program."""
    params = getattr(item, "callspec", None)
    return str(params.params.get("program", "")) if params else ""


def wanted(item: pytest.Item, names: Sequence[str]) -> bool:
    """Whether ONLY= selects an item."""
    suite = suite_of(item)
    if not names:
        return suite not in ON_REQUEST
    program = Path(program_of(item)).stem
    if suite in names:
        return True
    # A test without a program ends the guest of its suite's programs.
    return any(
        name.removesuffix(".py") == f"{suite}/{program}"
        or (not program and name.startswith(f"{suite}/"))
        for name in names
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LanesInOrder:
    return LanesInOrder(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what LIMIT= leaves no time for, before anything is built for it."""
    settings = item.config.stash[ENV].settings
    if settings.given("LIMIT") and since_start() > float(settings.text("LIMIT")):
        pytest.skip(f"{TOO_LATE}{settings.text('LIMIT')}")


# Before xdist looks for the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select by ONLY= and SHARD=, sort, and assign items to lanes."""
    env = config.stash[ENV]
    order = list(SUITES)
    names = config.getoption("suites") or env.settings.names("ONLY")
    chosen = [one for one in items if wanted(one, names)]
    chosen.sort(key=lambda one: (lane_of(suite_of(one)), order.index(suite_of(one))))
    if env.settings.given("SHARD"):
        part, parts = map(int, env.settings.text("SHARD").split("/"))
        known = shards.load(env.clone)
        times = [known.get(shards.key(suite_of(one), one.nodeid), shards.UNKNOWN) for one in chosen]
        chosen = [chosen[index] for index in shards.share(times, part, parts)]
    for item in chosen:
        item.user_properties.append((SUITE, suite_of(item)))
        item.add_marker(pytest.mark.xdist_group(lane_of(suite_of(item))))
    left_out = [one for one in items if one not in set(chosen)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    items[:] = chosen


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run an item. One with many results is not counted itself, unless it fails."""
    suite = suite_of(item)
    if is_lane(item.config):
        # Unit tests check output, too.
        enter_lane("" if suite == "python" else lane_of(suite))
    many = "results" in getattr(item, "fixturenames", ())
    quiet = redirect_stdout(io.StringIO()) if suite == "python" else nullcontext()
    began = time.monotonic()
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    with quiet:
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        if not many or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    key = shards.key(suite, item.nodeid)
    seconds = item.config.stash[shards.SECONDS]
    seconds[key] = seconds.get(key, 0.0) + time.monotonic() - began
    return True


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Report the durations of a lane's items."""
    if is_lane(session.config):
        output: dict[str, object] = session.config.workeroutput  # type: ignore[attr-defined]
        output["seconds"] = session.config.stash[shards.SECONDS]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report a `Failure` without a traceback of the testbed's own code."""
    report = yield
    if call.excinfo is not None and isinstance(call.excinfo.value, Failure):
        report.longrepr = call.excinfo.value.on_one_line
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Print no letter per test: there are thousands."""
    if isinstance(report, pytest.TestReport) and (report.when == "call" or not report.passed):
        return report.outcome, "", ""
    return None


@pytest.fixture
def results(request: pytest.FixtureRequest) -> Results:
    """The results of a test of many parts."""
    suite, program = suite_of(request.node), program_of(request.node)
    return Results(request.node, f"{suite}/{program}" if program else suite)


@pytest.fixture(scope="session")
def env(request: pytest.FixtureRequest) -> Env:
    """The verb's settings and folders."""
    return request.config.stash[ENV]
