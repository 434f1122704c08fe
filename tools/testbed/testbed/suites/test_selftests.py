# SPDX-License-Identifier: GPL-2.0
"""The kernel's own tests of drivers: none may do harm. Their results are a record."""

from __future__ import annotations

import pytest

from testbed.build.kernel import SELFTESTS
from testbed.harness import ktap
from testbed.harness.results import Results
from testbed.selftests import boots
from testbed.suites.conftest import Ready


@pytest.mark.suite("selftests")
def test_selftests(ready: Ready, results: Results) -> None:
    """Upstream's programs with both drivers; out/selftests.json."""
    built = ready(SELFTESTS, with_selftests=True)
    for driver, programs in boots.both(built).items():
        ktap.write(built.env.out / "results", f"selftests-{driver}", ktap.of_programs(programs))
        for program in programs:
            problem = "; ".join(program.troubles[:3]) or None
            results.add(f"{driver}: {program.name} does no harm", problem)
