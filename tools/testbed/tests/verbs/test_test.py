# SPDX-License-Identifier: GPL-2.0
"""make test: the programs that ONLY names."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.host.ui import Failure
from testbed.verbs.test import check_programs

CLONE = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    "name", ["e2e-uml", "e2e-uml/forward", "e2e-uml/forward.py", "mutants/x", "python"]
)
def test_programs_of_a_suite_are_taken(name: str) -> None:
    check_programs(CLONE, [name])


@pytest.mark.parametrize(
    ("name", "near"),
    [("e2e-uml/forwards", "e2e-uml/forward"), ("e2e-c/net_pair", "it runs combine_tx")],
)
def test_another_program_is_refused(name: str, near: str) -> None:
    with pytest.raises(Failure, match=name) as refused:
        check_programs(CLONE, ["e2e-uml", name])
    assert near in refused.value.on_one_line
