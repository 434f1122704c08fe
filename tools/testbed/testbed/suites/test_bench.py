# SPDX-License-Identifier: GPL-2.0
"""Every benchmark, one short round each, not judged by speed: the machine need not be quiet."""

import pytest

from testbed.bench import in_turn, summary, tcp
from testbed.bench import rows as bench_rows
from testbed.bench.about import REFERENCES
from testbed.bench.xmit import qdisc
from testbed.build.kernel import UML
from testbed.catalogue import MEMORY
from testbed.harness.results import Results
from testbed.host.ui import Failure, say
from testbed.suites.conftest import Ready
from testbed.verbs import bench

# Units of figures that both sides have.
_JUDGED = {"ns", *bench_rows.RATES}


@pytest.mark.suite("bench")
def test_bench(ready: Ready, results: Results) -> None:
    """Every case reports both sides."""
    built = ready(UML)
    rows = bench.run(built, MEMORY, 1)
    compared = in_turn.run(tcp.SHORT, built, 1)
    rows += compared.rows
    results.none("TCP over a cable", compared.failed)
    try:
        rows += qdisc.run(built, 1, qdisc.SHORT)
    except Failure as error:
        # An uncounted loss of a packet, for instance.
        results.add("qdiscs", error.on_one_line)
    say(*(f"    {line}" for line in summary.lines(rows, lambda _: True)))
    for row in rows:
        missing = row.unit in _JUDGED and row.ours is not None and row.reference is None
        why = "the reference reported nothing" if missing else None
        results.add(f"{row.bench} {row.case}", why)
    reported = {row.bench for row in rows}
    # Benchmarks of the modules; instructions are judged elsewhere.
    for name in REFERENCES:
        if name.partition("-")[0] in MEMORY:
            why = None if name in reported else "it reported nothing"
            results.add(f"{name} has cases", why)
