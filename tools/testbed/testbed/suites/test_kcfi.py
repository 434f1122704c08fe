# SPDX-License-Identifier: GPL-2.0
"""The Rust code, compiled for checked indirect calls (kCFI), without a kernel for that.

Such a kernel runs in the suite cfi of test_other_kernels.py.
"""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from testbed.boot.card import CARDS, MODELLED
from testbed.build import kcfi
from testbed.env import Env
from testbed.harness.results import Results
from testbed.host.ui import Failure, Step
from testbed.source import overlay
from testbed.suites.conftest import Ready


@pytest.mark.suite("cfi-types")
def test_kcfi(env: Env, ready: Ready, results: Results) -> None:
    """Callbacks have the types that C calls them by; the Rust code compiles with checked calls."""
    kernel = ready("perf").kernels["perf"]
    build, tree = kernel.build, kernel.tree.work
    sources = [*(tree / "rust/kernel").rglob("*.rs")]
    sources += [env.clone / name for name in overlay.new_files(env.clone) if name.endswith(".rs")]
    driver = Path(CARDS[MODELLED].paths["rust"]).with_suffix(".rs")
    modules = {
        "the kernel crate": (Path("rust/.kernel.o.cmd"), Path("rust/kernel/lib.rs")),
        "the driver": (driver.with_name(f".{driver.stem}.o.cmd"), driver),
    }
    with (
        Step("Rust code for kCFI"),
        tempfile.TemporaryDirectory(prefix="skbulk-kcfi-") as name,
        ThreadPoolExecutor(max_workers=2) as pool,
    ):
        folder = Path(name)
        done = {
            what: pool.submit(
                kcfi.compile_module, build, tree, build / saved, tree / source, folder
            )
            for what, (saved, source) in modules.items()
        }
        found = kcfi.check(build, tree, sources, folder)
        for what, future in done.items():
            results.add(f"{what} compiles with checked calls", _problem(future.exception()))
    if not found:
        raise Failure("the bindings have no callback")
    for field, why in found.items():
        results.add(f"{field} has one type", why)


def _problem(error: BaseException | None) -> str | None:
    if error is not None and not isinstance(error, Failure):
        raise error
    return error.on_one_line if error else None
