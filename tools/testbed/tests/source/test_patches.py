# SPDX-License-Identifier: GPL-2.0
"""The series: topics, mails for git am, their sender, and refused mistakes."""

from __future__ import annotations

import re
import tempfile
import unittest
from pathlib import Path

from testbed.host.ui import Failure
from testbed.source import overlay
from testbed.source.patches import Written, insert_entry, steps, write_series
from testbed.source.patching import read_all
from testbed.source.topics import check, topics
from testbed.source.tree import version_of

CLONE = Path(__file__).resolve().parents[4]
# The limits of netdev for a series, and of a reviewer for a patch.
MOST_PATCHES, MOST_LINES = 15, 5000

UPSTREAM = "one\ntwo\nthree\nfour\nfive\n"
HEADER = "Subject: [PATCH] {}\n\nthe reason\n---\n"
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
LATER = """\
diff --git a/rust/a.rs b/rust/a.rs
--- a/rust/a.rs
+++ b/rust/a.rs
@@ -1,2 +1,3 @@
 fn a() {}
+mod b;
 // the end
"""
MAINTAINERS = """\
How to read this file

\tM: explained

ALPHA
M:\tA <a@a>

iBETA
M:\tB <b@b>

THE REST
M:\tL <l@l>
"""
JANE = "Jane Doe <jane@example.org>"


class SeriesTest(unittest.TestCase):
    def setUp(self) -> None:
        top = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.clone, self.base, self.out = top / "clone", top / "base", top / "out"
        for name, text in {
            "base/net/core.c": UPSTREAM,
            "base/MAINTAINERS": MAINTAINERS,
            "base/Makefile": "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION =\n",
            "clone/rust/a.rs": "fn a() {}\nmod b;\n// the end\n",
            "clone/rust/deep/b.rs": "fn b() {}\n",
            "clone/patches/series": "[first]\na.patch\n[second] after first\nb.patch\n",
            "clone/patches/a.patch": HEADER.format("a: first") + CHANGE,
            "clone/patches/a.files": "# the first\nrust/a.rs\n",
            "clone/patches/b.patch": HEADER.format("b: second") + LATER,
            "clone/patches/b.files": "rust/deep/*\n",
            "clone/patches/first.cover": "the first of all\n\nwhat and why\n",
            "clone/patches/first.maintainers": "BETA OURS\nS:\tMaintained\nF:\trust/a.rs\n",
            "clone/patches/second.cover": "the second\n\nmore\n",
        }.items():
            path = top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def write(self, author: str = "", only: str = "", commit: str = "") -> list[Written]:
        return write_series(self.clone, self.base, "7.3.4", self.out, author, only, commit)

    def texts(self) -> str:
        return "".join(path.read_text() for path in sorted(self.out.rglob("*.patch")))

    def test_files_go_with_their_topic(self) -> None:
        first, second = topics(self.clone)
        self.assertEqual((first.files, second.files), (("rust/a.rs",), ("rust/deep/b.rs",)))

    def test_each_series_is_a_folder_of_mails(self) -> None:
        first, second = self.write()
        self.assertEqual((first.folder.name, second.folder.name), ("01-first", "02-second"))
        names = [path.name for path in first.mails]
        self.assertEqual(names, ["0001-a-first.patch", "0002-MAINTAINERS-add-BETA-OURS.patch"])
        text = first.mails[0].read_text()
        for part in ("Subject: [PATCH 1/2] a: first", "\nthe reason\n", "+new line", "+fn a()"):
            self.assertIn(part, text)

    def test_nobody_signs_off_for_nobody(self) -> None:
        self.write()
        self.assertNotIn("Signed-off-by", self.texts())
        self.assertNotIn("M:\tskbulk", self.texts())
        self.assertIn("+S:\tOrphan", self.texts())

    def test_an_author_sends_signs_and_maintains(self) -> None:
        written = self.write(author=JANE)
        for mail in (path for one in written for path in one.mails):
            self.assertIn(f"From: {JANE}\n", mail.read_text())
            self.assertIn(f"\nSigned-off-by: {JANE}\n---\n", mail.read_text())
        self.assertIn(f"+M:\t{JANE}\n+S:\tMaintained\n", self.texts())

    def test_the_cover_letter(self) -> None:
        _, second = self.write(commit="0123456789abcdef")
        text = next(second.folder.glob("0000-*")).read_text()
        for part in ("Subject: [PATCH 0/1] the second\n", "\nmore\n", "series first.",
                     "Based on Linux 7.3.4.", "\nbase-commit: 0123456789abcdef\n"):  # fmt: skip
            self.assertIn(part, text)
        self.assertNotIn("HERE ***", text)

    def test_one_series_alone(self) -> None:
        written = self.write(only="second")
        self.assertEqual([one.series.name for one in written], ["second"])
        self.assertEqual([path.name for path in self.out.iterdir()], ["02-second"])
        with self.assertRaisesRegex(Failure, "SERIES=third: there is no such series"):
            self.write(only="third")

    def test_a_later_topic_may_change_a_new_file(self) -> None:
        states = [(topic.name, files) for topic, files in steps(self.clone, self.base)]
        self.assertEqual([name for name, _ in states], ["a", "b"])
        self.assertEqual(states[0][1]["rust/a.rs"], b"fn a() {}\n// the end\n")
        self.assertNotIn("rust/deep/b.rs", states[0][1])
        self.assertEqual(states[1][1], overlay.wanted_files(self.clone, self.base))

    def test_a_patch_that_left_its_new_file_behind_is_named(self) -> None:
        (self.clone / "rust/a.rs").write_text("rewritten\n")
        with self.assertRaises(Failure) as caught:
            self.write()
        self.assertIn("it is part of b.patch", caught.exception.hints)

    def test_entries_of_maintainers_keep_the_alphabet(self) -> None:
        for title, after in (("ALPHA B", "ALPHA"), ("BETA", "ALPHA"), ("ZETA", "iBETA")):
            blocks = insert_entry(MAINTAINERS, [title, "S:\tOrphan"]).split("\n\n")
            titles = [block.partition("\n")[0] for block in blocks]
            self.assertEqual(titles[titles.index(title) - 1], after)

    def test_a_mistake_in_the_lists_is_named(self) -> None:
        for file, text, wanted in (
            ("rust/c.rs", "fn c() {}\n", "belong to no topic: rust/c.rs"),
            ("patches/b.files", "rust/*\n", "more than one topic"),
            ("patches/b.files", "rust/deep/*\nrust/gone.rs\n", "no file: b.patch: rust/gone.rs"),
            ("patches/series", "[first] after second\na.patch\n[second]\n",
             "first needs second, which is not a series above"),
        ):  # fmt: skip
            self.setUp()
            (self.clone / file).write_text(text)
            with self.subTest(wanted), self.assertRaises(Failure) as caught:
                check(self.clone)
            self.assertIn(wanted, " ".join([str(caught.exception), *caught.exception.hints]))

    def test_a_series_without_cover_letter_is_refused(self) -> None:
        (self.clone / "patches/second.cover").unlink()
        with self.assertRaisesRegex(Failure, "second has no cover letter"):
            self.write()

    def test_versions_are_read(self) -> None:
        self.assertEqual(version_of(self.base), (7, 3, "7.3.4"))
        (self.base / "Makefile").write_text("all:\n")
        with self.assertRaisesRegex(Failure, "names no kernel version"):
            version_of(self.base)
        (self.base / "Makefile").unlink()
        with self.assertRaisesRegex(Failure, "no kernel tree"):
            version_of(self.base)


def added(text: str) -> int:
    """The number of lines that a patch adds."""
    return len(re.findall(r"^\+(?!\+\+)", text, re.M))


class OurSeriesTest(unittest.TestCase):
    """The series of this clone: sizes, cover letters, entries of MAINTAINERS."""

    def test_no_series_is_too_long(self) -> None:
        for series in read_all(CLONE / "patches"):
            entry = (CLONE / f"patches/{series.name}.maintainers").exists()
            self.assertLessEqual(len(series.patches) + entry, MOST_PATCHES, series.name)

    def test_no_patch_is_too_large(self) -> None:
        found = list(topics(CLONE))
        for topic in found:
            size = added(topic.patch.text)
            size += sum((CLONE / name).read_bytes().count(b"\n") for name in topic.files)
            # Lines that another patch adds to these files are not in this one.
            for section in re.split(r"^(?=diff --git a/)", "".join(
                other.patch.text for other in found if other is not topic
            ), flags=re.M):  # fmt: skip
                name = re.match(r"diff --git a/(\S+)", section)
                if name and name[1] in topic.files:
                    size -= added(section)
            self.assertLessEqual(size, MOST_LINES, topic.name)

    def test_each_has_a_cover_letter_and_no_sign_off(self) -> None:
        for series in read_all(CLONE / "patches"):
            text = (CLONE / f"patches/{series.name}.cover").read_text()
            subject, _, body = text.partition("\n\n")
            self.assertLess(len(subject), 76)
            self.assertGreater(len(body), 200, series.name)
            self.assertFalse([line for line in text.splitlines() if len(line) > 75], series.name)
            for patch in series.patches:
                self.assertNotIn("Signed-off-by", patch.text)
                self.assertTrue(patch.subject and patch.body, patch.path.name)

    def test_every_new_file_has_a_maintainer(self) -> None:
        entries = {path.stem: re.findall(r"^F:\t(.+)$", path.read_text(), re.M)
                   for path in (CLONE / "patches").glob("*.maintainers")}  # fmt: skip
        for topic in topics(CLONE):
            for name in topic.files:
                # Its subsystem has an entry already.
                if name.startswith("tools/testing/"):
                    continue
                patterns = entries.get(topic.series, [])
                # A folder, a file, or a pattern.
                covered = any(
                    name == one or (one[-1] in "/*" and name.startswith(one.rstrip("*")))
                    for one in patterns
                )
                self.assertTrue(covered, f"{name} is in no entry of {topic.series}.maintainers")
