# SPDX-License-Identifier: GPL-2.0
"""The series: topics, mails that git am takes, and what is refused."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from testbed.patches import topics, write_series
from testbed.tree import version_of
from testbed.ui import Failure

UPSTREAM = "one\ntwo\nthree\nfour\nfive\n"
HEADER = (
    "From: A <a@localhost>\nSubject: [PATCH] {}\n\ntext\n\nSigned-off-by: A <a@localhost>\n---\n"
)
CHANGE = """\
diff --git a/net/core.c b/net/core.c
--- a/net/core.c
+++ b/net/core.c
@@ -1,5 +1,6 @@
 one
 two
 three
+new line
 four
 five
"""


class PatchesTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        top = Path(folder.name)
        self.clone, self.base, self.out = top / "clone", top / "base", top / "out"
        for name, text in {
            "base/net/core.c": UPSTREAM,
            "base/Makefile": "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION =\n",
            "clone/rust/a.rs": "fn a() {}\n",
            "clone/rust/deep/b.rs": "fn b() {}\n",
            "clone/patches/series": "0001-a.patch\n0002-b.patch\n",
            "clone/patches/0001-a.patch": HEADER.format("a: first") + CHANGE,
            "clone/patches/0001-a.files": "# the first\nrust/a.rs\n",
            "clone/patches/0002-b.patch": HEADER.format("b: second"),
            "clone/patches/0002-b.files": "rust/deep/*\n",
        }.items():
            path = top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def test_files_go_with_their_topic(self) -> None:
        first, second = topics(self.clone)
        self.assertEqual((first.files, second.files), (("rust/a.rs",), ("rust/deep/b.rs",)))

    def test_the_mails_make_what_the_overlay_makes(self) -> None:
        mails = write_series(self.clone, self.base, "7.3.4", self.out)
        self.assertEqual(mails, ["0001-a-first.patch", "0002-b-second.patch"])
        text = (self.out / mails[0]).read_text()
        for part in ("Subject: [PATCH 1/2] a: first", "Signed-off-by: A", "+new line", "+fn a()"):
            self.assertIn(part, text)

    def test_a_file_without_topic_is_named(self) -> None:
        (self.clone / "rust/c.rs").write_text("fn c() {}\n")
        with self.assertRaises(Failure) as caught:
            topics(self.clone)
        self.assertIn("rust/c.rs", caught.exception.hints)

    def test_a_file_of_two_topics_is_named(self) -> None:
        (self.clone / "patches/0002-b.files").write_text("rust/*\n")
        with self.assertRaisesRegex(Failure, "more than one topic"):
            topics(self.clone)

    def test_a_line_without_file_is_named(self) -> None:
        (self.clone / "patches/0002-b.files").write_text("rust/deep/*\nrust/gone.rs\n")
        with self.assertRaises(Failure) as caught:
            topics(self.clone)
        self.assertIn("0002-b.patch: rust/gone.rs", caught.exception.hints)

    def test_versions_are_read(self) -> None:
        self.assertEqual(version_of(self.base), (7, 3, "7.3.4"))
        (self.base / "Makefile").write_text("all:\n")
        with self.assertRaisesRegex(Failure, "names no kernel version"):
            version_of(self.base)
        (self.base / "Makefile").unlink()
        with self.assertRaisesRegex(Failure, "no kernel tree"):
            version_of(self.base)


if __name__ == "__main__":
    unittest.main()
