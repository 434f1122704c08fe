# SPDX-License-Identifier: GPL-2.0
"""Running tools: errors that the user can act on."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.host import proc
from testbed.host.ui import Failure


def test_a_failure_shows_the_last_errors(tmp_path: Path) -> None:
    with pytest.raises(Failure) as raised:
        proc.run(["sh", "-c", "echo 'x.c:1: error: bad'; exit 2"], tmp_path / "log", what="it")
    assert "| x.c:1: error: bad |" in raised.value.on_one_line
    assert "disk" not in raised.value.on_one_line


def test_a_failure_shows_the_compilers_words(tmp_path: Path) -> None:
    log = tmp_path / "log"
    calls = "".join(f"make[{level}]: *** [Makefile:{level}: all] Error 2\n" for level in range(9))
    log.write_text(f"error: struct `A` is never constructed\n  CC      net/9p/error.o\n{calls}")
    assert proc.last_errors(log) == ["error: struct `A` is never constructed"]
    log.write_text(calls)
    assert len(proc.last_errors(log)) == 8


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    with pytest.raises(Failure) as raised:
        proc.run(["sh", "-c", "cat /proc/version >/dev/full"], tmp_path / "log", what="it")
    assert "the disk is full: make clean" in raised.value.on_one_line


def test_the_root_cause_of_cargo_is_shown(tmp_path: Path) -> None:
    words = (
        "error: failed to get `anyhow` as a dependency\n\nCaused by:\n  download failed\n\n"
        "Caused by:\n  [60] (SSL certificate problem: unable to get local issuer certificate)\n"
    )
    with pytest.raises(Failure) as raised:
        proc.run(["sh", "-c", f"echo '{words}'; exit 1"], tmp_path / "log", what="the build")
    told = raised.value.on_one_line
    assert "[60] (SSL certificate problem" in told
    assert "download failed" not in told
    assert "update-ca-certificates" in told


def test_a_tool_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="no-such-tool is not installed"):
        proc.run(["no-such-tool"], tmp_path / "log", what="it")
