# SPDX-License-Identifier: GPL-2.0
"""The kernel's own tests of drivers: none may do harm. Their results are a record."""

from __future__ import annotations

import pytest

from testbed.env import Env
from testbed.harness import ktap
from testbed.harness.results import Results
from testbed.selftests import boots
from testbed.suites.conftest import Ready
from testbed.workshop import Workshop

_PART = "selftests/"


@pytest.mark.suite("selftests")
def test_selftests(env: Env, shop: Workshop, ready: Ready, results: Results) -> None:
    """Upstream's programs with both drivers; out/selftests.json."""
    words = [name.removeprefix(_PART) for name in env.settings.names("ONLY") if _PART in name]
    installed = shop.selftests()
    names = boots.chosen(boots.programs(installed, env.clone), words)
    built = ready(*boots.configs(installed, names), with_selftests=True)
    for driver, programs in boots.both(built, names, whole=not words).items():
        ktap.write(built.env.out / "results", f"selftests-{driver}", ktap.of_programs(programs))
        for program in programs:
            problem = "; ".join(program.troubles[:3]) or None
            results.add(f"{driver}: {program.name} does no harm", problem)
