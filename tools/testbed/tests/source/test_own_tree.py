# SPDX-License-Identifier: GPL-2.0
"""A tree of the user's own: with the series, without, with a part, with changes."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from unittest import mock

from testbed.host.ui import Failure
from testbed.source import own_tree

UPSTREAM = "".join(f"line {number}\n" for number in range(1, 31))
HEADER = "From: A <a@localhost>\nSubject: [PATCH] {}\n\ntext\n---\n"


def change(line: int, new: str, file: str = "net/core.c") -> str:
    """A patch that adds a line in front of one of the upstream lines."""
    around = [f" line {number}\n" for number in range(line - 3, line + 3)]
    return (
        f"--- a/{file}\n+++ b/{file}\n@@ -{line - 3},6 +{line - 3},7 @@\n"
        + "".join(around[:3]) + f"+{new}\n" + "".join(around[3:])
    )  # fmt: skip


class OwnTreeTest(unittest.TestCase):
    def setUp(self) -> None:
        top = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.clone, self.base = top / "clone", top / "base"
        self.write(self.base / "net/core.c", UPSTREAM)
        patches = self.clone / "patches"
        self.write(patches / "series", "[one]\na.patch\nb.patch\nfix.patch\n")
        self.write(patches / "a.patch", HEADER.format("a") + change(10, "hook of a"))
        self.write(patches / "a.files", "rust/a.rs\nrust/a/*\n")
        self.write(patches / "b.patch", HEADER.format("b"))
        self.write(patches / "b.files", "rust/b.rs\n")
        self.write(patches / "fix.patch", HEADER.format("fix") + change(20, "fixed"))
        for name in ("rust/a.rs", "rust/a/deep.rs", "rust/b.rs"):
            self.write(self.clone / name, f"// {name}\n")

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def apply_all(self) -> None:
        for name, content in own_tree.complete(self.clone, self.base).items():
            assert content is not None
            self.write(self.base / name, content.decode())

    def failure(self) -> str:
        with self.assertRaises(Failure) as caught:
            own_tree.complete(self.clone, self.base)
        return "\n".join([str(caught.exception), *caught.exception.hints])

    def test_a_tree_without_the_series_gets_all_of_it(self) -> None:
        found = own_tree.complete(self.clone, self.base)
        self.assertEqual(sorted(found), ["net/core.c", "rust/a.rs", "rust/a/deep.rs", "rust/b.rs"])

    def test_a_tree_with_the_series_is_left_as_it_is(self) -> None:
        self.apply_all()
        with mock.patch.object(own_tree, "say") as say:
            self.assertEqual(own_tree.complete(self.clone, self.base), {})
        self.assertIn("the tree has 3 of the 3 patches", say.call_args.args[0])

    def test_changes_to_its_files_are_built(self) -> None:
        self.apply_all()
        self.write(self.base / "rust/a.rs", "// mine\n")
        self.write(self.base / "net/core.c", "// mine\n" + (self.base / "net/core.c").read_text())
        self.assertEqual(own_tree.complete(self.clone, self.base), {})

    def test_a_hunk_that_was_changed_stays(self) -> None:
        self.apply_all()
        core = self.base / "net/core.c"
        core.write_text(core.read_text().replace("hook of a", "hook of mine"))
        self.assertEqual(own_tree.complete(self.clone, self.base), {})

    def test_what_is_missing_is_added(self) -> None:
        self.apply_all()
        (self.base / "rust/b.rs").unlink()
        core = self.base / "net/core.c"
        core.write_text(core.read_text().replace("fixed\n", ""))
        found = own_tree.complete(self.clone, self.base)
        self.assertEqual(sorted(found), ["net/core.c", "rust/b.rs"])
        text = (found["net/core.c"] or b"").decode()
        self.assertEqual((text.count("hook of a"), text.count("fixed")), (1, 1))

    def test_a_list_grows_with_what_it_lists(self) -> None:
        self.write(self.clone / "rust/a.rs", "mod deep;\nmod later;\n")
        self.write(self.clone / "rust/a/later.rs", "// later\n")
        self.write(self.clone / "patches/a.files", "rust/a.rs\nrust/a/deep.rs\n")
        self.write(self.clone / "patches/b.files", "rust/b.rs\nrust/a/later.rs\n")
        self.apply_all()
        self.write(self.base / "rust/a.rs", "mod deep;\n")
        for name in ("rust/b.rs", "rust/a/later.rs"):
            (self.base / name).unlink()
        found = own_tree.complete(self.clone, self.base)
        self.assertEqual(sorted(found), ["rust/a.rs", "rust/a/later.rs", "rust/b.rs"])
        self.assertEqual(found["rust/a.rs"], b"mod deep;\nmod later;\n")

    def test_a_topic_in_part_is_refused_by_name(self) -> None:
        self.apply_all()
        (self.base / "rust/a/deep.rs").unlink()
        text = self.failure()
        for part in ("topic a", "rust/a/deep.rs", "OVERLAY=0"):
            self.assertIn(part, text)

    def test_a_file_of_the_same_name_is_refused(self) -> None:
        self.write(self.base / "rust/b.rs", "// of another author\n")
        self.assertIn("rust/b.rs exists in the tree", self.failure())

    def test_a_file_of_no_topic_is_built(self) -> None:
        self.write(self.clone / "rust/new.rs", "// not listed yet\n")
        self.assertEqual(
            own_tree.complete(self.clone, self.base)["rust/new.rs"], b"// not listed yet\n"
        )
        self.write(self.base / "rust/new.rs", "// of another author\n")
        self.assertIn("rust/new.rs exists in the tree", self.failure())

    def test_a_patch_that_does_not_apply_is_named_with_the_place(self) -> None:
        self.write(self.base / "net/core.c", UPSTREAM.replace("line 19\n", "rewritten\n"))
        text = self.failure()
        for part in ("fix.patch does not apply", "net/core.c: hunk 1", "OVERLAY=0"):
            self.assertIn(part, text)
