# SPDX-License-Identifier: GPL-2.0
"""The kernel's own tests of drivers: none may do harm. Their results are a record."""

import pytest

from testbed.bench import record as records
from testbed.bench import report
from testbed.bench.record import Circumstances
from testbed.env import Env
from testbed.harness.results import Results
from testbed.selftests import boots
from testbed.selftests.record import renewed
from testbed.suites.conftest import Ready
from testbed.workshop import Workshop

_PART = "selftests/"


@pytest.mark.suite("selftests")
def test_selftests(env: Env, shop: Workshop, ready: Ready, results: Results) -> None:
    """Upstream's programs with both drivers; RECORD=1 records all of them, or renews some."""
    only = env.settings.names("ONLY")
    # As in other suites, the whole of it wins.
    parts = [] if "selftests" in only else [one for one in only if one.startswith(_PART)]
    words = [one.removeprefix(_PART) for one in parts]
    installed = shop.selftests()
    all_of_them = boots.programs(installed, env.clone)
    names = boots.chosen(all_of_them, words)
    results.none("programs that need QEMU are in the tree", boots.strayed(all_of_them))
    built = ready(*boots.configs(installed, names), with_selftests=True)
    found, record = boots.both(built, names)
    if env.settings.switch("RECORD"):
        if words:
            now, old = Circumstances.now(env, ""), records.load(env.clone)["selftests"]
            new = renewed(old, record, f"{now.date}, commit {now.commit}")
            records.save(env.clone, "selftests", Circumstances.of(old), new)
        else:
            records.keep(env, "selftests", record)
        report.renew(env.clone)
    for driver, programs in found.items():
        for program in programs:
            results.none(f"{driver}: {program.name} does no harm", program.troubles)
