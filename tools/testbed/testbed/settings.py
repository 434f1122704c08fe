# SPDX-License-Identifier: GPL-2.0
"""Every variable of the verbs: the one place that reads and checks them.

help.txt is the output of `make help` and the table of variables. An entry is

      NAME=KIND    for VERB, VERB; default VALUE
          text

with a kind of `_KINDS`, alternatives (`a|b`) or a range of numbers (`1..8`,
`1..`). tools/buildroot passes these variables into the build root; it reads
them with sed, as the host may have no Python. combinations.py refuses values
that do not go together.

The check runs before anything is built, where possible with the host's own
Python (3.9 or later; this file needs only its standard library).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from testbed.combinations import together
from testbed.host.ui import Failure, similar

HELP = (Path(__file__).parent / "help.txt").read_text(encoding="utf-8")

# Set by the build root, never by hand; proxies, CI and the date of mails are the caller's.
INTERNAL = (
    "SKBULK_CACHE", "SKBULK_ROOT", "SKBULK_LLVM", "SKBULK_GUEST_ARM64", "SKBULK_PLAIN", "CI",
    "SKBULK_BEGAN", "SOURCE_DATE_EPOCH",
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY",
)  # fmt: skip
# The names of the variables on make's command line, from the Makefile.
_GIVEN = "SKBULK_GIVEN"
# The verbs there: each of them is checked before the first one begins.
_GOALS = "SKBULK_GOALS"
_CLONE = Path(__file__).resolve().parents[3]

_VERB = re.compile(r"^  make (\w+) ", re.M)
_ENTRY = re.compile(
    r"^  (?P<name>[A-Z_]+)=(?P<kind>\S+) +for (?P<verbs>[a-z, ]+?)(?:; default (?P<default>\S+))?$",
    re.M,
)
_SWITCH = {"0": "0", "no": "0", "1": "1", "yes": "1"}
_RANGE = re.compile(r"(\d+)\.\.(\d*)")


@dataclass(frozen=True)
class Variable:
    """One entry of the table."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    default: str

    def taken_by(self, verb: str) -> bool:
        """Whether the verb takes it."""
        return verb in self.verbs or "all" in self.verbs

    def read(self, text: str) -> str:
        """The value in its canonical spelling; a wrong one is a `Failure`."""
        if self.kind == "0|1":
            value = _SWITCH.get(text.lower())
            if value is None:
                raise self._wrong(text, f"{self.name} is 0 or 1 (or no, yes)")
            return value
        if "|" in self.kind:
            if text not in self.kind.split("|"):
                raise self._wrong(text, f"{self.name} is one of {self.kind.replace('|', ', ')}")
            return text
        bounds = _RANGE.fullmatch(self.kind)
        if bounds:
            high = int(bounds[2]) if bounds[2] else None
            number = int(text) if re.fullmatch("[0-9]{1,18}", text) else -1
            if number < int(bounds[1]) or (high is not None and number > high):
                limits = f"from {bounds[1]} to {high}" if high else f"of {bounds[1]} or more"
                raise self._wrong(text, f"{self.name} is a number {limits}")
            return str(number)
        if why := _KINDS[self.kind](text):
            raise self._wrong(text, *why)
        return text

    def _wrong(self, text: str, *why: str) -> Failure:
        return Failure(f"{self.name}={text}: {why[0]}", *why[1:])


_SYMBOL = re.compile(r"CONFIG_\w+=.|\s*(#|$)")


def _fragments(text: str) -> list[str]:
    for name in text.split():
        if not Path(name).is_file():
            return [f"there is no file {name}"]
        lines = Path(name).read_text(errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            if not _SYMBOL.match(line):
                return [f"line {number} of {name} sets no symbol: {line[:80]}",
                        'a line is CONFIG_NAME=y, m, n, a number or a "string"']  # fmt: skip
    return []


def _is_shard(text: str) -> bool:
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    return found is not None and 1 <= int(found[1]) <= int(found[2])


# Drivers with a name; others are folders.
DRIVERS = ("rust", "c", "none")


# The top Makefile of the kernel refuses such paths.
_BREAKS_KBUILD = re.compile(r"[\s:]")


def _driver(text: str) -> list[str]:
    if text in DRIVERS:
        return []
    folder = Path(os.path.expanduser(text))
    if not folder.is_dir():
        what = "there is no such folder" if "/" in text else "there is no such driver"
        return [what, f"DRIVER is one of {', '.join(DRIVERS)}, or the folder of a driver"]
    if _BREAKS_KBUILD.search(str(folder.resolve())):
        return ["the kernel's build takes no path with blanks or colons", "rename that folder"]
    if not any((folder / name).is_file() for name in ("Kbuild", "Makefile")):
        return ["there is neither a Makefile nor a Kbuild file in that folder",
                "its one line is: obj-m += NAME.o"]  # fmt: skip
    return []


def _path(text: str) -> list[str]:
    if not os.path.isabs(text):
        return ["the path has to be absolute, from / on"]
    if _BREAKS_KBUILD.search(text):
        return ["the kernel's build takes no path with blanks or colons", "choose another one"]
    return []


def _tree(text: str) -> list[str]:
    makefile = Path(text) / "Makefile"
    if not makefile.parent.is_dir():
        return ["there is no such folder"]
    try:
        top = makefile.read_text(errors="replace")[:4000]
    except OSError:
        top = ""
    if not re.search(r"^VERSION *= *\d", top, re.M) or not re.search(r"^PATCHLEVEL *=", top, re.M):
        return ["this is no kernel tree: no Makefile in it names a version",
                "KDIR is the top folder of Linux's source"]  # fmt: skip
    return []


def _series(text: str) -> list[str]:
    known = re.findall(r"^\[([\w-]+)\]", (_CLONE / "patches/series").read_text(), re.M)
    return [] if text in known else ["there is no such series", f"there are {', '.join(known)}"]


def _unless(good: Callable[[str], object], *why: str) -> Callable[[str], Sequence[str]]:
    return lambda text: () if good(text) else why


# Functions from a value to the reasons why it is wrong, by kind.
_KINDS: Mapping[str, Callable[[str], Sequence[str]]] = {
    "FILE": _unless(os.path.isfile, "there is no such file"),
    "FILES": _fragments,
    "TREE": _tree,
    "FOLDER": _unless(os.path.isdir, "there is no such folder"),
    "PATH": _path,
    "URL": _unless(re.compile("https?://|file:|copy:").match,
                   "an address begins with http://, https:// or file:"),
    "SECONDS": _unless(re.compile(r"(?=.*[1-9])[0-9]{1,9}(\.[0-9]+)?").fullmatch,
                       "this is a number of seconds, more than 0"),
    "I/N": _unless(_is_shard,
                   "a part is named I/N, from 1/N to N/N: SHARD=2/3 is the second of three"),
    "PERSON": _unless(re.compile(r"[^<>]+ <[^<>@\s]+@[^<>@\s]+>").fullmatch,
                      "this is no name and address",
                      'an example: AUTHOR="Jane Doe <jane@example.org>"'),
    "NAME": _series,
    "WORDS": lambda _: (),
    "NAMES": _unless(lambda text: split(text), "there is no name in it"),
    "DRIVER": _driver,
    "INTERFACE": _unless(re.compile(r"[^/\s]{1,15}").fullmatch,
                         "this is no name of an interface", "ip link shows the names"),
    "PLACE": _unless(re.compile(r"(ssh|netns):[^\s:-]\S*").fullmatch,
                     "the other end is ssh:root@host, or netns:name"),
}  # fmt: skip

VERBS = tuple(_VERB.findall(HELP))
VARIABLES = {
    found["name"]: Variable(
        found["name"],
        found["kind"],
        tuple(word.strip() for word in found["verbs"].split(",")),
        found["default"] or "",
    )
    for found in _ENTRY.finditer(HELP)
}


def split(text: str) -> list[str]:
    """The names in a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


@dataclass(frozen=True)
class Settings:
    """The variables of one call, checked. Those that the verb does not take have their defaults."""

    verb: str
    _values: Mapping[str, str]
    # Paths and other values set by the build root.
    internal: Mapping[str, str]

    def text(self, name: str) -> str:
        """The value, the default, or nothing."""
        return self._values.get(name, VARIABLES[name].default)

    def given(self, name: str) -> bool:
        """Whether the caller has set it."""
        return name in self._values

    def switch(self, name: str) -> bool:
        """The value of a switch."""
        return self.text(name) == "1"

    def number(self, name: str, default: int = 0) -> int:
        """The value of a number; `default` where the table has none."""
        return int(self.text(name) or default)

    def having(self, name: str, text: str) -> Settings:
        """The same settings with another value."""
        return replace(self, _values={**self._values, name: text})

    def names(self, name: str) -> list[str]:
        """The names in a list."""
        return split(self.text(name))

    def path(self, name: str) -> Path | None:
        """An absolute path, or None."""
        text = self.text(name)
        return Path(text).resolve() if text else None

    def driver_folder(self) -> Path | None:
        """The folder that DRIVER names, if it names one."""
        text = self.text("DRIVER")
        return None if text in DRIVERS else Path(text).expanduser().resolve()


def read(verb: str, environment: Mapping[str, str] | None = None) -> Settings:
    """Read and check the variables of a verb; the first mistake is a `Failure`."""
    environment = os.environ if environment is None else environment
    given, goals = environment.get(_GIVEN, "").split(), goals_of(verb, environment)
    _known(verb, given)
    values: dict[str, str] = {}
    for variable in VARIABLES.values():
        text = environment.get(variable.name, "").strip()
        if not text:
            continue
        if variable.taken_by(verb):
            values[variable.name] = variable.read(text)
        elif variable.name in given and not any(variable.taken_by(one) for one in goals):
            verbs = ", ".join(f"make {one}" for one in variable.verbs)
            raise Failure(f"{variable.name}={text}: make {verb} takes no {variable.name}",
                          f"{variable.name} is for {verbs}")  # fmt: skip
    internal = {name: environment[name] for name in INTERNAL if environment.get(name)}
    settings = Settings(verb, values, internal)
    together(settings)
    return settings


def goals_of(verb: str, environment: Mapping[str, str]) -> list[str]:
    """The verbs on make's command line, or this one alone."""
    goals = environment.get(_GOALS, "").split()
    return goals if verb in goals else [verb]


def _known(verb: str, given: Iterable[str]) -> None:
    if verb not in VERBS:
        raise Failure(f"there is no verb {verb}", f"there are {', '.join(VERBS)}")
    for name in given:
        if name in VARIABLES or name in INTERNAL or name == "SHELL":
            continue
        hints = similar(name.upper(), VARIABLES) or ["make help lists the variables"]
        raise Failure(f"{name}: there is no such variable", *hints)


def child_environment(**more: str) -> dict[str, str]:
    """The environment for a tool, with something added."""
    return {**os.environ, **more}


def main(arguments: list[str]) -> int:
    """settings.py check VERB: the variables of the verb, and of all others on make's command
    line, before any work."""
    try:
        for verb in goals_of(arguments[1], os.environ):
            read(verb)
    except Failure as error:
        print(f"error: {error}", *error.hints, sep="\n  ", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
