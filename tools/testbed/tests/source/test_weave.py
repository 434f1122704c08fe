# SPDX-License-Identifier: GPL-2.0
"""A file with the changes of many topics: what it is with some of them."""

from __future__ import annotations

import pytest

from testbed.source.diff import Section, parse
from testbed.source.weave import Misfit, Weave

BASE = "".join(f"line {number}\n" for number in range(1, 10))


def change(text: str) -> Section:
    return parse(f"--- a/f\n+++ b/f\n{text}")[0]


ADD = change("@@ -3,2 +3,3 @@\n line 3\n+of add\n line 4\n")
# Its context is a line of the first.
BESIDE = change("@@ -3,3 +3,4 @@\n line 3\n of add\n+of beside\n line 4\n")
REPLACE = change("@@ -7,3 +9,3 @@\n line 7\n-line 8\n+line eight\n line 9\n")


def woven(*changes: tuple[Section, str]) -> Weave:
    file = Weave(BASE)
    for section, topic in changes:
        file.apply(section, topic)
    return file


def test_each_topic_is_there_without_those_beside_it() -> None:
    file = woven((ADD, "add"), (BESIDE, "beside"), (REPLACE, "replace"))
    assert file.content([]) == BASE
    assert file.content(["beside"]) == BASE.replace("line 3\n", "line 3\nof beside\n")
    assert file.content(["replace"]) == BASE.replace("line 8", "line eight")
    both = BASE.replace("line 3\n", "line 3\nof add\nof beside\n").replace("line 8", "line eight")
    assert file.content() == file.content(["add", "beside", "replace"]) == both
    assert not file.rewrites


def test_a_line_of_another_topic_that_is_changed_is_noted() -> None:
    file = woven((ADD, "add"), (change("@@ -4 +4 @@\n-of add\n+of two\n"), "two"))
    assert file.rewrites == {("two", "add")}
    assert file.content(["add"]) == BASE.replace("line 3\n", "line 3\nof add\n")
    assert file.content() == BASE.replace("line 3\n", "line 3\nof two\n")


def test_hunks_are_found_near_their_place() -> None:
    """Earlier topics move them; where there are two places, the nearer one is meant."""
    twice = Weave("a\nb\n" * 20)
    twice.apply(change("@@ -31,2 +31,3 @@\n a\n+c\n b\n"), "t")
    assert twice.content() == "a\nb\n" * 15 + "a\nc\nb\n" + "a\nb\n" * 4
    moved = woven((change("@@ -30,2 +30,3 @@\n line 3\n+c\n line 4\n"), "t"))
    assert "line 3\nc\nline 4\n" in (moved.content() or "")


def test_lines_may_be_added_without_context() -> None:
    assert woven((change("@@ -0,0 +1 @@\n+first\n"), "t")).content() == f"first\n{BASE}"
    assert woven((change("@@ -9,0 +10 @@\n+last\n"), "t")).content() == f"{BASE}last\n"


def test_there_is_no_fuzz() -> None:
    with pytest.raises(Misfit, match=r"f: hunk 1 \(at line 3\) does not fit"):
        woven((change("@@ -3,3 +3,4 @@\n line 3\n+c\n line 4\n line five\n"), "t"))


def test_a_last_line_may_lack_its_end() -> None:
    file = Weave("a\nb")
    file.apply(change("@@ -2 +2 @@\n-b\n\\ No newline at end of file\n+b\n"), "t")
    assert file.content() == "a\nb\n"
