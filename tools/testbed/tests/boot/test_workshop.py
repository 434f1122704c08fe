# SPDX-License-Identifier: GPL-2.0
"""The locks of a workshop, and their order."""

from __future__ import annotations

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
    return names


def test_the_tree_comes_before_all_that_is_built_from_it(taken: list[str]) -> None:
    shop = workshop.Workshop(SimpleNamespace())  # type: ignore[arg-type]
    shop.ready("uml", with_selftests=True)
    shop.close()
    # The host tools are built beside, from another tree.
    taken.remove("skbulk.lock")
    assert taken == ["lock", "build-programs.lock", "build-uml.lock"]


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
