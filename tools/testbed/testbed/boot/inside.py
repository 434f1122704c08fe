# SPDX-License-Identifier: GPL-2.0
"""Runs a kernel with the card inside: User-Mode Linux without user space, in which time travels."""

import re
from dataclasses import dataclass
from pathlib import Path

from testbed.boot import dmesg
from testbed.boot.dmesg import Complaint
from testbed.boot.job import fresh_log
from testbed.env import Env
from testbed.host import proc

_MEMORY = "128M"
# The card, among the tools.
LIBRARY = "libnicmodel_um.so"
# The kernel's memory is a file there.
VARIABLES = {"TMPDIR": "/dev/shm"}
# By the names that the testbed has for them.
DRIVERS = {"rust": "ixgbe_rust", "c": "ixgbe"}
# A bit for each kind of users' requests; not C's offline self-test, for which README.md has the
# reason.
_REQUESTS = {"rust": 0x3FF, "c": 0x2FF}
# Where lies begin.
ENTRIES = ("life", "data")
PASSED = "passed"
_VERDICT = re.compile(r"^pci_card: (\S+): (passed|failed|signal \d+)$", re.M)


@dataclass(frozen=True)
class Ended:
    """The end of a kernel."""

    code: int
    console: str

    @property
    def complaints(self) -> list[Complaint]:
        """The kernel's complaints."""
        return dmesg.complaints(self.console)


def command(image: Path, library: Path, driver: str, *words: str) -> list[str | Path]:
    """The command line of the kernel, for a driver of the card."""
    return [
        image, f"mem={_MEMORY}", "time-travel=inf-cpu", "con=null", "con0=null,fd:1",
        "panic=-1", "panic_on_warn=1",
        f"pci_card.library={library}", f"pci_card.driver={DRIVERS[driver]}",
        f"pci_card.requests={_REQUESTS[driver]}",
        *words,
    ]  # fmt: skip


def fuzzing(entry: str, inputs: Path | str) -> list[str]:
    """Words for a folder of inputs, or one, that begin in a place of `ENTRIES`."""
    return [f"pci_card.inputs={inputs}", f"pci_card.data={int(entry == 'data')}"]


def corpus(clone: Path, entry: str) -> Path:
    """The folder of inputs that are kept."""
    return clone / "tools/testbed/corpus" / entry


def verdicts(console: str) -> dict[str, str]:
    """The end of each input of a folder."""
    return dict(_VERDICT.findall(console))


def run(env: Env, name: str, words: list[str | Path], seconds: int = 60) -> Ended:
    """Run the kernel to its end, or for some seconds of the processor's time, however busy the
    machine is; an input has a limit of its own."""
    log = fresh_log(env, f"console-{name}")
    limited = ["prlimit", f"--cpu={seconds}", *words]
    code = proc.run(limited, log, what=f"the kernel of {name}", check=False, env=VARIABLES)
    return Ended(code, log.read_text(errors="replace"))
