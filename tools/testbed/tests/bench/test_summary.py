# SPDX-License-Identifier: GPL-2.0
"""The rows that RESULTS.md shows, and its plots."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.bench import plots, summary
from testbed.bench.rows import Row


def row(bench: str, case: str, *ratios: float) -> Row:
    return Row(bench, case, "ns", 4.0, 8.0, ratios)


def test_processor_time_stands_beside_time() -> None:
    rows = [row("forward", "1 flow 1 cpu", 2.0), row("forward-cost", "1 flow 1 cpu", 3.0),
            row("forward", "latency 1 cpu median", 1.0)]  # fmt: skip
    head, both, alone = summary.lines(rows)
    assert "processor time" in head
    assert " ".join(both.split()[3:]) == " ".join(
        ("cpu 4.00 8.00 2.00 (2.00 - 2.00)", "4.00 8.00 3.00 (3.00 - 3.00)")
    )
    assert " ".join(alone.split()[4:]) == "4.00 8.00 1.00 (1.00 - 1.00)"


@pytest.mark.parametrize(
    ("one", "shown"),
    [
        (row("window", "window 64 1 cpu", 2.0), True),
        (row("window", "window 96 1 cpu", 2.0), False),
        (row("window", "window 96 1 cpu", 1.1), True),
        (row("window-cost", "window 96 1 cpu", 0.8, 0.9), True),
        (row("window-events", "window 64 1 cpu lost"), False),
        (row("insn", "kernel crate"), True),
    ],
)
def test_a_row_that_is_missed_or_slower_is_shown(one: Row, shown: bool) -> None:
    assert bool(summary.lines([one])) == shown


def test_a_target_that_is_missed_is_named() -> None:
    assert summary.lines([row("window", "window 96 1 cpu", 1.1)])[1].endswith("below 1.25")


def test_a_plot_is_drawn_again_if_its_points_have_changed(tmp_path: Path) -> None:
    rows = [row("slab", f"bulk {1 << number}", 2.0) for number in range(5)]
    assert plots.renew(rows[:4], tmp_path, write=False) == []
    path = tmp_path / "slab.svg"
    assert plots.renew(rows, tmp_path, write=False) == [path]
    assert plots.renew(rows, tmp_path) == [path]
    assert plots.renew(rows, tmp_path, write=False) == []
    rows[0] = Row("slab", "bulk 1", "ns", 5.0, 8.0, ())
    assert plots.renew(rows, tmp_path, write=False) == [path]
