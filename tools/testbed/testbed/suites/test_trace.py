# SPDX-License-Identifier: GPL-2.0
"""The register accesses of both drivers, from probe to remove."""

import pytest

from testbed.build.driver import Driver
from testbed.build.kernel import UML
from testbed.harness.results import Results
from testbed.suites.conftest import Ready
from testbed.trace import accesses, compare, reasons

_PHASES = ["probe", "open", "link up", "first packet", "close", "remove"]


@pytest.mark.suite("trace")
def test_trace(ready: Ready, results: Results) -> None:
    """Each access that only one driver makes has its reason in the documentation."""
    traces = compare.compare(ready(UML), Driver("rust"))
    for driver, trace in zip(("c", "rust"), traces, strict=True):
        idle = [name for name in _PHASES if not trace.get(name)]
        results.none(f"{driver}: accesses in each phase", idle)
    found = reasons.explain(accesses.lonely(part for one in traces for part in one.values()))
    alone = accesses.names(found.unexplained)
    # All of them: each needs a line of the documentation.
    results.add("accesses of one driver only are explained", "; ".join(alone) or None)
    results.add("all that is explained happens", "; ".join(found.idle) or None)
