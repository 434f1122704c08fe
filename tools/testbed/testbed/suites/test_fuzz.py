# SPDX-License-Identifier: GPL-2.0
"""A card inside of the kernel that lies, as far as the input of a fuzzer says."""

import pytest

from testbed.boot import inside
from testbed.build.kernel import FUZZ
from testbed.env import Env
from testbed.harness.results import Results
from testbed.host.ui import Step
from testbed.suites.conftest import Ready

_LIVES = 3
# A bit for each kind of users' requests. After ixgbe's self test, which fails in a model that is
# not judged, the list of packets that its poll hands over has no end.
_REQUESTS = {"rust": 0x1FF, "c": 0x0FF}
_SECONDS = 60.0
_CORPUS_SECONDS = 900.0


@pytest.mark.suite("fuzz")
@pytest.mark.parametrize("driver", inside.DRIVERS)
def test_truth(ready: Ready, env: Env, results: Results, driver: str) -> None:
    """Whole lives with a card that says the truth: all frames pass, both ways."""
    built = ready(FUZZ)
    with Step(f"{_LIVES} lives of the {driver} driver"):
        words = inside.command(built.kernels[FUZZ], built.tools, driver, f"pci_card.lives={_LIVES}",
                               f"pci_card.requests={_REQUESTS[driver]}")  # fmt: skip
        ended = inside.run(env, f"fuzz-truth-{driver}", words, _SECONDS)
    for life in range(1, _LIVES + 1):
        results.says(f"life {life}", f"life {life} is over", ended.console)
    results.none("the kernel does not complain", ended.complaints)


@pytest.mark.suite("fuzz")
@pytest.mark.parametrize("entry", inside.ENTRIES)
def test_corpus(ready: Ready, env: Env, results: Results, entry: str) -> None:
    """Inputs that found something once, or new ways: the Rust driver lives with them."""
    built, folder = ready(FUZZ), env.clone / "tools/testbed/corpus" / entry
    words = inside.command(built.kernels[FUZZ], built.tools, "rust", *inside.fuzzing(entry, folder))
    with Step(f"the corpus of {entry}"):
        ended = inside.run(env, f"fuzz-{entry}", words, _CORPUS_SECONDS)
    found = inside.verdicts(ended.console)
    names = {path.name for path in folder.iterdir()}
    results.none("each input was tried", names ^ found.keys())
    bad = [f"{name}: {found[name]}" for name in found if found[name] != inside.PASSED]
    results.none("the driver lives with each of them", bad)
