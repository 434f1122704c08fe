# SPDX-License-Identifier: GPL-2.0
"""make test: every suite with its own summary, and one line at the end."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from testbed.env import Env
from testbed.report import Report, last_line
from testbed.session import Built, built
from testbed.suites import booted, host, kernel_code, litmus
from testbed.ui import Failure, clock, say, since_start


@dataclass(frozen=True)
class Suite:
    """A suite: what it needs, and how to run it."""

    name: str
    text: str
    config: str = ""
    plain: Callable[[Env], Report] | None = None
    booted: Callable[[Built], Report] | None = None


SUITES = (
    Suite("python", "unit tests of the testbed", plain=host.python),
    Suite("lint", "formatters and linters of tools/", plain=host.lint),
    Suite("cargo", "unit tests of the NIC model and the other host tools", plain=host.cargo),
    Suite("kernel-lint", "rustfmt, clippy and checkpatch of the kernel code", "debug",
          booted=lambda b: kernel_code.kernel_lint(b.env, b.kernels["debug"])),
    Suite("compile-fail", "misuse that the compiler must refuse", "debug",
          booted=lambda b: kernel_code.compile_fail(b.env, b.kernels["debug"])),
    Suite("kunit", "KUnit tests and doc examples", "debug", booted=booted.kunit),
    Suite("kunit-uml", "the same natively, in User-Mode Linux with 2 CPUs", "uml",
          booted=booted.kunit_uml),
    Suite("litmus", "litmus tests against the kernel's memory model (herd7)", "uml",
          booted=litmus.litmus),
    Suite("bench", "the benchmarks, one round, not judged by speed", "uml", booted=booted.benches),
    Suite("e2e-c", "end to end, stock C driver (the judge of the model)", "debug",
          booted=lambda b: booted.e2e(b, "c")),
    Suite("e2e-rust", "end to end, Rust driver", "debug",
          booted=lambda b: booted.e2e(b, "rust")),
    Suite("objects", "what the compiler has made of the drivers", "perf",
          booted=lambda b: kernel_code.objects(b.kernels["perf"])),
    Suite("compare", "the demo in small, with its limits", "perf", booted=booted.compare),
)  # fmt: skip


def _selected() -> list[Suite]:
    wanted = [name.strip() for name in os.environ.get("ONLY", "").split(",") if name.strip()]
    known = {suite.name: suite for suite in SUITES}
    for name in wanted:
        if name not in known:
            raise Failure(f"ONLY={name}: there is no such suite", *_listing())
    return [suite for suite in SUITES if not wanted or suite.name in wanted]


def _listing() -> list[str]:
    return [f"{suite.name:<13} {suite.text}" for suite in SUITES]


def _run(suite: Suite, call: Callable[[], Report]) -> Report:
    """A suite that cannot run at all is a failure of its own."""
    try:
        report = call()
    except Failure as error:
        report = Report(suite.name)
        report.add(suite.name, " | ".join([str(error), *error.hints]))
    report.show()
    return report


def test(env: Env) -> int:
    """Run the suites that ONLY selects, or all of them."""
    if os.environ.get("ONLY") == "list":
        for line in _listing():
            say(line)
        return 0
    suites = _selected()
    env.out.mkdir(parents=True, exist_ok=True)
    reports = []
    for suite in suites:
        if suite.plain is not None:
            plain = suite.plain
            reports.append(_run(suite, lambda plain=plain: plain(env)))  # type: ignore[misc]
    for config in ("debug", "uml", "perf"):
        members = [suite for suite in suites if suite.config == config]
        if members:
            reports += _with_kernel(env, config, members)
    say("")
    for report in reports:
        report.show()
    say(f"all of it took {clock(since_start())}; logs: {env.logs}")
    say(last_line(reports))
    return 1 if any(report.failed for report in reports) else 0


def _with_kernel(env: Env, config: str, members: list[Suite]) -> list[Report]:
    reports = []
    try:
        with built(env, config) as ready:
            for suite in members:
                assert suite.booted is not None
                call = suite.booted
                reports.append(_run(suite, lambda call=call: call(ready)))  # type: ignore[misc]
    except Failure as error:
        say(f"    error: {error}")
        for hint in error.hints:
            say(f"      {hint}")
        done = {report.name for report in reports}
        for suite in members:
            if suite.name not in done:
                report = Report(suite.name)
                report.add(suite.name, f"the {config} kernel was not built: {error}")
                reports.append(report)
    return reports


def lint(env: Env) -> int:
    """make lint: the linters alone."""
    report = host.lint(env)
    report.show()
    return 1 if report.failed else 0
