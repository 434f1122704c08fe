# SPDX-License-Identifier: GPL-2.0
"""The series: topics, mails for git am, their sender, and refused mistakes."""

from __future__ import annotations

import email.utils
import json
import random
import re
import shutil
import tempfile
import unittest
from email import message_from_string
from pathlib import Path
from typing import Any

from testbed.bench import record
from testbed.host.ui import Failure
from testbed.source import overlay
from testbed.source.figures import WIDTH, Figures
from testbed.source.maintainers import Listing, matches
from testbed.source.patches import MOST_PATCHES, Sender, Written, write_series
from testbed.source.patching import read_all, read_series
from testbed.source.states import States
from testbed.source.topics import check, topics
from testbed.source.tree import version_of

CLONE = Path(__file__).resolve().parents[4]
# The limits of a reviewer, in lines that are added: for a series, unless it cannot be split, and
# for the first one that has network devices in Rust, with its patches.
MOST_LINES = 3000
LARGER = {"qmempool": 3700}
FIRST, FIRST_PATCHES, FIRST_LINES, FIRST_PATCH_LINES = "rust-netdev", 12, 2100, 400
WHEN = 1_790_000_000

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
BESIDE = """\
diff --git a/net/core.c b/net/core.c
--- a/net/core.c
+++ b/net/core.c
@@ -2,5 +2,6 @@
 two
 three
 new line
+beside it
 four
 five
"""
MAINTAINERS = """\
How to read this file

\tM: explained

ALPHA
M:\tA <a@a>
F:\trust/a/

iBETA
M:\tB <b@b>

THE REST
M:\tL <l@l>
"""
JANE = "Jane Doe <jane@example.org>"
RECORD = {
    "date": "2026-11-27", "commit": "5a11cee", "cpu": "Intel(R) Xeon(R)", "processors": 2,
    "kernel": "7.3.4", "rounds": 7, "all": {"pps": 623574, "seconds": 1.604},
    "rows": [{"bench": "t-cost", "case": "1 flow", "unit": "ns", "ours": 329.88,
              "reference": 7.0, "ratio": 2.36, "ratio_min": 2.24, "ratio_max": 2.48},
             {"bench": "t-cost", "case": "2 flows", "unit": "ns", "ours": 15.06,
              "reference": None, "ratio": None, "ratio_min": None, "ratio_max": None}],
}  # fmt: skip


class SeriesTest(unittest.TestCase):
    def setUp(self) -> None:
        top = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.clone, self.base, self.out = top / "clone", top / "base", top / "out"
        for name, text in {
            "base/net/core.c": UPSTREAM,
            "base/MAINTAINERS": MAINTAINERS,
            "base/Makefile": "VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\nEXTRAVERSION =\n",
            "clone/rust/a.rs": "fn a() {}\nmod b;\n// the end\n",
            "clone/rust/a/b.rs": "fn b() {}\n",
            "clone/patches/series": "[first]\na.patch\n[second] after first\nb.patch\n",
            "clone/patches/a.patch": HEADER.format("a: first") + CHANGE,
            "clone/patches/a.files": "# the first\nrust/a.rs\n",
            "clone/patches/b.patch": HEADER.format("b: second"),
            "clone/patches/b.files": "rust/a/*\n",
            "clone/patches/first.cover": "the first of all\n\nwhat and why\n",
            "clone/patches/first.maintainers": "BETA OURS\nS:\tMaintained\nF:\trust/a.rs\n",
            "clone/patches/second.cover": "the second\n\nmore\n",
        }.items():
            path = top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def write(self, author: str = "", only: str = "", **more: Any) -> list[Written]:
        sender = Sender(author, when=WHEN, **more)
        return write_series(self.clone, self.base, "7.3.4", self.out, sender, only)

    def texts(self) -> str:
        return "".join(path.read_text() for path in sorted(self.out.rglob("*.patch")))

    def test_files_go_with_their_topic(self) -> None:
        first, second = topics(self.clone)
        self.assertEqual((first.files, second.files), (("rust/a.rs",), ("rust/a/b.rs",)))

    def test_each_series_is_a_folder_of_mails(self) -> None:
        first, second = self.write()
        self.assertEqual((first.folder.name, second.folder.name), ("01-first", "02-second"))
        names = [path.name for path in first.mails]
        self.assertEqual(names, ["0001-a-first.patch"])
        text = first.mails[0].read_text()
        for part in ("Subject: [PATCH 1/1] a: first", "\nthe reason\n", "+new line", "+fn a()"):
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
        _, second = self.write(base_commit="0123456789abcdef")
        text = next(second.folder.glob("0000-*")).read_text()
        for part in ("Subject: [PATCH 0/1] the second\n", "\nmore\n", "series first.",
                     "Based on Linux 7.3.4.", "\nbase-commit: 0123456789abcdef\n"):  # fmt: skip
            self.assertIn(part, text)
        self.assertNotIn("HERE ***", text)

    def test_subjects_name_the_tree(self) -> None:
        listing = "[first] for net-next\na.patch\n[second] after first\nb.patch\n"
        (self.clone / "patches/series").write_text(listing)
        first, second = self.write()
        for path in first.folder.iterdir():
            self.assertIn("\nSubject: [PATCH net-next ", path.read_text())
        self.assertIn("\nSubject: [PATCH 1/1] b", second.mails[0].read_text())

    def test_the_second_posting_is_version_2(self) -> None:
        listing = "[first] for net-next\na.patch\n[second] after first\nb.patch\n"
        (self.clone / "patches/series").write_text(listing)
        self.write(version=2)
        for subject in ("[PATCH net-next v2 0/1]", "[PATCH net-next v2 1/1]", "[PATCH v2 1/1]"):
            self.assertIn(f"\nSubject: {subject} ", self.texts())

    def test_mails_are_dated_a_second_apart(self) -> None:
        (self.clone / "patches/series").write_text("[first]\na.patch\nb.patch\n")
        folder = self.write()[0].folder
        dates = [message_from_string(path.read_text())["Date"] for path in sorted(folder.iterdir())]
        times = [email.utils.parsedate_to_datetime(date).timestamp() for date in dates]
        self.assertEqual(times, [WHEN, WHEN + 1, WHEN + 2])

    def test_a_sign_off_joins_the_tags_of_a_message(self) -> None:
        fixes = 'Fixes: 0123456789ab ("x")'
        text = HEADER.format("a").replace("the reason", f"the reason\n\n{fixes}")
        (self.clone / "patches/a.patch").write_text(text + CHANGE)
        (mail,) = self.write(JANE, only="first")[0].mails
        self.assertIn(f"\n\n{fixes}\nSigned-off-by: {JANE}\n---\n", mail.read_text())

    def put_record(self) -> None:
        folder = self.clone / record.FOLDER
        folder.mkdir(parents=True)
        (folder / "t.json").write_text(json.dumps(RECORD))

    def test_figures_come_from_the_records(self) -> None:
        self.put_record()
        for place, wanted in (
            ("t / t-cost / 1 flow / ours", "330 ns"),
            ("t / t-cost / 1 flow / ours : .1f", "329.9"),
            ("t / t-cost\n/ 1 flow / reference:6.1f", "   7.0"),
            ("t / t-cost / 1 flow / ratio", "2.36"),
            ("t / t-cost / 1 flow / spread", "2.24 to 2.48"),
            ("t / t-cost / 2 flows / ours", "15.1 ns"),
            ("t / all / pps", "623,574"),
            ("t / all / seconds", "1.60"),
            ("t / conditions", "Linux 7.3.4, 2 processors of Intel Xeon, 2026-11-27"),
        ):
            text = f"x\n\n  {{{place}}}\n"
            self.assertEqual(Figures(self.clone).fill(text, "a.patch"), f"x\n\n  {wanted}\n")

    def test_a_text_with_figures_is_wrapped_anew(self) -> None:
        self.put_record()
        (self.clone / "patches/first.cover").write_text(
            "the first\n\nIt takes {t / t-cost / 1 flow / ours} and\n{t / t-cost\n/ 2 flows / ours}"
            "\nfor struct a { int b; }.\n\nThis stays\nas it is.\n")  # fmt: skip
        text = HEADER.format("a").replace("reason", "{t / t-cost / 1 flow / ratio}")
        (self.clone / "patches/a.patch").write_text(text + CHANGE)
        self.write(only="first")
        self.assertIn("\nIt takes 330 ns and 15.1 ns for struct a { int b; }.\n\n"
                      "This stays\nas it is.\n", self.texts())  # fmt: skip
        self.assertIn("\nthe 2.36\n", self.texts())

    def test_a_figure_that_no_record_has_is_refused(self) -> None:
        self.put_record()
        for place, wanted in (
            ("t / t-cost / 1 flwo / ours", "1 flwo"),
            ("t / t-cost / 2 flows / ratio", "None"),
            ("u / x", "KeyError('u')"),
            ("t / all", "dict"),
        ):
            with self.subTest(place), self.assertRaises(Failure) as caught:
                Figures(self.clone).fill(f"It takes {{{place}}}.", "a.patch")
            said = str(caught.exception)
            self.assertIn(f"a.patch: {{{place}}} is in no record", said)
            self.assertIn(wanted, said)

    def test_one_series_alone(self) -> None:
        written = self.write(only="second")
        self.assertEqual([one.series.name for one in written], ["second"])
        self.assertEqual([path.name for path in self.out.iterdir()], ["02-second"])
        with self.assertRaisesRegex(Failure, "SERIES=third: there is no such series"):
            self.write(only="third")

    def test_a_list_grows_with_what_it_lists(self) -> None:
        states = States(self.clone, self.base)
        (_, none), (_, first) = states.steps("first")
        self.assertEqual((none, first["rust/a.rs"]), ({}, b"fn a() {}\n// the end\n"))
        *_, (_, second) = states.steps("second")
        self.assertEqual(second.pop("MAINTAINERS"), first["MAINTAINERS"])
        self.assertEqual(second, overlay.wanted_files(self.clone, self.base))

    def test_an_edited_file_of_ours_does_no_harm(self) -> None:
        (self.clone / "rust/a.rs").write_text("// rewritten\nmod b;\n")
        self.write()
        self.assertIn("+// rewritten", self.texts())

    def test_a_series_has_nothing_of_those_beside_it(self) -> None:
        """Both change one place; the second applies without the first."""
        (self.clone / "patches/series").write_text("[first]\na.patch\n[second]\nb.patch\n")
        (self.clone / "patches/b.patch").write_text(HEADER.format("b: second") + BESIDE)
        _, second = self.write()
        text = second.mails[0].read_text()
        self.assertIn("+beside it\n four\n", text)
        self.assertNotIn("new line", text)
        self.assertNotIn("series first", next(second.folder.glob("0000-*")).read_text())

    def test_lines_of_a_series_beside_it_may_not_change(self) -> None:
        (self.clone / "patches/series").write_text("[first]\na.patch\n[second]\nb.patch\n")
        change = BESIDE.replace(" new line", "-new line").replace("+2,6", "+2,5")
        (self.clone / "patches/b.patch").write_text(HEADER.format("b: second") + change)
        with self.assertRaisesRegex(Failure, "b changes lines of a in net/core.c"):
            self.write()

    def test_the_entry_of_maintainers_grows_with_the_files(self) -> None:
        (self.clone / "patches/series").write_text("[first]\na.patch\nb.patch\n")
        entry = self.clone / "patches/first.maintainers"
        entry.write_text(entry.read_text() + "F:\trust/a/\n")
        a, b = [path.read_text() for path in self.write()[0].mails]
        self.assertIn("+BETA OURS\n+S:\tOrphan\n+F:\trust/a.rs\n", a)
        self.assertNotIn("+F:\trust/a/\n", a)
        self.assertIn(" F:\trust/a.rs\n+F:\trust/a/\n", b)

    def test_a_series_may_be_in_the_entry_of_one_below(self) -> None:
        entry = self.clone / "patches/first.maintainers"
        entry.write_text(entry.read_text() + "F:\trust/a/\n")
        first, second = [one.mails[0].read_text() for one in self.write()]
        self.assertNotIn("+F:\trust/a/\n", first)
        self.assertIn(" F:\trust/a.rs\n+F:\trust/a/\n", second)
        (self.clone / "patches/series").write_text("[first]\na.patch\n[second]\nb.patch\n")
        with self.assertRaisesRegex(Failure, "no file of the series first is rust/a/"):
            self.write()

    def test_an_entry_of_a_missing_file_is_refused(self) -> None:
        (self.clone / "patches/first.maintainers").write_text("BETA OURS\nF:\trust/gone.rs\n")
        with self.assertRaisesRegex(Failure, "no file of the series first is rust/gone.rs"):
            self.write()

    def test_patterns_are_those_of_get_maintainer(self) -> None:
        for pattern, file, wanted in (("a/", "a/b/c", True), ("a/b", "a/b", True),
                                      ("a/b*", "a/bc.rs", True), ("a/b*", "a/b/c.rs", False),
                                      ("a/b.rs", "a/bxrs", False)):  # fmt: skip
            self.assertEqual(matches(pattern, file), wanted, (pattern, file))

    def test_entries_of_maintainers_keep_the_alphabet(self) -> None:
        for title, after in (("ALPHA B", "ALPHA"), ("BETA", "ALPHA"), ("ZETA", "iBETA")):
            blocks = Listing(MAINTAINERS).with_entries([[title, "S:\tOrphan"]]).split("\n\n")
            titles = [block.partition("\n")[0] for block in blocks]
            self.assertEqual(titles[titles.index(title) - 1], after)

    def test_an_entry_out_of_order_does_not_matter(self) -> None:
        text = "Read this\n\n" + "".join(f"{one}\nM:\tX\n\n" for one in ("AZ", "YA", "B", "D", "E"))
        titles = re.findall(r"^\w+$", Listing(text).with_entries([["C", "M:\tX"]]), re.M)
        self.assertEqual(titles, ["AZ", "YA", "B", "C", "D", "E"])

    def test_a_mistake_in_the_lists_is_named(self) -> None:
        for file, text, wanted in (
            ("rust/c.rs", "fn c() {}\n", "belong to no topic: rust/c.rs"),
            ("patches/b.files", "rust/*\n", "more than one topic"),
            ("patches/b.files", "rust/a/*\nrust/gone.rs\n", "no file: b.patch: rust/gone.rs"),
            ("patches/series", "[first] after second\na.patch\n[second]\n",
             "first needs second, which is not a series above"),
            ("patches/b.patch", HEADER.format("b") + "--- a/rust/a.rs\n+++ b/rust/a.rs\n",
             "files of the clone itself: b.patch: rust/a.rs"),
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


def added(text: str) -> int:
    """The number of lines that a patch adds."""
    return len(re.findall(r"^\+(?!\+\+)", text, re.M))


class OurSeriesTest(unittest.TestCase):
    """The series of this clone: sizes, cover letters, entries of MAINTAINERS."""

    def test_no_series_is_too_long(self) -> None:
        for series in read_all(CLONE / "patches"):
            self.assertLessEqual(len(series.patches), MOST_PATCHES, series.name)

    def test_every_figure_is_in_the_records(self) -> None:
        figures = Figures(CLONE)
        for patch in read_series(CLONE / "patches"):
            text = figures.fill(patch.body, patch.path.name)
            long = [line for line in text.splitlines() if len(line) > WIDTH]
            self.assertFalse(long, patch.path.name)
            self.assertNotRegex(text, r"\{[\w-]+ /")
        for path in (CLONE / "patches").glob("*.cover"):
            figures.fill(path.read_text(), path.name)

    def test_no_series_is_too_large(self) -> None:
        sizes = {series.name: 0 for series in read_all(CLONE / "patches")}
        for topic in topics(CLONE):
            sizes[topic.series] += added(topic.patch.text)
            sizes[topic.series] += sum((CLONE / name).read_bytes().count(b"\n")
                                       for name in topic.files)  # fmt: skip
        for name, size in sizes.items():
            # The lists of modules in the first one grow.
            if name != FIRST:
                self.assertLessEqual(size, LARGER.get(name, MOST_LINES), name)

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
        needs = {series.name: series.needs for series in read_all(CLONE / "patches")}
        for topic in topics(CLONE):
            below = [topic.series]
            for series in below:
                below += [one for one in needs[series] if one not in below]
            for name in topic.files:
                # Its subsystem has an entry already.
                if name.startswith("tools/testing/"):
                    continue
                covered = any(matches(one, name) for series in below
                              for one in entries.get(series, []))  # fmt: skip
                self.assertTrue(covered, f"{name} is in no entry of {', '.join(below)}")


class EditedCommentsTest(unittest.TestCase):
    """Comments of our files change, and no patch has to be touched."""

    FOLDER, SERIES = "rust/kernel/net/", "rust-net-ethtool"

    def setUp(self) -> None:
        top = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.clone, self.base, self.out = top / "clone", top / "base", top / "out"
        for name in ("patches", str(record.FOLDER), *overlay.KERNEL_FOLDERS):
            shutil.copytree(CLONE / name, self.clone / name,
                            ignore=shutil.ignore_patterns("target", "__pycache__"))  # fmt: skip
        self.upstream()

    def upstream(self) -> None:
        """As much of a kernel as the patches need: the lines around each of their changes."""
        self.base.mkdir()
        titles = [path.read_text().partition("\n")[0]
                  for path in (CLONE / "patches").glob("*.maintainers")]  # fmt: skip
        # An entry behind each of ours, so that these have lines of context of their own.
        entries = [f"{title} (UPSTREAM)\nM:\tA <a@a>\nS:\tMaintained\nF:\ttools/testing/\n"
                   for title in sorted(titles)]  # fmt: skip
        (self.base / "MAINTAINERS").write_text("\n".join(["Read this\n", *entries]))
        for patch in read_series(CLONE / "patches"):
            for section in patch.sections:
                path = self.base / section.name
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("a") as file:
                    for hunk in section.hunks:
                        # As much between them as the context of a change.
                        between = [f"{patch.name} {hunk.start} {line}\n" for line in range(6)]
                        file.writelines([*hunk.old, *between])

    def edit(self, seed: int) -> list[str]:
        """Change a word in a comment of ten files."""
        choice = random.Random(seed)
        comment = re.compile(r"^( *//.*\b)[a-z]{3,}\b", re.M)
        names = [name for topic in topics(self.clone) if topic.series == self.SERIES
                 for name in topic.files if name.startswith(self.FOLDER)
                 and comment.search((self.clone / name).read_text())]  # fmt: skip
        chosen = choice.sample(names, 10)
        for name in chosen:
            path = self.clone / name
            text = path.read_text()
            found = choice.choice([*comment.finditer(text)])
            path.write_text(f"{text[: found.start()]}{found[1]}retouched{text[found.end() :]}")
        return chosen

    def write(self) -> str:
        """The mails of the series that has the folder."""
        written = write_series(self.clone, self.base, "7.3", self.out, only=self.SERIES)
        return "".join(path.read_text() for one in written for path in one.mails)

    def test_ten_edited_comments_leave_the_series_whole(self) -> None:
        self.edit(seed=1)
        self.assertEqual(len(re.findall(r"^\+ *//.*\bretouched\b", self.write(), re.M)), 10)

    def test_the_first_series_is_small(self) -> None:
        (first,) = write_series(self.clone, self.base, "7.3", self.out, only=FIRST)
        sizes = [added(path.read_text()) for path in first.mails]
        self.assertLessEqual(len(sizes), FIRST_PATCHES)
        self.assertLessEqual(sum(sizes), FIRST_LINES)
        self.assertLessEqual(max(sizes), FIRST_PATCH_LINES, first.mails[sizes.index(max(sizes))])
        text = "".join(path.read_text() for path in first.mails)
        for later in ("Rtnl", "OpsLocked", "Poll", "TxPath", "Doorbell", "Opening"):
            self.assertNotRegex(text, rf"(?m)^\+.*\b{later}\b")

    def test_a_diff_of_such_a_file_would_be_refused(self) -> None:
        name = self.edit(seed=2)[0]
        patch = self.clone / "patches/rust-net-features.patch"
        line = (self.clone / name).read_text().partition("\n")[0]
        diff = f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-{line}\n+{line}.\n"
        patch.write_text(patch.read_text() + diff)
        with self.assertRaisesRegex(Failure, "change files of the clone itself"):
            self.write()
