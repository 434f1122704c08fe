# SPDX-License-Identifier: GPL-2.0
"""The register accesses of both drivers, from probe to remove."""

import json
from typing import Any

import pytest

from testbed.bench.guest import measure
from testbed.boot.nicmodel import Model
from testbed.build.kernel import UML
from testbed.env import Env
from testbed.harness.results import Results
from testbed.suites.conftest import Ready
from testbed.trace import accesses, reasons
from testbed.workshop import Built

_PHASES = ["probe", "open", "link up", "first packet", "close", "remove"]


def _ask(ready: Built, driver: str, results: Results) -> dict[str, Any]:
    """The accesses of a driver, from probe to remove, with two CPUs: further queues show then."""
    answers: list[dict[str, Any]] = []

    def fetch(model: Model) -> None:
        answers.append(model.ask({"cmd": "accesses", "port": 0}))

    outcome = measure(
        ready.uml(f"trace-{driver}"),
        "trace",
        f"register accesses of the {driver} driver in User-Mode Linux",
        timeout=180,
        accel=ready.accel(UML),
        variables={"TRACED": driver},
        kernel_words=["kunit.enable=0"],
        # The model sees every access then.
        shared_tails=False,
        on_end=fetch,
    )
    results.none(f"{driver}: no kernel complaint", outcome.complaints)
    return answers[0]


@pytest.mark.suite("trace")
def test_trace(env: Env, ready: Ready, results: Results) -> None:
    """Each access that only one driver makes has its reason in the documentation."""
    answers = {driver: _ask(ready(UML), driver, results) for driver in ("c", "rust")}
    (env.out / "trace.json").write_text(json.dumps(answers, indent=1) + "\n")
    traces = [accesses.read(driver, answer) for driver, answer in answers.items()]
    for driver, trace in zip(answers, traces, strict=True):
        idle = [name for name in _PHASES if not trace.get(name)]
        results.none(f"{driver}: accesses in each phase", idle)
    lonely = accesses.lonely(part for one in traces for part in one.values())
    unexplained, idle = reasons.explain(lonely)
    # All of them: each needs a line of the documentation.
    alone = "; ".join(accesses.names(unexplained))
    results.add("accesses of one driver only are explained", alone or None)
    results.add("all that is explained happens", "; ".join(idle) or None)
