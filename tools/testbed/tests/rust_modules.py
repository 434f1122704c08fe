# SPDX-License-Identifier: GPL-2.0
"""The modules of a crate or a part of it, and which of them name items of which."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

Name = tuple[str, ...]
_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', re.S)
_USE = re.compile(r"(pub(?:\([^)]*\))? )?\buse ([^;]+);")
_PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")
_TESTS = re.compile(r"(?:.*_)?tests?(?:\.rs)?")


class Modules:
    """Those of a folder below the root of a crate, or of "." there; tests are left out."""

    def __init__(self, root: Path, folder: str) -> None:
        files = [root / f"{folder}.rs", *sorted((root / folder).rglob("*.rs"))]
        self._texts = {
            _module(path.relative_to(root)): _COMMENT.sub("", path.read_text())
            for path in files
            if path.exists() and not any(map(_TESTS.fullmatch, path.relative_to(root).parts))
        }
        self._shown = {
            (*module, found[-1]): found
            for module, text in self._texts.items()
            for use in _USE.finditer(text)
            if use[1]
            for found in (self._absolute(module, leaf) for leaf in _leaves(use[2]))
            if found
        }

    def imports(self) -> dict[Name, set[Name]]:
        """By module: those whose items it names, other than what it is inside of or is in it."""
        named = {module: set(map(self._home, self._paths(module))) for module in self._texts}
        return {
            module: {one for one in ones if one and not _nested(one, module)}
            for module, ones in named.items()
        }

    def _paths(self, module: Name) -> Iterator[Name]:
        text = self._texts[module]
        used = [leaf for use in _USE.finditer(text) for leaf in _leaves(use[2])]
        for path in [*used, *_PATH.findall(_USE.sub("", text))]:
            if found := self._absolute(module, path):
                yield found

    def _absolute(self, module: Name, path: str) -> Name:
        """A path below the root of the crate; empty if it is none of it."""
        first, *rest = [word for word in path.split("::") if word != "*"]
        if first == "crate":
            return (*rest,)
        if (*module, first) in self._texts:
            return (*module, first, *rest)
        if first not in ("self", "super"):
            return ()
        above = module[: len(module) - [first, *rest].count("super")]
        return (*above, *(word for word in rest if word not in ("self", "super")))

    def _home(self, path: Name) -> Name:
        """The module that has what a path names, wherever it is shown."""
        for length in range(len(path), 0, -1):
            if path[:length] in self._texts:
                shown = self._shown.get(path[: length + 1])
                return self._home(shown + path[length + 1 :]) if shown else path[:length]
        return ()


def _module(path: Path) -> Name:
    return path.parent.parts if path.name == "mod.rs" else path.with_suffix("").parts


def _nested(one: Name, other: Name) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _leaves(tree: str) -> Iterator[str]:
    """The paths of a use tree."""
    heads, path = [""], ""
    for word in re.findall(r"[{},]|[^{},]+", re.sub(r"\s+as\s+\w+|\s", "", tree) + ","):
        if word not in "{},":
            path = heads[-1] + word
            continue
        if word == "{":
            heads.append(path)
        elif path:
            yield path
        if word == "}":
            heads.pop()
        path = ""
