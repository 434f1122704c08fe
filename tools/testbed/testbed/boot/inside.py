# SPDX-License-Identifier: GPL-2.0
"""Runs a kernel with the card inside: User-Mode Linux without user space, in which time travels."""

import re
from dataclasses import dataclass
from pathlib import Path

from testbed.boot import dmesg
from testbed.boot.dmesg import Complaint
from testbed.boot.job import fresh_log
from testbed.build.kernel import Kernel
from testbed.env import Env
from testbed.host import proc

_MEMORY = "64M"
# By the names that the testbed has for them.
DRIVERS = {"rust": "ixgbe_rust", "c": "ixgbe"}


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


def command(kernel: Kernel, tools: Path, driver: str, *words: str) -> list[str | Path]:
    """The command line of the kernel, for a driver of the card."""
    return [
        kernel.image, f"mem={_MEMORY}", "time-travel=inf-cpu", "con=null", "con0=null,fd:1",
        "panic=-1",
        f"pci_card.library={tools / 'libnicmodel_um.so'}", f"pci_card.driver={DRIVERS[driver]}",
        *words,
    ]  # fmt: skip


def fuzzing(entry: str, inputs: Path | str) -> list[str]:
    """Words for a folder of inputs, or one, that begin in a place of `ENTRIES`."""
    return [f"pci_card.inputs={inputs}", f"pci_card.data={int(entry == 'data')}"]


def verdicts(console: str) -> dict[str, str]:
    """The end of each input of a folder."""
    return dict(_VERDICT.findall(console))


def run(env: Env, name: str, words: list[str | Path], seconds: float) -> Ended:
    """Run the kernel to its end."""
    log = fresh_log(env, f"console-{name}")
    # Its memory is a file there.
    code = proc.run(words, log, what=f"the kernel of {name}", timeout=seconds, check=False,
                    env={"TMPDIR": "/dev/shm"})  # fmt: skip
    return Ended(code, log.read_text(errors="replace"))
