# SPDX-License-Identifier: GPL-2.0
"""The locks of a workshop, and their order."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed import workshop
from testbed.build import kernel
from testbed.host.lock import Lock
from testbed.host.ui import Failure
from testbed.source import tree


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the locks in the order in which they were taken; nothing is built."""
    names: list[str] = []

    class Noted(Lock):
        def __enter__(self) -> Lock:
            names.append(self.path.name)
            return super().__enter__()

    def nothing(*_: Any) -> Any:
        return SimpleNamespace()

    monkeypatch.setattr(workshop, "Lock", Noted)
    monkeypatch.setattr(tree, "place", lambda _: tmp_path)
    monkeypatch.setattr(workshop.nicmodel, "target_folder", lambda _: tmp_path)
    for module, name in (
        (workshop.nicmodel, "build"), (kernel, "build"), (kernel, "shared_tree"),
        (workshop.selftests, "build"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, nothing)
    monkeypatch.setattr(kernel, "finished", lambda *_: None)
    return names


def test_the_tree_comes_before_all_that_is_built_from_it(taken: list[str]) -> None:
    shop = workshop.Workshop(SimpleNamespace())  # type: ignore[arg-type]
    shop.ready("uml", with_selftests=True)
    shop.close()
    # The host tools are built beside, from another tree.
    taken.remove("skbulk.lock")
    assert taken == ["lock", "build-programs.lock", "build-uml.lock"]


def test_a_kernel_that_is_needed_with_more_modules_is_locked_once(taken: list[str]) -> None:
    shop = workshop.Workshop(SimpleNamespace())  # type: ignore[arg-type]
    shop.ready("uml", modules=["a.ko"])
    shop.ready("uml")
    shop.close()
    assert taken.count("build-uml.lock") == 1


def test_what_is_released_can_be_taken(taken: list[str], tmp_path: Path) -> None:
    shop = workshop.Workshop(SimpleNamespace())  # type: ignore[arg-type]
    shop.ready("uml").release()
    for name in ("lock", "build-uml.lock"):
        with Lock(tmp_path / name, name, shared=True) as lock:
            assert lock.try_own()
    shop.close()


@pytest.mark.usefixtures("taken")
@pytest.mark.parametrize("part", ["shared_tree", "build"])
def test_what_cannot_be_built_is_tried_once(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []

    def fail(*_: Any) -> Any:
        tries.append(part)
        raise Failure("no")

    monkeypatch.setattr(kernel, part, fail)
    shop = workshop.Workshop(SimpleNamespace())  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(Failure, match="no"):
            shop.ready("uml")
    assert tries == [part]
    shop.close()


@pytest.mark.usefixtures("taken")
def test_a_finished_kernel_has_many_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = SimpleNamespace()
    monkeypatch.setattr(kernel, "finished", lambda *_: made)
    shop = workshop.Workshop(SimpleNamespace())  # type: ignore[arg-type]
    # Would wait for the other user without end, if it built the kernel.
    with Lock(tmp_path / "build-uml.lock", "another user", shared=True) as other:
        assert shop.ready("uml").kernels["uml"] is made
        assert not other.try_own()
    shop.close()


@pytest.mark.usefixtures("taken")
def test_a_kernel_that_is_built_has_one_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone: list[bool] = []

    def build(*_: Any) -> Any:
        file = os.open(tmp_path / "build-uml.lock", os.O_RDWR)
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            alone.append(False)
        except BlockingIOError:
            alone.append(True)
        finally:
            os.close(file)
        return SimpleNamespace()

    monkeypatch.setattr(kernel, "build", build)
    shop = workshop.Workshop(SimpleNamespace())  # type: ignore[arg-type]
    shop.ready("uml")
    assert alone == [True]
    shop.close()
