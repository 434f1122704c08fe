# SPDX-License-Identifier: GPL-2.0
"""The driver of the tutorial, built and tried as in the tutorial."""

import pytest

from testbed.boot.job import Job
from testbed.build import driver
from testbed.build.kernel import UML
from testbed.env import Env
from testbed.harness.results import Results
from testbed.host.ui import Step
from testbed.suites.conftest import Ready

FOLDER = "samples/rust/driver_net"
_SCRIPT = "tools/testbed/guest/try-driver"


@pytest.mark.suite("driver")
def test_driver(env: Env, ready: Ready, results: Results) -> None:
    """It builds from its folder, carries packets and unloads without a complaint."""
    built = ready(UML)
    made = driver.build(env, built.kernels[UML], env.clone / FOLDER)
    results.add("it builds as an external module")
    job = Job(env.clone / _SCRIPT, made.name, timeout=120, modules=made.modules,
              judge=True,
              kernel_words=["kunit.enable=0"])  # fmt: skip
    with Step(f"{made.name} in User-Mode Linux"):
        outcome = built.uml("driver").run(job)
    said = " | ".join(outcome.output.splitlines()[-5:])
    results.add("it carries packets", said if outcome.code else None)
    results.none("no kernel complaint", outcome.complaints)
    results.none("no rule of the data sheet broken", outcome.breaches)
