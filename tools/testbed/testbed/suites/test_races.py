# SPDX-License-Identifier: GPL-2.0
"""KUnit on four processors of a kernel that looks for data races (KCSAN)."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed.boot.dmesg import unstamped
from testbed.harness.results import Results
from testbed.host import proc
from testbed.host.ui import say
from testbed.suites import test_kunit as kunit
from testbed.suites.conftest import Ready

CONFIG = "kcsan"
_CPUS = 4
_TIME = 2400
# By default one access of 4000 is watched, for 80 µs. KUnit takes seconds, so look more
# often, and longer, as the CPUs are slow.
_OFTEN = ("kcsan.skip_watch=500", "kcsan.udelay_task=200", "kcsan.udelay_interrupt=50")
_ENABLED = "kcsan: enabled early"
_BEGIN = re.compile(r"BUG: KCSAN: (.*)")
_END = re.compile(r"={20,}")
# Mangled names of Rust, and C functions around it.
_OURS = re.compile(r"\b_R[A-Z]\w+|\brust_(?!helper_)\w+|alf_queue|qmempool|xmit_llist")
# The core reads the state of a transmit queue by plain reads, with or without the queue's lock,
# during atomic changes of its bits (netif_xmit_stopped() and its like): with drivers in C as well.
_QUEUE_STATE = re.compile(r"data-race in \w+ / rust_helper_netif_tx_\w+_queue$")
_WRITE = re.compile(r"^\s*(?:read-)?write to ", re.M)
_READ = re.compile(r"^\s*read to .*\n(?!.*\b_R[A-Z])", re.M)


@dataclass(frozen=True)
class Race:
    """A report of KCSAN: two accesses, and their places."""

    title: str
    lines: tuple[str, ...]

    @property
    def ours(self) -> str | None:
        """Its first line with Rust or related code."""
        text = "\n".join(self.lines)
        # A plain read of a queue's state in C during an atomic change of a bit.
        if _QUEUE_STATE.search(self.title) and _READ.search(text) and not _WRITE.search(text):
            return None
        return next((line for line in (self.title, *self.lines) if _OURS.search(line)), None)


def races(console: str) -> list[Race]:
    """All reports in the text of a console."""
    found: list[Race] = []
    title, lines = "", list[str]()
    for text in unstamped(console):
        if begin := _BEGIN.search(text):
            title, lines = begin[1], []
        elif title and _END.search(text):
            found.append(Race(title, tuple(lines)))
            title = ""
        elif title:
            lines.append(text)
    if title:
        # The console ended before the report did.
        found.append(Race(title, tuple(lines)))
    return found


def _instrumented(file: Path) -> str | None:
    """The reason why an object of Rust is not watched, or None."""
    calls = proc.output(["llvm-nm", "--undefined-only", file], timeout=300) or ""
    missing = [name for name in ("__tsan_read8", "__tsan_write8", "__tsan_volatile_read8")
               if name not in calls]  # fmt: skip
    return f"{file.name} has no calls of {', '.join(missing)}" if missing else None


@pytest.mark.suite("kcsan")
def test_kcsan(ready: Ready, results: Results) -> None:
    """Every test of KUnit; a data race fails if Rust takes part in it."""
    outcome = kunit.run(
        ready, results, CONFIG, CONFIG, f"in the KCSAN kernel, {_CPUS} CPUs", _TIME,
        cpus=_CPUS, words=_OFTEN, but=("kcsan",),
    )  # fmt: skip
    build = ready(CONFIG).kernels[CONFIG].build
    results.add("Rust is watched", _instrumented(build / "rust/kernel.o"))
    results.says("KCSAN is at work", _ENABLED, outcome.console)
    found = races(outcome.console)
    ours = [f"{race.title}: {race.ours}" for race in found if race.ours]
    results.none("no data race in Rust", ours)
    say(f"    data races elsewhere in the kernel: {len(found) - len(ours)}")
