# SPDX-License-Identifier: GPL-2.0
"""Compilers that make a kernel's first build short: see tools/testbed/precompiled."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.env import Env
from testbed.settings import child_environment

_FOLDER = "tools/testbed/precompiled"


def compiler(llvm: str) -> str | None:
    """The path of the kernel's compiler; `llvm` is the suffix of its name."""
    return shutil.which(f"clang{llvm}")


@contextmanager
def compilers(env: Env, build: Path, log: Path) -> Iterator[dict[str, str]]:
    """Variables with which a build finds those compilers instead of its own.

    The headers are made by one call of make and for it alone, so that no header is newer. Why some
    could not be made or used, for all that was compiled, is in the log then.
    """
    real, rustc = compiler(env.llvm), shutil.which("rustc")
    if real is None or rustc is None:
        yield {}
        return
    place = build / ".skbulk-precompiled"
    shutil.rmtree(place, ignore_errors=True)
    programs = place / "bin"
    programs.mkdir(parents=True)
    # The clone may change while the kernel is built.
    header = shutil.copy(env.clone / _FOLDER / "common.h", place)
    # Under the compiler's name: make compares command lines with those of the last build.
    (programs / Path(real).name).symlink_to(env.clone / _FOLDER / "cc")
    (programs / "rustc").symlink_to(env.clone / _FOLDER / "rustc")
    try:
        yield {
            "PATH": f"{programs}:{child_environment()['PATH']}",
            "SKBULK_CC": real,
            "SKBULK_RUSTC": rustc,
            "SKBULK_PCH": str(place),
            "SKBULK_PCH_HEADER": str(header),
        }
    finally:
        with log.open("a") as out:
            out.writelines(_refused(place))
        shutil.rmtree(place, ignore_errors=True)


def _refused(place: Path) -> Iterator[str]:
    """The complaints about headers, and about files that could not use them."""
    for path in (*sorted(place.glob("*.log")), place / "refused"):
        if path.exists() and (text := path.read_text(errors="replace")):
            yield f"no precompiled header: {text}"
