# SPDX-License-Identifier: GPL-2.0
"""The words of a kernel with the card inside, and its verdicts."""

from pathlib import Path

from testbed import settings
from testbed.boot import inside
from testbed.env import Env

CONSOLE = """Checking if /dev/shm is on tmpfs...OK
pci_card: 0a: passed
pci_card: life 1 is over
pci_card: 0b: signal 6
"""


def test_verdicts() -> None:
    assert inside.verdicts(CONSOLE) == {"0a": inside.PASSED, "0b": "signal 6"}


def test_lies_begin_where_they_are_told_to() -> None:
    assert inside.fuzzing("life", "x") == ["pci_card.inputs=x", "pci_card.data=0"]
    assert inside.fuzzing("data", "x") == ["pci_card.inputs=x", "pci_card.data=1"]


def test_a_kernel_that_spins_is_ended_by_its_own_time(tmp_path: Path) -> None:
    env = Env(settings.read("test", {}), tmp_path, tmp_path, tmp_path, tmp_path, None, "", 1)
    ended = inside.run(env, "spins", ["sh", "-c", "echo begun; while :; do :; done"], seconds=1)
    assert ended.code != 0
    assert "begun" in ended.console
