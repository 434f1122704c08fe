# SPDX-License-Identifier: GPL-2.0
"""KUnit, and a long run of forwarded packets, in kernels that few others are like.

Their end-to-end tests are in test_e2e.py.
"""

from __future__ import annotations

import re

import pytest

from testbed.bench.results import problems
from testbed.boot.job import Job
from testbed.harness.results import Results
from testbed.host.ui import Step
from testbed.suites import test_kunit as kunit
from testbed.suites.conftest import Ready
from testbed.verbs import demo

_TIME = 1800
_CPUS = 2
_FRAMES = 1_000_000
# Without it the suite would pass in a kernel that checks nothing. A CPU with IBT has the calls
# checked by FineIBT.
_SIGNS = {
    "cfi": r"CFI: Using |Using .*FineIBT",
    "rt": "PREEMPT_RT",
}


@pytest.mark.parametrize(
    "config",
    [pytest.param(name, id=name, marks=pytest.mark.suite(name)) for name in _SIGNS],
)
def test_kunit(ready: Ready, results: Results, config: str) -> None:
    """KUnit and the examples of the documentation."""
    built = ready(config)
    job = Job(kunit.nothing(built), "none", timeout=_TIME, ports=0, cpus=_CPUS,
              accel=built.accel(config), kernel_words=kunit.WORDS)  # fmt: skip
    with Step(f"KUnit and doc examples in the {config} kernel"):
        outcome = built.vm(config, f"kunit-{config}").run(job)
    kunit.judge(built, f"kunit-{config}", built.kernels[config], outcome, results)
    sign = _SIGNS[config]
    on = re.search(sign, outcome.console)
    results.add(f"this is a {config} kernel", None if on else f"the console does not say '{sign}'")


@pytest.mark.suite("cfi")
def test_forward(ready: Ready, results: Results) -> None:
    """A million frames by the Rust driver: each indirect call has the type of its function."""
    built = ready("cfi")
    rounds, complaints = demo.forward(built, ["rust"], _FRAMES, 1, "cfi")
    wrong = problems("rust", rounds["rust"], _FRAMES)
    results.add(f"rust: {_FRAMES:,} frames forwarded intact", "; ".join(wrong) or None)
    results.add("no trap", "; ".join(str(one) for one in complaints[:3]) or None)
