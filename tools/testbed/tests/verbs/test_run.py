# SPDX-License-Identifier: GPL-2.0
"""make run: which scripts are kernel selftests."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.host.ui import Failure
from testbed.verbs.run import SELFTEST_RUNNER, line_of, selftest_of

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


def test_selftests_take_words_and_other_scripts_do_not() -> None:
    assert line_of("net/one.py", "") == "net/one.py"
    assert line_of("net/one.py", "SEED=5 -t mtu") == "net/one.py SEED=5 -t mtu"
    line_of(None, "")
    with pytest.raises(Failure, match="no selftest"):
        line_of(None, "SEED=5")
    with pytest.raises(Failure, match="No closing quotation"):
        line_of("net/one.py", "-t it's")
    with pytest.raises(Failure, match="TIME_LIMIT=soon is no number"):
        line_of("net/one.py", "TIME_LIMIT=soon")


def test_their_runner_is_there() -> None:
    assert (CLONE / SELFTEST_RUNNER).is_file()
