# SPDX-License-Identifier: GPL-2.0
"""Builds of different clones are not mixed up."""

import fcntl
import os
import shutil
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from testbed.boot import nicmodel
from testbed.boot.nicmodel import cargo_env, target_folder


class Clones(unittest.TestCase):
    """Two clones share the cache, and neither builds in the other's folder."""

    def setUp(self) -> None:
        self.top = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def env(self, name: str, tools: str = "k") -> Any:
        crate = self.top / name / "tools/nicmodel"
        crate.mkdir(parents=True, exist_ok=True)
        (crate / "Cargo.toml").write_text('[package]\nname = "nicmodel"\n')
        return SimpleNamespace(clone=self.top / name, cache=self.top / "cache", toolchain_key=tools)

    def test_each_clone_and_each_tool_chain_has_a_folder(self) -> None:
        folders = [target_folder(one) for one in (self.env("one"), self.env("two"))]
        folders.append(target_folder(self.env("one", "newer")))
        self.assertEqual(len(set(folders)), 3)
        self.assertEqual(cargo_env(self.env("two"))["CARGO_TARGET_DIR"], str(folders[1]))

    def test_a_build_that_was_interrupted_leaves_no_parts_for_the_next_one(self) -> None:
        self.assertEqual(cargo_env(self.env("one"))["CARGO_INCREMENTAL"], "0")

    def test_the_folder_names_its_clone(self) -> None:
        env = self.env("one")
        self.assertEqual((target_folder(env) / "clone").read_text().strip(), str(env.clone))

    def test_several_processes_of_a_clone_ask_at_once(self) -> None:
        env = self.env("one")
        seed = nicmodel._seed

        def slowly(env: Any, folder: Path) -> None:
            time.sleep(0.05)
            seed(env, folder)

        with mock.patch.object(nicmodel, "_seed", slowly), ThreadPoolExecutor(8) as pool:
            found = [one.result() for one in [pool.submit(target_folder, env) for _ in range(8)]]
        self.assertEqual(len(set(found)), 1)

    def test_a_new_clone_begins_with_the_crates_of_others(self) -> None:
        prints = target_folder(self.env("one")) / "debug/.fingerprint"
        for name in ("nicmodel-0123", "serde-0123"):
            (prints / name).mkdir(parents=True)
        (prints.parent / ".cargo-lock").touch()
        prints = target_folder(self.env("two")) / "debug/.fingerprint"
        self.assertEqual([path.name for path in prints.iterdir()], ["serde-0123"])

    def test_a_new_clone_begins_without_builds_of_single_crates(self) -> None:
        for part in ("debug/incremental", "debug/deps", "orderings"):
            (target_folder(self.env("one")) / part).mkdir(parents=True)
        (target_folder(self.env("one")) / "debug/.cargo-lock").touch()
        folder = target_folder(self.env("two"))
        found = sorted(path.name for path in (folder / "debug").iterdir())
        self.assertEqual(found, [".cargo-lock", "deps"])
        self.assertFalse((folder / "orderings").exists())

    def test_a_folder_in_which_cargo_works_is_not_copied(self) -> None:
        for name in ("one", "two"):
            (target_folder(self.env(name)) / "release").mkdir(exist_ok=True)
            (target_folder(self.env(name)) / f"release/{name}").touch()
            (target_folder(self.env(name)) / "release/.cargo-lock").touch()
        busy = target_folder(self.env("two"))
        os.utime(target_folder(self.env("one")), (1, 1))
        with (busy / "release/.cargo-lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            folder = target_folder(self.env("three"))
        self.assertTrue((folder / "release/one").exists())
        self.assertFalse((folder / "release/two").exists())
        os.utime(folder, (1, 1))
        self.assertTrue((target_folder(self.env("four")) / "release/two").exists())

    def test_a_copy_that_was_killed_is_not_used(self) -> None:
        env = self.env("one")
        part = f"cargo-k-{nicmodel.short_hash(str(env.clone))}.part"
        (env.cache / part / "release/half").mkdir(parents=True)
        self.assertEqual([path.name for path in target_folder(env).iterdir()], ["clone"])

    def test_objects_that_vanish_do_no_harm(self) -> None:
        one = target_folder(self.env("one"))
        (one / "release").mkdir()
        (one / "release/.cargo-lock").touch()
        two = self.env("two")
        with mock.patch.object(nicmodel.shutil, "copytree", side_effect=shutil.Error):
            folder = target_folder(two)
        self.assertEqual([path.name for path in folder.iterdir()], ["clone"])
        self.assertEqual([path for path in folder.parent.iterdir() if path.suffix == ".part"], [])

    def test_nothing_is_thrown_away_by_another_clone(self) -> None:
        kept = target_folder(self.env("one")) / "release/nicmodel"
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.touch()
        cargo_env(self.env("two"))
        cargo_env(self.env("one"))
        self.assertTrue(kept.exists())
