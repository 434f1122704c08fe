# SPDX-License-Identifier: GPL-2.0
"""make test: its results are those of the last run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.harness.summary import Summary
from testbed.host.ui import Failure
from testbed.verbs import test


def test_results_of_an_earlier_run_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    results.mkdir()
    for name in ("junit.xml", "bench.log"):
        (results / name).touch()
    seen: list[str] = []

    def run(*_: object, **__: object) -> int:
        seen.extend(path.name for path in results.iterdir())
        return 0

    monkeypatch.setattr(test.pytest, "main", run)
    monkeypatch.setattr(test.os, "dup2", lambda *_: None)
    env: Any = SimpleNamespace(
        out=tmp_path,
        logs=tmp_path,
        clone=tmp_path,
        settings=SimpleNamespace(
            switch=lambda _: False, given=lambda _: False, number=lambda _, default=0: default
        ),
    )
    with pytest.raises(Failure, match="no test was run: lint"):
        test.run(env, ["lint"], Summary())
    # Files of scripts and measurements stay.
    assert seen == ["bench.log"]


def test_a_program_that_did_not_run_is_named() -> None:
    summary = Summary()
    summary.checks["e2e-uml/forward.py"]["a"] = "passed"
    summary.unfinished.add("lint/mypy")
    assert not summary.without(["e2e-uml", "e2e-uml/forward", "lint/mypy", "selftests/ping"])
    assert summary.without(["e2e-uml/forwards", "lint", "kunit"]) == ["e2e-uml/forwards", "kunit"]
