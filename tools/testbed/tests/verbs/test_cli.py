# SPDX-License-Identifier: GPL-2.0
"""python3 -m testbed VERB: verbs in bash, lists of names, errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed import cli, settings
from testbed.catalogue import BENCHES, SUITES
from testbed.env import Env
from testbed.host.ui import Failure
from testbed.settings import HELP, INTERNAL, VARIABLES
from testbed.verbs import bench


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Run it as a user would; returns the exit code and both outputs."""
    code = cli.main(words)
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the variables of the caller's make, and without its handlers of signals."""
    for name in (*VARIABLES, *INTERNAL, "SKBULK_GIVEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)


@pytest.mark.parametrize("verb", ["doctor", "clean", "distclean"])
def test_a_verb_in_bash_is_named_as_such(capsys: pytest.CaptureFixture[str], verb: str) -> None:
    assert run(capsys, verb) == (2, "", f"make {verb} is not in Python: see the Makefile\n")


def test_without_a_verb_it_is_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--help") == (0, HELP, "")
    assert run(capsys) == (2, HELP, "")


def test_an_unknown_verb_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "dmeo")
    assert (code, err.splitlines()[1]) == (1, "error: there is no verb dmeo")
    assert "demo, test, bench" in err


@pytest.mark.parametrize(("verb", "known"), [("test", SUITES), ("bench", BENCHES)])
def test_only_list_names_all_and_builds_nothing(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    known: dict[str, str],
) -> None:
    monkeypatch.setenv("ONLY", "list")
    code, out, err = run(capsys, verb)
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == list(known)


@pytest.mark.parametrize("only", ["forward", "tcp", "forward,tcp"])
def test_an_unknown_case_is_refused_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only: str
) -> None:
    def built(*_: object) -> None:
        raise AssertionError("it builds")

    monkeypatch.setattr(bench, "built", built)
    values = settings.read("bench", {"ONLY": only, "CASES": "nosuch"})
    env = Env(values, tmp_path, tmp_path, tmp_path, tmp_path, None, "", 1)
    with pytest.raises(Failure, match="CASES=nosuch: no case has that in its name"):
        bench.main(env)
