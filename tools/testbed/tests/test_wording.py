# SPDX-License-Identifier: GPL-2.0
"""The wording of comments, messages and documents: plain English, nouns as subjects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CLONE = Path(__file__).parents[3]
# Of record/checks: names of tests, this file's examples among them.
SKIPPED_FOLDERS = {".git", "out", "target", "corpus", "checks"}
# Texts of other authors, and this file with its examples.
SKIPPED_FILES = {"LICENSE", "Cargo.lock", Path(__file__).name}
# Archaic words; a pronoun at the beginning of a comment, a docstring or a heading, as in "What a
# module calls": "Calls of a module" has a noun.
BANNED = re.compile(
    r"\b(?:[Ss]hall|[Ff]or ever|[Ss]omebody)\b"
    r'|(?:^[ \t]*(?:#+|//[/!]?|/?\*+)|""")\s*(?:What|Who)\b'
    r"|^(?:What|Who)\b.*\n([=~^-])\1+$",
    re.M,
)


def own_text(path: Path) -> str:
    """A file without text of other authors: of a patch, its message and its added lines."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".patch":
        message, _, diff = text.partition("\n---\n")
        text = "\n".join([message, *re.findall(r"^\+(?!\+\+ )(.*)", diff, re.M)])
    return text


def documents() -> Iterator[Path]:
    """All text files of the clone."""
    for path in sorted(CLONE.rglob("*")):
        skipped = SKIPPED_FOLDERS & {*path.relative_to(CLONE).parts} or path.name in SKIPPED_FILES
        if not skipped and path.is_file() and not path.is_symlink():
            yield path


def test_the_wording_is_plain() -> None:
    found = [
        f"{path.relative_to(CLONE)}: {match[0].strip()}"
        for path in documents()
        for match in BANNED.finditer(own_text(path))
    ]
    assert not found, "\n".join(["name the subject by a noun of the field:", *found])


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ('    """What a module calls."""', True),
        ('    """\n    Who sends."""', True),
        ("# What comes next.", True),
        ("\t/* Who has the lock. */", True),
        ("    /// What `init` returns.", True),
        ("What it does\n============", True),
        ("The caller shall hold the lock.", True),
        ("It waits for ever.", True),
        ("Somebody else has the lock.", True),
        ("# Whatever the guest writes.", False),
        ("marshalled, for every port", False),
        ("What is it?", False),
    ],
)
def test_banned_words_are_found(text: str, bad: bool) -> None:
    assert bool(BANNED.search(text)) == bad
