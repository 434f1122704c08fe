# SPDX-License-Identifier: GPL-2.0
"""The share of time for which threads waited for a processor."""

from __future__ import annotations

from pathlib import Path

from testbed.boot.contention import Contention


def _thread(proc: Path, process: int, thread: int, ran: int, waited: int) -> Path:
    folder = proc / f"{process}/task/{thread}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schedstat").write_text(f"{ran} {waited} 7\n")
    return folder / "schedstat"


def test_waiting_is_a_share_of_running_and_waiting(tmp_path: Path) -> None:
    found = Contention([1, 2], tmp_path)
    assert found.share == 0.0
    _thread(tmp_path, 1, 1, 600, 100)
    ended = _thread(tmp_path, 1, 3, 100, 0)
    _thread(tmp_path, 2, 2, 100, 100)
    _thread(tmp_path, 5, 5, 0, 10_000)
    found.look()
    assert found.share == 0.2
    ended.unlink()
    _thread(tmp_path, 1, 1, 1400, 300)
    found.look()
    assert found.share == 0.2


def test_this_process_has_run() -> None:
    found = Contention([1])
    found.look()
    assert 0.0 <= found.share < 1.0
