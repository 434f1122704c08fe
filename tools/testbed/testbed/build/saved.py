# SPDX-License-Identifier: GPL-2.0
"""The compiler's commands that the kernel's build keeps in .cmd files."""

import re
import shlex
from itertools import takewhile
from pathlib import Path

_SAVED = re.compile(r"^savedcmd_\S+ := (?P<command>.*)$", re.M)


def words(saved: str) -> list[str]:
    """The words of the first command in a .cmd file; none if it has no command."""
    found = _SAVED.search(saved)
    if not found:
        return []
    # make writes '#' as '\#' or through a variable, and '$' doubled.
    text = found["command"].replace("$(pound)", "#").replace("\\#", "#").replace("$$", "$")
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";")
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(takewhile(lambda word: word != ";", lexer))


def c_command(saved: str) -> list[str]:
    """The compiler's command in a .cmd file without outputs, the source last; none if it is not one
    for C."""
    found = words(saved)
    if not (found and Path(found[0]).name.startswith("clang") and found[-1].endswith(".c")):
        return []
    place = found.index("-o")
    del found[place : place + 2]
    return [one for one in found if one != "-c" and not one.startswith("-Wp,-MMD")]
