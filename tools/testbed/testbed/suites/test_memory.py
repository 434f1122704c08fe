# SPDX-License-Identifier: GPL-2.0
"""KUnit in kernels whose allocator works otherwise than in most: with two nodes of memory, and
hardened; or without caches of each processor (SLUB_TINY), where `slub_kunit` cannot be."""

import pytest

from testbed.harness.results import Results
from testbed.suites import test_kunit as kunit
from testbed.suites.conftest import Ready

_TIME = 1800
# Lines of the console that only such a kernel has.
_SIGNS = {
    "memory": {
        "the kernel has two nodes": "Brought up 2 nodes, 2 CPUs",
        "objects are cleared, before use and after it": "heap alloc:on, heap free:on",
        "KFENCE is at work": "kfence: initialized",
    },
    "tiny": {
        "slabs are as small as they can be": ", Order=0-1, ",
    },
}


@pytest.mark.suite("memory")
@pytest.mark.parametrize("config", _SIGNS)
def test_kunit(ready: Ready, results: Results, config: str) -> None:
    """KUnit and the examples of the documentation."""
    outcome = kunit.run(ready, results, config, f"kunit-{config}", f"in the {config} kernel", _TIME)
    for name, words in _SIGNS[config].items():
        results.says(name, words, outcome.console)
