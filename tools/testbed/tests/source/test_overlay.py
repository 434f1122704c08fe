# SPDX-License-Identifier: GPL-2.0
"""The overlay: content, time stamps, patches, undoing, refusing."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path

from testbed.host.ui import Failure
from testbed.source import overlay
from testbed.source.tree import Tree

UPSTREAM = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
PATCH = """\
From: A <a@localhost>
Subject: [PATCH] change

text
---
diff --git a/net/core.c b/net/core.c
--- a/net/core.c
+++ b/net/core.c
@@ -2,4 +2,5 @@
 two
 three
+new line
 four
 five
"""
LONG_AGO = 1_000_000_000


class OverlayTest(unittest.TestCase):
    def setUp(self) -> None:
        top = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.clone, base = top / "clone", top / "base"
        self.tree = Tree(base, top / "place" / "tree", "7.3.0")
        (self.clone / "rust").mkdir(parents=True)
        (self.clone / "patches").mkdir()
        (base / "net").mkdir(parents=True)
        (base / "net/core.c").write_text(UPSTREAM)
        (base / "Makefile").write_text("VERSION = 7\n")
        for name in ("net/core.c", "Makefile"):
            target = self.tree.work / name
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(base / name, target)
        (self.clone / "rust/new.rs").write_text("fn new() {}\n")
        (self.clone / "patches/series").write_text("# none yet\n[one]\n0001.patch\n")
        (self.clone / "patches/0001.patch").write_text(PATCH)

    def lay(self) -> overlay.Laid:
        return overlay.apply(self.tree, overlay.wanted_files(self.clone, self.tree.base))

    def work(self, name: str) -> str:
        return (self.tree.work / name).read_text()

    def test_a_tree_has_the_series_or_has_not(self) -> None:
        self.assertFalse(overlay.is_applied(self.clone, self.tree.base))
        self.lay()
        (self.tree.work / "rust/new.rs").write_text("fn mine() {}\n")
        self.assertTrue(overlay.is_applied(self.clone, self.tree.work))

    def test_a_tree_with_a_part_of_the_series_is_refused(self) -> None:
        self.lay()
        (self.clone / "rust/later.rs").write_text("fn later() {}\n")
        with self.assertRaisesRegex(Failure, "without rust/later.rs") as caught:
            overlay.is_applied(self.clone, self.tree.work)
        self.assertIn("OVERLAY=0", " ".join(caught.exception.hints))

    def test_new_and_patched_files_are_written(self) -> None:
        laid = self.lay()
        self.assertEqual(sorted(laid.written), ["net/core.c", "rust/new.rs"])
        self.assertIn("new line\n", self.work("net/core.c"))
        self.assertEqual(self.work("rust/new.rs"), "fn new() {}\n")

    def test_selftests_are_laid_as_programs(self) -> None:
        name = "tools/testing/selftests/drivers/net/one.py"
        (self.clone / name).parent.mkdir(parents=True)
        (self.clone / name).write_text("#!/usr/bin/env python3\n")
        self.assertIn(name, self.lay().written)
        self.assertTrue(os.access(self.tree.work / name, os.X_OK))
        self.assertEqual((self.tree.work / "rust/new.rs").stat().st_mode & 0o111, 0)

    def test_the_base_is_never_written_to(self) -> None:
        self.lay()
        self.assertEqual((self.tree.base / "net/core.c").read_text(), UPSTREAM)
        self.assertFalse((self.tree.base / "rust").exists())

    def test_a_second_call_touches_nothing(self) -> None:
        self.lay()
        for name in ("net/core.c", "rust/new.rs"):
            os.utime(self.tree.work / name, (LONG_AGO, LONG_AGO))
        laid = self.lay()
        self.assertEqual((laid.written, laid.removed), ([], []))
        for name in ("net/core.c", "rust/new.rs"):
            self.assertEqual((self.tree.work / name).stat().st_mtime, LONG_AGO)

    def test_only_what_changed_is_written(self) -> None:
        self.lay()
        (self.clone / "rust/new.rs").write_text("fn newer() {}\n")
        self.assertEqual(self.lay().written, ["rust/new.rs"])
        self.assertEqual(self.work("rust/new.rs"), "fn newer() {}\n")

    def test_a_file_that_left_the_clone_leaves_the_tree(self) -> None:
        self.lay()
        (self.clone / "rust/new.rs").unlink()
        self.assertEqual(self.lay().removed, ["rust/new.rs"])
        self.assertFalse((self.tree.work / "rust").exists())

    def test_a_patch_that_left_the_series_is_undone(self) -> None:
        self.lay()
        (self.clone / "patches/series").write_text("")
        os.utime(self.tree.base / "net/core.c", (LONG_AGO, LONG_AGO))
        self.assertEqual(self.lay().removed, ["net/core.c"])
        self.assertEqual(self.work("net/core.c"), UPSTREAM)
        # make has to see that the file changed.
        self.assertGreater((self.tree.work / "net/core.c").stat().st_mtime, LONG_AGO)

    def test_a_patch_that_does_not_fit_names_file_and_hunk(self) -> None:
        self.lay()
        (self.clone / "rust/new.rs").write_text("changed\n")
        (self.clone / "patches/0001.patch").write_text(PATCH.replace(" three", " THREE"))
        with self.assertRaises(Failure) as caught:
            self.lay()
        text = " ".join([str(caught.exception), *caught.exception.hints])
        self.assertIn("0001.patch", text)
        self.assertIn("net/core.c: hunk 1", text)
        self.assertEqual(self.work("rust/new.rs"), "fn new() {}\n")
        self.assertIn("new line\n", self.work("net/core.c"))

    def test_patches_apply_without_fuzz(self) -> None:
        (self.clone / "patches/0001.patch").write_text(PATCH.replace(" four", " FOUR"))
        with self.assertRaises(Failure):
            self.lay()

    def test_a_new_file_may_not_hide_an_upstream_file(self) -> None:
        (self.clone / "net").mkdir()
        (self.clone / "net/core.c").write_text("mine\n")
        with self.assertRaisesRegex(Failure, "net/core.c exists"):
            self.lay()

    def test_a_missing_patch_is_named(self) -> None:
        (self.clone / "patches/0001.patch").unlink()
        with self.assertRaisesRegex(Failure, "line 3 lists 0001.patch"):
            self.lay()

    def test_editor_files_stay_out(self) -> None:
        for name in ("rust/new.rs~", "rust/.new.rs.swp", "rust/new.rs.orig"):
            (self.clone / name).write_text("x")
        self.assertEqual(list(overlay.new_files(self.clone)), ["rust/new.rs"])

    def test_a_patch_may_remove_a_file(self) -> None:
        (self.clone / "patches/0001.patch").write_text(
            "text\n---\n--- a/net/core.c\n+++ /dev/null\n@@ -1,7 +0,0 @@\n"
            + "".join(f"-{line}\n" for line in UPSTREAM.split())
        )
        self.lay()
        self.assertFalse((self.tree.work / "net/core.c").exists())

    def test_a_patch_makes_no_file(self) -> None:
        (self.clone / "patches/0001.patch").write_text(
            "text\n---\n--- /dev/null\n+++ b/net/made.c\n@@ -0,0 +1 @@\n+made\n"
        )
        with self.assertRaises(Failure) as caught:
            self.lay()
        self.assertIn("net/made.c is no file of this kernel tree", caught.exception.hints)

    def test_what_a_patch_says_of_a_file_of_ours_does_not_matter(self) -> None:
        """Whoever edits such a file builds what it says, even if the series needs mending."""
        (self.clone / "patches/0001.patch").write_text(
            PATCH + "--- a/rust/new.rs\n+++ b/rust/new.rs\n@@ -1 +1,2 @@\n of old\n+of later\n"
        )
        self.lay()
        self.assertEqual(self.work("rust/new.rs"), "fn new() {}\n")
        self.assertIn("new line\n", self.work("net/core.c"))
