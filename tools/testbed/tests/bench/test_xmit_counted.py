# SPDX-License-Identifier: GPL-2.0
"""Senders in QEMU: instructions per packet from the guest's lines and the plugin's windows."""

from __future__ import annotations

import json

import pytest

from insn.counts import FunctionCount, WindowCount
from testbed.bench.xmit import counted, qdisc
from testbed.host.ui import Failure


def _line(design: str, packets: int) -> str:
    return json.dumps({"case": "2 senders fq", "design": design, "counted": packets})


def _window(total: int, waiting: int, complete: bool = True) -> WindowCount:
    functions = [
        FunctionCount("vmlinux", "native_queued_spin_lock_slowpath", waiting),
        FunctionCount("vmlinux", "fq_enqueue", total - waiting),
    ]
    return WindowCount("", complete, total, {"vmlinux": total}, functions)


def test_windows_belong_to_lines_in_order() -> None:
    lines = [_line(qdisc.RUST, 10), _line(qdisc.C, 20), _line(qdisc.RUST, 10)]
    found = counted.per_packet(lines, [_window(900, 0), _window(2000, 400), _window(1100, 50)])
    assert found["2 senders fq", qdisc.RUST] == [90.0, 110.0]
    assert found["2 senders fq", qdisc.C] == [100.0]
    assert found["2 senders fq waiting", qdisc.RUST] == [0.0, 5.0]
    assert found["2 senders fq waiting", qdisc.C] == [20.0]


def test_a_lost_or_open_window_is_refused() -> None:
    for windows in ([], [_window(1, 0, complete=False)]):
        with pytest.raises(Failure, match="of 1 measurements were counted"):
            counted.per_packet([_line(qdisc.C, 10)], windows)


def test_rows_compare_pairs_and_waiting_has_no_ratio() -> None:
    lines = [_line(qdisc.RUST, 10), _line(qdisc.C, 10)]
    found = counted.per_packet(lines, [_window(1000, 0), _window(2000, 400)])
    total, waiting = counted.compare(found)
    assert (total.case, total.ours, total.ratio) == ("2 senders fq", 100.0, 2.0)
    assert (waiting.case, waiting.reference, waiting.ratio) == ("2 senders fq waiting", 40.0, None)
