# SPDX-License-Identifier: GPL-2.0
"""Tests of testbed.suites.test_kernel_mutants."""

import re
import shutil
from pathlib import Path

import pytest

from testbed.suites.test_kernel_mutants import FOLDER, SOURCE, SWITCH, mutants, seed

CLONE = Path(__file__).resolve().parents[4]


def test_all_apply_and_name_their_case(tmp_path: Path) -> None:
    """One behind the other, to files that are in the clone; the case that refuses each exists."""
    folder = tmp_path / "kernel"
    shutil.copytree(CLONE / SOURCE, folder)
    seed(folder, CLONE / FOLDER, tmp_path / "log")
    text = "\n".join(path.read_text() for path in folder.rglob("*.rs"))
    for mutant in mutants(CLONE / FOLDER):
        suite, case = mutant.case.split(".")
        assert f'is_mutant(c"{mutant.name}")' in text
        assert re.search(rf"kunit_tests\({suite}\)", text), mutant
        assert f"fn {case}(" in text, mutant


def test_the_head_of_a_patch_is_read(tmp_path: Path) -> None:
    """The defect, and the case; the switch is none."""
    (tmp_path / "a.patch").write_text("A defect.\nRefused-by: suite.case\n\n--- a/x\n")
    (tmp_path / f"{SWITCH}.patch").write_text("A switch.\n\n--- a/x\n")
    (mutant,) = mutants(tmp_path)
    assert (mutant.name, mutant.about, mutant.case) == ("a", "A defect", "suite.case")
    (tmp_path / "b.patch").write_text("Another one.\n\n--- a/x\n")
    with pytest.raises(ValueError, match="Refused-by"):
        mutants(tmp_path)
