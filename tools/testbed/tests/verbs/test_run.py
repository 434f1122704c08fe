# SPDX-License-Identifier: GPL-2.0
"""make run: which scripts are kernel selftests."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.verbs.run import SELFTEST_RUNNER, selftest_of

CLONE = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    ("script", "name"),
    [
        ("tools/testing/selftests/drivers/net/hw/forward.py", "drivers/net/hw/forward.py"),
        ("tools/testbed/../testing/selftests/net/lib.sh", "net/lib.sh"),
        ("tools/testbed/guest/run_selftests.py", None),
        ("/tmp/try.sh", None),
    ],
)
def test_selftests_run_by_their_names(script: str, name: str | None) -> None:
    assert selftest_of(CLONE, CLONE / script) == name


def test_their_runner_is_there() -> None:
    assert (CLONE / SELFTEST_RUNNER).is_file()
