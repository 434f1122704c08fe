# SPDX-License-Identifier: GPL-2.0
"""Memory orderings in the kernel's sources, and mutants in which one of them is weaker."""

import re
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

# The crate that compiles the kernel's files, and where it has them.
CRATE = "loom"
_PACKAGE = "kernel-loom"
# Of a copy, so that cargo does not take it for the one in the clone.
COPIED_PACKAGE = f"{_PACKAGE}-mutant"
_SOURCES = "src/kernel"
# One step weaker.
_WEAKER = {"Acquire": ["Relaxed"], "Release": ["Relaxed"], "Full": ["Acquire", "Release"]}
# Not the error of a queue, which is called Full, too.
_ORDERING = re.compile(r"(?<!Err)[(,]\s*(Acquire|Release|Full)\)")
_TYPE = re.compile(r"^impl\b.*\b(\w+) \{$")
_FUNCTION = re.compile(r"\bfn (\w+)")
_MODULE = re.compile(r"\bmod (\w+);")

# The tests that a file's mutants have to fail: the files' folder, and the tests' modules.
TESTS = {
    "alf_queue": ["tests", "shared_tests"],
    "combiner": ["combiner_tests"],
    "llist": ["llist_tests"],
    "skbuff": ["skbuff_tests"],
}

# Mutants that pass, and why that is right.
EQUIVALENT = {
    "combiner/word.rs RoleWord::exchange: Full -> Acquire": (
        "nothing that the model checker watches is handed on by the exchange: giving up the role "
        "by it protects nothing (COMBINER+last+next+early.litmus). The full barrier orders what "
        "the combiner does afterwards against senders that rely on it: COMBINER+wake+take.litmus, "
        "and COMBINER+wake+take+acquire.litmus shows that an acquire is too weak for that"
    )
}


@dataclass(frozen=True)
class Mutant:
    """One ordering of a file that is weaker."""

    file: str
    line: int
    function: str
    old: str
    new: str

    @property
    def name(self) -> str:
        """Its name, which does not depend on what else is in the file."""
        return f"{self.file} {self.function}: {self.old} -> {self.new}"

    @property
    def modules(self) -> list[str]:
        """The modules of the tests to run."""
        return TESTS[self.file.split("/")[0]]

    def applied(self, text: str) -> str:
        """The text of the file with the weaker ordering."""
        lines = text.splitlines(keepends=True)
        place = lines[self.line]
        lines[self.line] = re.sub(rf"\b{self.old}\)", f"{self.new})", place, count=1)
        if not re.search(rf"\b{self.new}\b", text):
            lines.append(f"\nuse crate::sync::atomic::{self.new};\n")
        return "".join(lines)


def mutants_of(file: str, text: str) -> Iterator[Mutant]:
    """All of a file."""
    of, function = "", ""
    for number, line in enumerate(text.splitlines()):
        if line.lstrip().startswith("//"):
            continue
        if found := _TYPE.search(line):
            of = found[1]
        if found := _FUNCTION.search(line):
            function = f"{of}::{found[1]}"
        for ordering in _ORDERING.findall(line):
            for weaker in _WEAKER[ordering]:
                yield Mutant(file, number, function, ordering, weaker)


def mutants(tools: Path) -> list[Mutant]:
    """All of the files that the crate shares with the kernel."""
    sources = tools / CRATE / _SOURCES
    return [
        one
        for folder in sorted(path for path in sources.iterdir() if path.is_symlink())
        for name in _MODULE.findall(folder.with_suffix(".rs").read_text())
        for one in mutants_of(f"{folder.name}/{name}.rs", (folder / f"{name}.rs").read_text())
    ]


def copy(tools: Path, folder: Path) -> Path:
    """A copy of the crates, in which the kernel's folders are no links; returns their folder."""
    shutil.rmtree(folder, ignore_errors=True)
    # As new files: cargo goes by their age.
    shutil.copytree(tools, folder, copy_function=shutil.copy,
                    ignore=shutil.ignore_patterns("target", "__pycache__", "out"))  # fmt: skip
    for path in (folder / CRATE / "Cargo.toml", folder / "Cargo.lock"):
        text = path.read_text()
        path.write_text(text.replace(f'name = "{_PACKAGE}"', f'name = "{COPIED_PACKAGE}"'))
    return folder


def chosen(listed: str, modules: Collection[str]) -> list[str]:
    """The tests of some modules, from the test program's list."""
    names = re.findall(r"^(\S+): test$", listed, re.M)
    return [name for name in names if name.split("::")[0] in modules]


def put(copied: Path, file: str, text: str) -> None:
    """Write one of the kernel's files in a copy."""
    (copied / CRATE / _SOURCES / file).write_text(text)
