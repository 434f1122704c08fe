# SPDX-License-Identifier: GPL-2.0
"""The pytest plugin of make test: which items run, in which lane, and how they are reported.

It is loaded into the process that counts and into those that xdist starts, one per lane. The
output of a lane goes to the terminal immediately, behind the lane's number.
"""

import io
import os
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from xdist.remote import Producer

from testbed.catalogue import ON_REQUEST, SUITES, TIER
from testbed.env import Env
from testbed.harness import shards
from testbed.harness.lanes import QUIET, group_of, place_of
from testbed.harness.results import ITEM, NEXT, SUITE, Results
from testbed.harness.scheduling import GroupsInOrder
from testbed.harness.summary import TOO_LATE
from testbed.host.lock import Lock
from testbed.host.ui import Failure, OutOfTime, enter_lane

ENV = pytest.StashKey[Env]()
# In out/: the beginning of the names of locks, one for each run with lanes.
TURN = ".turn-"
# Of one test, which reads in ONLY= itself which programs to run.
CHOOSES = ("selftests",)


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
    config.addinivalue_line("markers", "beyond: not in the tier, although its suite is")
    if is_lane(config):
        # Standard output is not the terminal here; standard error still is.
        sys.stdout = os.fdopen(os.dup(2), "w", buffering=1)


def lane_of(config: pytest.Config) -> int:
    """The number of this process's lane, from 1 on."""
    name: str = config.workerinput["workerid"] if is_lane(config) else "gw0"  # type: ignore[attr-defined]
    return int(name.removeprefix("gw")) + 1


def suite_of(item: pytest.Item) -> str:
    """The suite of an item: its mark, or the unit tests."""
    mark = item.get_closest_marker("suite")
    return str(mark.args[0]) if mark else "python"


def _parameter(item: pytest.Item, name: str) -> str:
    spec = getattr(item, "callspec", None)
    return str(spec.params.get(name, "")) if spec else ""


def program_of(item: pytest.Item) -> str:
    """The program that an item runs, as in ONLY=suite/program."""
    return _parameter(item, "program")


def _listed_as(item: pytest.Item) -> str:
    """The item's name in the list of all checks: unit tests are listed by file."""
    suite = suite_of(item)
    if suite == "python":
        return f"{suite}/{item.nodeid.partition('::')[0]}"
    return f"{suite}/{program_of(item) or item.name}"


def config_of(item: pytest.Item) -> str:
    """The kernel that an item names, if it does."""
    return _parameter(item, "config")


def wanted(item: pytest.Item, names: Sequence[str], every: str) -> bool:
    """Whether ONLY=, or ALL= without it, selects an item."""
    suite = suite_of(item)
    if not names:
        in_tier = suite in TIER and item.get_closest_marker("beyond") is None
        chosen = {"0": in_tier, "1": True, "rest": not in_tier}[every]
        return chosen and suite not in ON_REQUEST
    if suite in CHOOSES:
        return any(one.partition("/")[0] == suite for one in names)
    program = Path(program_of(item)).stem
    return suite in names or f"{suite}/{program}" in {one.removesuffix(".py") for one in names}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupsInOrder:
    return GroupsInOrder(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Do not begin what LIMIT= leaves no time for, before anything is built for it."""
    item.config.stash[ENV].check_time()


# Before xdist looks for the groups.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select by ONLY=, ALL= and SHARD=, assign items to groups, and sort: groups that begin
    first, then the suites in their order, programs that take long before those that do not."""
    env = config.stash[ENV]
    order = list(SUITES)
    names = config.getoption("suites") or env.settings.names("ONLY")
    known = shards.load(env.clone)
    groups = {one: group_of(suite_of(one), program_of(one), config_of(one)) for one in items}

    def seconds(one: pytest.Item) -> float:
        return known.get(shards.key(suite_of(one), one.nodeid), shards.UNKNOWN)

    def place(one: pytest.Item) -> tuple[int, int, float]:
        suite, group = suite_of(one), groups[one]
        alone = group == f"{suite}/{program_of(one)}"
        return place_of(group), order.index(suite), -seconds(one) if alone else 0.0

    chosen = sorted((one for one in items if wanted(one, names, env.settings.text("ALL"))),
                    key=place)  # fmt: skip
    if env.settings.given("SHARD"):
        part, parts = map(int, env.settings.text("SHARD").split("/"))
        sums: dict[str, float] = {}
        for one in chosen:
            sums[groups[one]] = sums.get(groups[one], 0.0) + seconds(one)
        names = [list(sums)[i] for i in shards.share(list(sums.values()), part, parts)]
        chosen = [one for one in chosen if groups[one] in names]
    for item in chosen:
        item.user_properties += [(SUITE, suite_of(item)), (ITEM, _listed_as(item))]
        item.add_marker(pytest.mark.xdist_group(groups[item]))
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
        enter_lane("" if suite == "python" else f"lane {lane_of(item.config)}")
    item.stash[NEXT] = nextitem
    many = "results" in getattr(item, "fixturenames", ())
    quiet = redirect_stdout(io.StringIO()) if suite == "python" else nullcontext()
    began = time.monotonic()
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    with quiet, _turn(item):
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        if not many or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    key = shards.key(suite, item.nodeid)
    seconds = item.config.stash[shards.SECONDS]
    seconds[key] = seconds.get(key, 0.0) + time.monotonic() - began
    return True


def _turn(item: pytest.Item) -> AbstractContextManager[object]:
    """A test that measures waits until no other lane runs one, and keeps them from it."""
    if not is_lane(item.config):
        return nullcontext()
    alone = group_of(suite_of(item), program_of(item)) == QUIET
    # Unit tests of this plugin run lanes of their own inside a lane.
    run: str = item.config.workerinput["testrunuid"]  # type: ignore[attr-defined]
    path = item.config.stash[ENV].out / f"{TURN}{run}"
    return Lock(path, "the machine, for a measurement", shared=not alone)


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
    if call.excinfo is not None and isinstance(call.excinfo.value, OutOfTime):
        limit = item.config.stash[ENV].settings.text("LIMIT")
        path, line, _ = item.location
        report.outcome = "skipped"
        report.longrepr = (path, line or 0, f"{TOO_LATE}{limit}")
    elif call.excinfo is not None and isinstance(call.excinfo.value, Failure):
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
