# SPDX-License-Identifier: GPL-2.0
"""Commands in .cmd files are read as make has run them."""

from __future__ import annotations

import pytest

from testbed.build import saved


@pytest.mark.parametrize(
    ("command", "words"),
    [
        # The commands that follow are those of other tools.
        ("cc -o x.o x.c ; objtool x.o", ["cc", "-o", "x.o", "x.c"]),
        # Quotes of the shell, and the spellings of '#' and '$'.
        ("cc -DNAME='\"x y\"' '\\#a' $(pound)b $$c", ["cc", '-DNAME="x y"', "#a", "#b", "$c"]),
    ],
)
def test_the_first_command_in_words(command: str, words: list[str]) -> None:
    assert saved.words(f"savedcmd_x.o := {command}\n\nsource_x.o := x.c\n") == words


def test_a_file_without_a_command_has_no_words() -> None:
    assert saved.words("source_x.o := x.c\n") == []
