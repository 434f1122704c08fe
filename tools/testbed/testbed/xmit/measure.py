# SPDX-License-Identifier: GPL-2.0
"""make bench ONLY=xmit: boots User-Mode Linux with two CPUs and lets senders race."""

from __future__ import annotations

from testbed.boot import Job
from testbed.running import run_bench
from testbed.session import Built
from testbed.xmit.figures import Figures, parse

BENCH = "xmit"
_CPUS = 2


def run(ready: Built, rounds: int) -> Figures:
    """Boot, run the rounds, return what was counted."""
    script = ready.env.clone / "tools/testbed/guest/xmit-bench"
    machine = ready.uml("xmit")
    job = Job(script, "none", timeout=1800, cpus=_CPUS, ports=0, variables={"ROUNDS": str(rounds)})
    title = f"transmitting in User-Mode Linux, {_CPUS} CPUs: {rounds} rounds"
    outcome = run_bench(machine, job, title, "xmit: ")
    return parse(outcome.results.get("xmit.log", "").splitlines())
