# SPDX-License-Identifier: GPL-2.0
"""A card inside of the kernel that lies, as far as the input of a fuzzer says."""

from pathlib import Path

import pytest

from testbed.boot import inside
from testbed.build.kernel import FUZZ
from testbed.env import Env
from testbed.harness.results import Results
from testbed.host.ui import Step
from testbed.suites.conftest import Ready
from testbed.workshop import Built

_LIVES = 3


def _command(built: Built, driver: str, *words: str) -> list[str | Path]:
    library = built.tools / inside.LIBRARY
    return inside.command(built.kernels[FUZZ].image, library, driver, *words)


@pytest.mark.suite("fuzz")
@pytest.mark.parametrize("driver", inside.DRIVERS)
def test_truth(ready: Ready, env: Env, results: Results, driver: str) -> None:
    """Whole lives with a card that says the truth: all frames pass, both ways."""
    built = ready(FUZZ)
    with Step(f"{_LIVES} lives of the {driver} driver"):
        words = _command(built, driver, f"pci_card.lives={_LIVES}")
        ended = inside.run(env, f"fuzz-truth-{driver}", words)
    for life in range(1, _LIVES + 1):
        results.says(f"life {life}", f"life {life} is over", ended.console)
    results.none("the kernel does not complain", ended.complaints)


@pytest.mark.suite("fuzz")
@pytest.mark.parametrize("entry", inside.ENTRIES)
def test_corpus(ready: Ready, env: Env, results: Results, entry: str) -> None:
    """Inputs that found something once, or new ways: the Rust driver lives with them."""
    built, folder = ready(FUZZ), inside.corpus(env.clone, entry)
    words = _command(built, "rust", *inside.fuzzing(entry, folder))
    with Step(f"the corpus of {entry}"):
        ended = inside.run(env, f"fuzz-{entry}", words)
    found = inside.verdicts(ended.console)
    names = {path.name for path in folder.iterdir()}
    results.none("each input was tried", names ^ found.keys())
    bad = [f"{name}: {found[name]}" for name in found if found[name] != inside.PASSED]
    results.none("the driver lives with each of them", bad)
