# SPDX-License-Identifier: GPL-2.0
"""The layout of the sources: modules lie where the compiler looks for them."""

from __future__ import annotations

import re
from pathlib import Path

CLONE = Path(__file__).parents[3]
SKIPPED_FOLDERS = {".git", "out", "target"}
# In code, and in the lines that patches add.
PATH_ATTRIBUTE = re.compile(r"^\+?[ \t]*#!?\[(?:cfg_attr\([^\n]*)?path\b.*", re.M)


def _lines(wrong: re.Pattern[str], *patterns: str) -> list[str]:
    """The lines of some files that are wrong, each with its file."""
    return [
        f"{path.relative_to(CLONE)}: {match[0].strip()}"
        for pattern in patterns
        for path in sorted(CLONE.rglob(pattern))
        if not SKIPPED_FOLDERS & {*path.relative_to(CLONE).parts}
        for match in wrong.finditer(path.read_text())
    ]


def test_no_module_needs_a_path_attribute() -> None:
    found = _lines(PATH_ATTRIBUTE, "*.rs", "patches/*.patch")
    assert not found, "\n".join(["move the file to its module's place:", *found])


def test_the_attribute_is_found() -> None:
    for line in ('#[path = "x.rs"]', '+    #[path="x.rs"]', '#[cfg_attr(test, path = "x.rs")]'):
        assert PATH_ATTRIBUTE.search(f"mod a;\n{line}\nmod b;\n"), line
    assert not PATH_ATTRIBUTE.search("// the attribute #[path] is not used\n")


# A directory that kbuild enters from the one above its parent. With a parent that it enters, too,
# single modules are made twice at once, differently.
TWO_LEVELS = re.compile(r"^\+?obj-\S+[ \t]*[:+]?=.*?[\w-]+/[\w-]+/(?=[ \t]|$).*$", re.M)


def test_kbuild_enters_directories_level_by_level() -> None:
    found = _lines(TWO_LEVELS, "Makefile", "Kbuild", "patches/*.patch")
    assert not found, "\n".join(["enter it from the Makefile of its parent:", *found])


def test_two_levels_are_found() -> None:
    for line in ("obj-$(CONFIG_A) += a/b/", "+obj-y := x.o a/b-c/ ", "obj-m += a/b/ c/"):
        assert TWO_LEVELS.search(f"obj-y += a/\n{line}\n"), line
    assert not TWO_LEVELS.search("obj-$(CONFIG_A) += a/ b/\nobj-y += a/b.o\n")


def test_no_file_is_empty() -> None:
    found = [
        str(path.relative_to(CLONE))
        for path in sorted(CLONE.rglob("*"))
        if not SKIPPED_FOLDERS & {*path.relative_to(CLONE).parts}
        and path.is_file()
        and not path.stat().st_size
    ]
    assert not found, "\n".join(["remove what a command left behind:", *found])


# Names that once stood for several things each.
ONE_MEANING = ("Batch", "DropReason", "PerCpu", "Turn")
TYPE = re.compile(rf"^[ \t]*(?:pub(?:\([^)]*\))? )?(?:struct|enum|type|trait|union) "
                  rf"({'|'.join(ONE_MEANING)})\b", re.M)  # fmt: skip


def test_a_name_means_one_thing() -> None:
    found: dict[str, list[str]] = {name: [] for name in ONE_MEANING}
    for path in sorted(CLONE.rglob("*.rs")):
        if not SKIPPED_FOLDERS & {*path.relative_to(CLONE).parts}:
            for name in TYPE.findall(path.read_text()):
                found[name].append(str(path.relative_to(CLONE)))
    assert {name: len(places) for name, places in found.items()} == dict.fromkeys(ONE_MEANING, 1), (
        found
    )


def test_registration_and_ethtool_do_not_know_of_doorbells() -> None:
    for name in ("ethtool.rs", "registration.rs", "ops.rs", "info.rs", "rss.rs"):
        text = (CLONE / "rust/kernel/net/device" / name).read_text()
        assert not re.search(r"doorbell|Deferral", text, re.I), name


# Doorbells that are deferred to the end of a poll: a directory, and the line that makes it a
# module. The driver of the tests chooses them.
DEFERRING = "rust/kernel/net/device/deferring"
USERS = {"rust/kernel/net/device/tests/dummy.rs": r"\bdeferring::Deferring\b|\bDeferring\b"}
CORE = ("device.rs", "device/**/*.rs", "inflight.rs", "inflight/**/*.rs", "napi.rs", "queue.rs")


def test_the_device_core_does_not_know_of_deferred_doorbells() -> None:
    net = CLONE / "rust/kernel/net"
    for path in [path for pattern in CORE for path in sorted(net.glob(pattern))]:
        if CLONE / DEFERRING not in path.parents:
            text = path.read_text().replace("pub mod deferring;\n", "")
            text = re.sub(USERS.get(str(path.relative_to(CLONE)), "$^"), "", text)
            assert not re.search(r"\bdefer(?:s|red|ral|ring)?\b", text, re.I), path
    assert "pub mod deferring;\n" in (net / "device.rs").read_text()
