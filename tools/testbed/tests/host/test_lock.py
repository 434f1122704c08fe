# SPDX-License-Identifier: GPL-2.0
"""Locks of the cache: a waiting run says for what it waits."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from testbed.host import lock
from testbed.host.lock import Lock


def test_a_run_that_waits_says_for_what(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, said = threading.Event(), lock.say

    def say(text: str) -> None:
        said(text)
        waits.set()

    monkeypatch.setattr(lock, "say", say)
    held, taken = Lock(tmp_path / "lock", "this kernel tree"), []

    def other() -> None:
        with Lock(tmp_path / "lock", "this kernel tree"):
            taken.append(True)

    with held:
        thread = threading.Thread(target=other)
        thread.start()
        assert waits.wait(10)
        assert not taken
    thread.join(10)
    assert taken
    assert capsys.readouterr().out == "    waiting: another skbulk uses this kernel tree\n"


def test_runs_that_share_do_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Said before waiting, which here would have no end.
    monkeypatch.setattr(lock, "say", pytest.fail)
    with (
        Lock(tmp_path / "lock", "the tree", shared=True),
        Lock(tmp_path / "lock", "the tree", shared=True),
    ):
        pass


def test_a_build_waits_until_it_is_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "_PAUSE", 0.0)
    with Lock(tmp_path / "lock", "the tree", shared=True) as build:
        with Lock(tmp_path / "lock", "the tree", shared=True):
            assert [build.try_own(), build.try_own()] == [False, False]
        assert build.try_own()
    assert capsys.readouterr().out == "    waiting: another skbulk uses the tree\n"
