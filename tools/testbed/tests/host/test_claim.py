# SPDX-License-Identifier: GPL-2.0
"""Two calls of make in one clone: the second is refused, or has files of its own."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed import cli
from testbed.host.claim import claimed
from testbed.host.ui import Failure


def test_the_second_call_is_refused_and_names_the_first(tmp_path: Path) -> None:
    mixed = pytest.raises(Failure, match=r"make test, begun at .*make run would mix")
    with claimed(tmp_path / "out", "test", terminal=True):
        with mixed as refused, claimed(tmp_path / "out", "run", terminal=True):
            pass
        assert "git clone" in refused.value.on_one_line
    with claimed(tmp_path / "out", "run", terminal=True):
        pass


def test_a_prompt_goes_beside_a_test_but_not_beside_another_one(tmp_path: Path) -> None:
    with claimed(tmp_path, "test", terminal=True), claimed(tmp_path, "shell", terminal=True):
        with claimed(tmp_path, "debug", terminal=True):
            pass
        with pytest.raises(Failure), claimed(tmp_path, "shell", terminal=True):
            pass


def test_commands_for_a_shell_are_a_script(tmp_path: Path) -> None:
    first, second = (claimed(tmp_path, verb, terminal=False) for verb in ("test", "shell"))
    with first, pytest.raises(Failure), second:
        pass


@pytest.mark.parametrize("wrong", ["a file", "a link to nowhere"])
def test_an_output_folder_that_is_none(tmp_path: Path, wrong: str) -> None:
    out = tmp_path / "out"
    if wrong == "a file":
        out.touch()
    else:
        out.symlink_to("/nonexistent/folder")
    refused = pytest.raises(Failure, match=f"{out} cannot be written to")
    with refused, claimed(out, "test", terminal=True):
        pass


def test_each_verb_holds_the_folder_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def verb(env: Any) -> int:
        with pytest.raises(Failure), claimed(tmp_path, "test", terminal=True):
            pass
        return 7

    settings = SimpleNamespace(names=lambda _: [])
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    monkeypatch.setattr(cli.Env, "read", lambda _: SimpleNamespace(out=tmp_path, settings=settings))
    monkeypatch.setitem(sys.modules, "testbed.verbs.demo", SimpleNamespace(main=verb))
    assert cli.main(["demo"]) == 7
    # And a second call is a message, not a traceback.
    with claimed(tmp_path, "test", terminal=True):
        assert cli.main(["demo"]) == 1
    assert "error: make test, begun at" in capsys.readouterr().err
