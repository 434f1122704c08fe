# SPDX-License-Identifier: GPL-2.0
"""Tests of testbed.suites.test_mutants."""

import shutil
import subprocess
from pathlib import Path

import pytest

from testbed.suites.test_mutants import FOLDER, Mutant, mutants

CLONE = Path(__file__).resolve().parents[4]
DRIVER = CLONE / "drivers/net/ethernet/intel/ixgbe/rust"
PROGRAMS = CLONE / "tools/testing/selftests/drivers/net/hw"
ALL = mutants(CLONE / FOLDER)


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.patch.stem)
def test_mutants_apply(tmp_path: Path, mutant: Mutant) -> None:
    """A patch fits the driver as it is, and its program exists."""
    shutil.copytree(DRIVER, tmp_path / "driver")
    command = ["patch", "-p1", "--fuzz=0", "--dry-run", "-i", mutant.patch]
    subprocess.run(command, cwd=tmp_path / "driver", check=True, stdout=subprocess.DEVNULL)
    assert (PROGRAMS / mutant.program.split()[0]).exists()
    assert mutant.about


def test_the_head_of_a_patch_is_read(tmp_path: Path) -> None:
    """The defect, and the program."""
    (tmp_path / "a.patch").write_text("A defect.\nRefused-by: forward.py -t set_up\n\n--- a/x\n")
    (mutant,) = mutants(tmp_path)
    assert (mutant.about, mutant.program) == ("A defect", "forward.py -t set_up")


def test_a_mutant_names_its_program(tmp_path: Path) -> None:
    """A patch without one is an error."""
    (tmp_path / "a.patch").write_text("A defect.\n\n--- a/x\n")
    with pytest.raises(ValueError, match="Refused-by"):
        mutants(tmp_path)
