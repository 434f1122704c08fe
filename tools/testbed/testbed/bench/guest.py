# SPDX-License-Identifier: GPL-2.0
"""A guest that measures: progress while it runs, complaints afterwards."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from testbed.boot import dmesg
from testbed.boot.job import Job, Outcome
from testbed.boot.machine import Machine
from testbed.host.ui import Failure, Step, say
from testbed.workshop import Built


def report_complaints(found: list[dmesg.Complaint]) -> None:
    """Print the kernel's complaints."""
    say(*(f"kernel complaint: {one}" for one in found))


def measure(
    machine: Machine,
    program: str,
    title: str,
    plan: Mapping[str, Any] | None = None,
    failed_cases: int | None = None,
    **job: Any,
) -> Outcome:
    """Run a program of guest/ without a driver, which loads its own, in a job of these properties.

    Its lines are shown as progress. With the exit code `failed_cases`, it has measured others.
    """
    if plan is not None:
        job["variables"] = {"PLAN": json.dumps(plan)}
    script = machine.env.clone / "tools/testbed/guest" / program
    with Step(title) as step:

        def follow(line: str) -> None:
            step.detail = line.partition(": ")[2] or line

        outcome = machine.run(Job(script, "none", **job), follow)
        step.detail = ""
    report_complaints(outcome.complaints)
    if outcome.code not in (0, failed_cases):
        raise Failure(
            f"{title}: failed (exit code {outcome.code})",
            *outcome.output.strip().splitlines()[-6:],
            f"console: {machine.log}",
        )
    return outcome


def run_modules(
    ready: Built, name: str, benches: Sequence[str], rounds: int, title: str
) -> list[str]:
    """Run rounds of benchmarks that are modules; returns their lines."""
    variables = {"ROUNDS": str(rounds), "BENCHES": " ".join(benches)}
    outcome = measure(ready.uml(name), "bench", title, timeout=1800, ports=0, variables=variables)
    return outcome.results.get("bench.log", "").splitlines()
