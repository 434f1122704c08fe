# SPDX-License-Identifier: GPL-2.0
"""A guest that measures: progress while it runs, complaints afterwards."""

from __future__ import annotations

from testbed.boot import dmesg
from testbed.boot.job import Job, Outcome
from testbed.boot.machine import Machine
from testbed.host.ui import Failure, Step, say


def report_complaints(found: list[dmesg.Complaint]) -> None:
    """Print the kernel's complaints."""
    for one in found:
        say(f"kernel complaint: {one}")


def run_bench(machine: Machine, job: Job, title: str, prefix: str) -> Outcome:
    """Run a measuring job. Its lines, without `prefix`, are shown as progress."""
    with Step(title) as step:

        def follow(line: str) -> None:
            step.detail = line.removeprefix(prefix)

        outcome = machine.run(job, follow)
        step.detail = ""
    report_complaints(outcome.complaints)
    if outcome.code != 0:
        raise Failure(
            f"{title}: failed",
            *outcome.output.strip().splitlines()[-6:],
            f"console: {machine.log}",
        )
    return outcome
