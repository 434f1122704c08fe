# SPDX-License-Identifier: GPL-2.0
"""Builds that need no make, because they were finished before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.build import arch, kernel
from testbed.build.config import Fragment
from testbed.host.lock import Lock
from testbed.host.ui import Failure
from testbed.source.tree import Tree

Patch = pytest.MonkeyPatch


@pytest.fixture
def env(tmp_path: Path, monkeypatch: Patch) -> Any:
    """An environment in which make succeeds at once."""
    image = tmp_path / "build" / arch.of("uml").image

    def make(*_: Any, **__: Any) -> None:
        image.parent.mkdir(parents=True, exist_ok=True)
        image.touch()
        (tmp_path / "kernel-uml.log").touch()

    for name, fake in {
        "build_folder": lambda *_: tmp_path / "build",
        "fragments": lambda *_: [Fragment("", "CONFIG_A=y\n")],
        "_configure": lambda *_: None,
        "_make": make,
    }.items():
        monkeypatch.setattr(kernel, name, fake)
    monkeypatch.setattr(kernel.tree, "place", lambda _: tmp_path)
    settings = SimpleNamespace(verb="demo")
    return SimpleNamespace(logs=tmp_path, settings=settings, llvm="", jobs=2, toolchain_key="k")


@pytest.fixture
def work(tmp_path: Path) -> Tree:
    """A tree of known content."""
    return Tree(tmp_path / "base", tmp_path / "work", "7.3.4", "some content")


def is_finished(env: Any, work: Tree) -> bool:
    """Whether the build is known as finished."""
    return kernel.finished(env, work, "uml") is not None


def test_a_build_is_finished_once_it_was_made(env: Any, work: Tree) -> None:
    assert not is_finished(env, work)
    kernel.build(env, work, "uml")
    assert is_finished(env, work)
    env.jobs = 7
    assert is_finished(env, work)


def test_a_build_of_other_sources_is_not(env: Any, work: Tree) -> None:
    kernel.build(env, work, "uml")
    assert not is_finished(env, replace(work, state="other content"))


def test_a_build_of_a_tree_that_may_change_never_is(env: Any, work: Tree) -> None:
    unknown = replace(work, state="")
    kernel.build(env, unknown, "uml")
    assert not is_finished(env, unknown)


def test_all_modules_are_enough_for_some(env: Any, work: Tree) -> None:
    kernel.build(env, work, "uml")
    assert kernel.finished(env, work, "uml", ["a/b.ko"]) is not None


def test_some_modules_are_not_enough_for_others(env: Any, work: Tree) -> None:
    kernel.build(env, work, "uml", modules=["a/b.ko"])
    assert kernel.finished(env, work, "uml", ["a/b.ko"]) is not None
    assert kernel.finished(env, work, "uml", ["a/c.ko"]) is None
    assert not is_finished(env, work)


def test_single_modules_are_made_after_the_kernel(env: Any, work: Tree, monkeypatch: Patch) -> None:
    calls, make = [], kernel._make

    def note(_env: Any, _kernel: Any, _step: Any, *targets: str, **_: Any) -> None:
        calls.append(targets)
        make(*([None] * 3))  # type: ignore[arg-type]

    monkeypatch.setattr(kernel, "_make", note)
    made = kernel.build(env, work, "uml", modules=["a/b.ko", "c.ko"])
    assert calls == [("linux",), ("a/b.ko", "c.ko")]
    (made.build / "a").mkdir()
    for name in ("a/b.ko", "c.ko"):
        (made.build / name).write_text(name)
    monkeypatch.setattr(kernel.proc, "run", lambda *_, **__: None)
    made.copy_modules(env.logs / "copy")
    assert (env.logs / "copy/a/b.ko").read_text() == "a/b.ko"
    assert (env.logs / "copy/modules.order").read_text() == "a/b.o\nc.o\n"


def test_a_build_begins_with_another_that_is_whole(
    env: Any, work: Tree, tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(kernel, "_make", lambda _, made, *__, **___: made.log.touch())
    plain, config = tmp_path / "build-uml-k", tmp_path / "build-uml-k/.config"
    plain.mkdir()
    config.touch()
    with Lock(kernel.build_lock(env, "uml"), "that kernel") as lock:
        thread = Thread(target=kernel.build, args=(env, work, kernel.SELFTESTS))
        thread.start()
        thread.join(0.5)
        (plain / "last.o").touch()
        lock.release()
        thread.join()
    assert (tmp_path / "build/last.o").exists()


def _other_symbols(_: Any, monkeypatch: Patch) -> None:
    monkeypatch.setattr(kernel, "fragments", lambda *_: [Fragment("", "CONFIG_B=y\n")])


def _with_gdb(env: Any, _: Patch) -> None:
    env.settings.verb = "debug"


def _other_compiler(env: Any, _: Patch) -> None:
    env.llvm = "-99"


def _lost_image(env: Any, _: Patch) -> None:
    (env.logs / "build" / arch.of("uml").image).unlink()


def _failed_since(env: Any, monkeypatch: Patch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        (env.logs / "kernel-uml.log").touch()
        raise Failure("no")

    monkeypatch.setattr(kernel, "_make", fail)
    work = Tree(Path("base"), Path("work"), "7.3.4", "some content")
    with pytest.raises(Failure):
        kernel.build(env, work, "uml")


@pytest.mark.parametrize(
    "change", [_other_symbols, _with_gdb, _other_compiler, _lost_image, _failed_since]
)
def test_a_build_is_made_again_after(
    change: Callable[[Any, Patch], None], env: Any, work: Tree, monkeypatch: Patch
) -> None:
    kernel.build(env, work, "uml")
    change(env, monkeypatch)
    assert not is_finished(env, work)
