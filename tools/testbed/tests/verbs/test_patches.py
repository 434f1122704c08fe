# SPDX-License-Identifier: GPL-2.0
"""make patches: the base of the mails, and the parts that they lack."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed import settings
from testbed.host.ui import Failure
from testbed.verbs.patches import _base_commit, lacking, sender_of


def test_what_the_mails_lack_comes_with_the_variable_that_adds_it() -> None:
    nothing = "\n".join(lacking("", ""))
    assert "only a person" in nothing
    assert "AUTHOR=" in nothing
    assert "KDIR=" in nothing
    assert "KDIR=" not in "\n".join(lacking("", "0123456789ab"))
    assert lacking("Jane Doe <jane@example.org>", "0123456789ab") == []


def test_the_base_is_the_commit_of_the_users_tree(tmp_path: Path) -> None:
    def env(kdir: Path | None) -> Any:
        return SimpleNamespace(kdir=kdir)

    assert _base_commit(env(None)) == ""
    assert _base_commit(env(tmp_path)) == ""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@localhost"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    assert _base_commit(env(tmp_path)) == head.stdout.strip()


def test_the_sender_is_that_of_the_variables() -> None:
    one = sender_of(settings.read("patches", {}), "0123456789ab")
    assert (one.author, one.version) == ("", 1)
    values = {
        "AUTHOR": "Jane Doe <jane@example.org>",
        "VERSION": "3",
        "SOURCE_DATE_EPOCH": "1790000000",
    }
    one = sender_of(settings.read("patches", values), "")
    assert one.author == values["AUTHOR"]
    assert (one.version, one.when) == (3, 1_790_000_000)


def test_a_wrong_version_is_named() -> None:
    with pytest.raises(Failure, match=r"VERSION=0: .* a number from 1 to 99"):
        settings.read("patches", {"VERSION": "0"})
