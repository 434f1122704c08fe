# SPDX-License-Identifier: GPL-2.0
"""make test: every suite with its own summary, and one line at the end.

Suites run in two lanes side by side: an emulated kernel keeps little more than
one processor busy, so the other one builds and tests meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from testbed.build.kernel import SELFTESTS
from testbed.env import Env
from testbed.host.ui import Cancelled, Failure, cancel, clock, enter_lane, say, since_start
from testbed.suites import bisect, booted, host, kernel_code, litmus, races
from testbed.suites.report import Report, last_line
from testbed.workshop import Built, Workshop, workshop

# The lanes: what is tested in the debug kernel, and the rest.
_DEBUG, _REST = "debug", "rest"


@dataclass(frozen=True)
class Suite:
    """A suite: what it needs, and how to run it."""

    name: str
    text: str
    lane: str
    config: str = ""
    plain: Callable[[Env], Report] | None = None
    booted: Callable[[Built], Report] | None = None
    # Run only when ONLY names it: it needs a kernel of its own.
    on_request: bool = False


# In the order in which a lane runs them.
SUITES = (
    Suite("python", "unit tests of the testbed", _REST, plain=host.python),
    Suite("lint", "formatters and linters of tools/", _REST, plain=host.lint),
    Suite("cargo", "unit tests of the NIC model and the other host tools", _REST,
          plain=host.cargo),
    Suite("kernel-lint", "rustfmt, clippy and checkpatch of the kernel code", _DEBUG, "debug",
          booted=lambda b: kernel_code.kernel_lint(b.env, b.kernels["debug"])),
    Suite("compile-fail", "misuse that the compiler must refuse", _DEBUG, "debug",
          booted=lambda b: kernel_code.compile_fail(b.env, b.kernels["debug"])),
    Suite("kunit", "KUnit tests and doc examples", _DEBUG, "debug", booted=booted.kunit),
    Suite("e2e-rust", "end to end, Rust driver", _DEBUG, "debug",
          booted=lambda b: booted.e2e(b, "rust")),
    Suite("kunit-uml", "the same natively, in User-Mode Linux with 2 CPUs", _REST, "uml",
          booted=booted.kunit_uml),
    Suite("e2e-uml", "end to end, Rust driver, natively in User-Mode Linux", _REST, "uml",
          booted=lambda b: booted.e2e(b, "rust", "uml")),
    Suite("litmus", "litmus tests against the kernel's memory model (herd7)", _REST, "uml",
          booted=litmus.litmus),
    Suite("bench", "the benchmarks, one round, not judged by speed", _REST, "uml",
          booted=booted.benches),
    Suite("objects", "what the compiler has made of the drivers", _REST, "perf",
          booted=lambda b: kernel_code.objects(b.env, b.kernels["perf"])),
    Suite("compare", "the demo in small, with its limits", _REST, "perf",
          booted=booted.compare),
    # It is the model that is judged here: the driver needs no checkers.
    Suite("e2e-c", "end to end, stock C driver (the judge of the model)", _REST, "perf",
          booted=lambda b: booted.e2e(b, "c", "perf")),
    Suite("kcsan", "KUnit with 4 CPUs in a kernel that looks for data races", _REST,
          races.CONFIG, booted=races.kcsan, on_request=True),
    Suite("selftests", "the kernel's own tests of drivers, with both drivers: a record", _REST,
          SELFTESTS, booted=booted.selftests, on_request=True),
    Suite("bisect", "the kernel builds after each patch of a series", _REST,
          plain=bisect.bisect, on_request=True),
)  # fmt: skip


def _selected(env: Env) -> list[Suite]:
    wanted = env.settings.names("ONLY")
    if wanted:
        return [suite for suite in SUITES if suite.name in wanted]
    return [suite for suite in SUITES if not suite.on_request]


def _listing() -> list[str]:
    return [
        f"{suite.name:<13} {suite.text}{', on request' if suite.on_request else ''}"
        for suite in SUITES
    ]


def _run(env: Env, shop: Workshop | None, suite: Suite) -> Report:
    """A suite that cannot run at all is a failure of its own."""
    try:
        if suite.plain is not None:
            report = suite.plain(env)
        else:
            assert suite.booted is not None and shop is not None
            report = suite.booted(shop.ready(suite.config))
    except Failure as error:
        report = Report(suite.name)
        report.add(suite.name, " | ".join([str(error), *error.hints]))
    report.show()
    return report


class _Lane(threading.Thread):
    """Runs suites one after the other beside the main thread."""

    def __init__(self, name: str, run: Callable[[Suite], None], suites: Sequence[Suite]) -> None:
        super().__init__(name=name, daemon=True)
        self.error: BaseException | None = None
        self._call = run
        self._suites = suites

    def run(self) -> None:
        """What the thread does; an exception is kept for the main thread."""
        enter_lane(self.name)
        try:
            for suite in self._suites:
                self._call(suite)
        except Cancelled:
            pass
        except BaseException as error:
            self.error = error


def _in_lanes(suites: Sequence[Suite], run: Callable[[Suite], None]) -> None:
    """Run suites in their lanes, or in order if there is but one lane."""
    lanes = [[suite for suite in suites if suite.lane == lane] for lane in (_DEBUG, _REST)]
    if not all(lanes):
        for suite in suites:
            run(suite)
        return
    beside = _Lane(_REST, run, lanes[1])
    beside.start()
    enter_lane(_DEBUG)
    try:
        for suite in lanes[0]:
            run(suite)
        while beside.is_alive():
            beside.join(1.0)
    except BaseException:
        cancel()
        beside.join(20.0)
        raise
    finally:
        enter_lane("")
    if beside.error is not None:
        raise beside.error


def main(env: Env) -> int:
    """Run the suites that ONLY selects, or all of them."""
    if "list" in env.settings.names("ONLY"):
        for line in _listing():
            say(line)
        return 0
    suites = _selected(env)
    env.out.mkdir(parents=True, exist_ok=True)
    reports: dict[str, Report] = {}
    configs = {suite.config for suite in suites if suite.config}
    programs = SELFTESTS in configs
    with workshop(env, *configs, with_selftests=programs) if configs else nullcontext() as shop:

        def run(suite: Suite) -> None:
            reports[suite.name] = _run(env, shop, suite)

        _in_lanes(suites, run)
    say("")
    ordered = [reports[suite.name] for suite in suites]
    for report in ordered:
        report.show()
    say(f"all of it took {clock(since_start())}; logs: {env.logs}")
    say(last_line(ordered))
    return 1 if any(report.failed for report in ordered) else 0
