# SPDX-License-Identifier: GPL-2.0
"""A guest that measures: progress while it runs, complaints afterwards."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.boot import dmesg
from testbed.boot.job import Job, Outcome
from testbed.boot.machine import Machine
from testbed.host.ui import Failure, Step, say
from testbed.workshop import Built


def report_complaints(found: list[dmesg.Complaint]) -> None:
    """Print the kernel's complaints."""
    for one in found:
        say(f"kernel complaint: {one}")


def run_bench(
    machine: Machine, job: Job, title: str, prefix: str, failed_cases: int | None = None
) -> Outcome:
    """Run a measuring job. Its lines, without `prefix`, are shown as progress.

    With the exit code `failed_cases`, it has measured the others.
    """
    with Step(title) as step:

        def follow(line: str) -> None:
            step.detail = line.removeprefix(prefix)

        outcome = machine.run(job, follow)
        step.detail = ""
    report_complaints(outcome.complaints)
    if outcome.code not in (0, failed_cases):
        raise Failure(
            f"{title}: failed (exit code {outcome.code})",
            *outcome.output.strip().splitlines()[-6:],
            f"console: {machine.log}",
        )
    return outcome


def run_modules(ready: Built, name: str, benches: Sequence[str], rounds: int, title: str,
                ) -> list[str]:  # fmt: skip
    """Run rounds of benchmarks that are modules; returns their lines."""
    script = ready.env.clone / "tools/testbed/guest/bench"
    variables = {"ROUNDS": str(rounds), "BENCHES": " ".join(benches)}
    job = Job(script, "none", timeout=1800, cpus=2, ports=0, variables=variables)
    outcome = run_bench(ready.uml(name), job, title, "bench: ")
    return outcome.results.get("bench.log", "").splitlines()
