# SPDX-License-Identifier: GPL-2.0
"""KUnit, and a long run of forwarded packets, in kernels that few others are like, and on
other architectures.

Their end-to-end tests are in test_e2e.py.
"""

import re
from pathlib import Path

import pytest

from testbed.bench.results import problems
from testbed.boot import bare
from testbed.build import extra_warnings
from testbed.build.kernel import UML
from testbed.env import Env
from testbed.harness.results import Results
from testbed.host.ui import Step
from testbed.source import overlay
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
    "arm64": "Booting Linux on physical CPU",
}
# The tree's own test and example of SpinLockIrq, which a real-time kernel does not have: its spin
# locks sleep, and leave interrupts on.
_KNOWN = {"rt": re.compile("spinlock5tests|doctest_kernel_sync_lock_spinlock")}
# Includes all files in C beside it.
_HELPERS = "rust/helpers/helpers.o"
_ARM = "CPU: ARMv7 Processor"


@pytest.mark.parametrize(
    "config", [pytest.param(name, marks=pytest.mark.suite(name)) for name in _SIGNS]
)
def test_kunit(ready: Ready, results: Results, config: str) -> None:
    """KUnit and the examples of the documentation."""
    outcome = kunit.run(
        ready, results, config, f"kunit-{config}", f"in the {config} kernel", _TIME,
        known=_KNOWN.get(config),
    )  # fmt: skip
    sign = _SIGNS[config]
    on = re.search(sign, outcome.console)
    results.add(f"this is a {config} kernel", None if on else f"the console does not say '{sign}'")


@pytest.mark.suite("arm")
def test_kunit_arm(ready: Ready, results: Results) -> None:
    """The same, in 32 bits: KUnit needs no programs of that architecture."""
    built = ready("arm")
    made = built.kernels["arm"]
    with Step("KUnit and doc examples in the arm kernel"):
        outcome = bare.boot(built.env, made, "kunit-arm", kunit.WORDS, _CPUS, _TIME)
    kunit.judge(built, "kunit-arm", made, outcome, results)
    results.says("this is an arm kernel", _ARM, outcome.console)


# By kernel: the suite in which it is looked at. The debug kernel is clippy's, and has KUnit.
_SUITES = {"arm64": "arm64", "arm": "arm", "perf": "objects", "uml": "objects"}


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            config,
            marks=[pytest.mark.suite(suite), *([pytest.mark.beyond] if config != UML else [])],
        )
        for config, suite in _SUITES.items()
    ],
)
def test_warnings(env: Env, ready: Ready, results: Results, config: str) -> None:
    """The compilers have nothing to say about our files, with W=1."""
    made = ready(config).kernels[config]
    ours = list(overlay.new_files(env.clone))
    objects = [str(Path(name).with_suffix(".o")) for name in ours if name.endswith(".c")]
    with Step(f"our files compiled for {config} with W=1"):
        compiled = [name for name in (*objects, _HELPERS) if (made.build / name).exists()]
        found = [*made.warnings, *extra_warnings.of(made.build, made.tree.work, compiled)]
    names = tuple(f"in {name}:" for name in ours)
    bad = [one for one in found if one.startswith(names)]
    results.none(f"our files compile for {config} without warnings", bad)


@pytest.mark.suite("cfi")
def test_forward(ready: Ready, results: Results) -> None:
    """A million frames by the Rust driver: each indirect call has the type of its function."""
    built = ready("cfi")
    rounds, complaints = demo.forward(built, ["rust"], _FRAMES, 1, "cfi")
    wrong = problems("rust", rounds["rust"], _FRAMES)
    results.none(f"rust: {_FRAMES:,} frames forwarded intact", wrong)
    results.none("no trap", complaints)
