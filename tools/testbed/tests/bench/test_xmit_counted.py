# SPDX-License-Identifier: GPL-2.0
"""Senders in QEMU: instructions per packet from the guest's lines and the plugin's windows."""

from __future__ import annotations

import json

import pytest

from insn.counts import FunctionCount, WindowCount
from testbed.bench.xmit import counted
from testbed.host.ui import Failure


def _line(pair: int, driver: str, packets: int) -> str:
    return json.dumps({"pair": pair, "case": "2 senders fq", "driver": driver, "counted": packets})


def _window(total: int, waiting: int, complete: bool = True) -> WindowCount:
    functions = [
        FunctionCount("vmlinux", "native_queued_spin_lock_slowpath", waiting),
        FunctionCount("vmlinux", "fq_enqueue", total - waiting),
    ]
    return WindowCount("", complete, total, {"vmlinux": total}, functions)


def test_windows_belong_to_lines_in_order() -> None:
    lines = [_line(1, "rust", 10), _line(1, "c", 20), _line(2, "rust", 10)]
    windows = [_window(900, 0), _window(2000, 400), _window(1100, 50)]
    total, waiting = counted.per_packet(lines, windows)
    assert (total.ours, total.reference, total.ratio) == (100.0, 100.0, 100 / 90)
    assert (waiting.ours, waiting.reference) == (2.5, 20.0)


def test_a_lost_or_open_window_is_refused() -> None:
    for windows in ([], [_window(1, 0, complete=False)]):
        with pytest.raises(Failure, match="of 1 measurements were counted"):
            counted.per_packet([_line(1, "c", 10)], windows)


def test_rows_compare_pairs_and_waiting_has_no_ratio() -> None:
    lines = [_line(1, "rust", 10), _line(1, "c", 10)]
    total, waiting = counted.per_packet(lines, [_window(1000, 0), _window(2000, 400)])
    assert (total.case, total.ours, total.ratio) == ("2 senders fq", 100.0, 2.0)
    assert (waiting.case, waiting.reference, waiting.ratio) == ("2 senders fq waiting", 40.0, None)
