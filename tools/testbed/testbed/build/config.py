# SPDX-License-Identifier: GPL-2.0
"""Kernel configurations: fragments, and the symbols that they ask for."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.env import Env

_SET = re.compile(r"^(CONFIG_\w+)=(.+)$")
_UNSET = re.compile(r"^# (CONFIG_\w+) is not set$")
# Values that an unknown symbol satisfies.
_NOTHING = ("n", '""')
# In a fragment: those below it.
_BELOW = re.compile(r"^# On top of: (.+)$", re.M)
# The folders of the tree whose config files list the needs of their tests.
_DRIVERS = ("drivers/net", "drivers/net/hw")
_TESTED = {"selftests": _DRIVERS, "selftestsvm": _DRIVERS}
_MODULE = re.compile(r"^(CONFIG_\w+)=m$", re.M)


@dataclass(frozen=True)
class Fragment:
    """A part of a configuration, and where it comes from."""

    name: str
    text: str
    # Whether its symbols may be missing from the result.
    optional: bool = False

    @property
    def symbols(self) -> dict[str, str]:
        """The symbols that it sets, in order; later lines win."""
        found = {}
        for line in self.text.splitlines():
            if match := _SET.match(line):
                found[match[1]] = match[2]
            elif match := _UNSET.match(line):
                found[match[1]] = "n"
        return found


def fragments(env: Env, config: str, tree: Path) -> list[Fragment]:
    """The fragments of one configuration; CONFIG_EXTRA's come last."""
    own = _ours(env, config)
    # With CONFIG_BASE it comes on top of that.
    below = None if env.settings.given("CONFIG_BASE") else _BELOW.search(own.text)
    return [
        *(_ours(env, name) for name in (below[1].split() if below else ())),
        own,
        *_tested_fragments(config, tree),
        *extra_fragments(env),
    ]


def _ours(env: Env, name: str) -> Fragment:
    path = env.clone / f"tools/testbed/configs/{name}.config"
    return Fragment(path.name, path.read_text())


def _tested_fragments(config: str, tree: Path) -> Iterator[Fragment]:
    """The needs of the tree's own tests, all of them built in.

    The guest has no modprobe that would find a module when a test needs it.
    """
    for folder in _TESTED.get(config, ()):
        path = tree / "tools/testing/selftests" / folder / "config"
        if path.exists():
            text = _MODULE.sub(r"\1=y", path.read_text())
            yield Fragment(f"{folder}/config", text, optional=True)


def extra_fragments(env: Env) -> list[Fragment]:
    """The fragments of make debug and of NODES, and the files of CONFIG_EXTRA."""
    found = []
    if env.settings.number("NODES") > 1:
        found.append(_ours(env, "nodes"))
    if env.settings.verb == "debug":
        found.append(_ours(env, "gdb"))
    for name in env.settings.text("CONFIG_EXTRA").split():
        found.append(Fragment(name, (env.clone / name).read_text(errors="replace")))
    return found


def merged(parts: Sequence[Fragment]) -> str:
    """One fragment of all: each symbol once, as the last part has it."""
    symbols: dict[str, str] = {}
    for part in parts:
        symbols.update(part.symbols)
    return "".join(f"{name}={value}\n" for name, value in symbols.items())


def missing_symbols(parts: Sequence[Fragment], config: str) -> list[str]:
    """The symbols that the final configuration lacks, and the fragments that ask for them."""
    have = Fragment("", config).symbols
    wanted = {name: (value, part) for part in parts for name, value in part.symbols.items()}
    return [
        f"{name}={value}, asked for by {source.name}: {_why(have.get(name))}"
        for name, (value, source) in wanted.items()
        if not source.optional and have.get(name, value if value in _NOTHING else None) != value
    ]


def _why(value: str | None) -> str:
    if value is None:
        return "there is no such symbol, or a dependency is missing"
    return "it stays off: a dependency or a choice forbids it" if value == "n" else f"it is {value}"
