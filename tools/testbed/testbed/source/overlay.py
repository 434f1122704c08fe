# SPDX-License-Identifier: GPL-2.0
"""Lays the clone's kernel files and patches over a kernel tree.

Files are compared by content and replaced only where they differ, so that a
build after a small change is a small build. All contents are computed before
the first file is written: an error leaves the tree as it was.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from testbed.env import short_hash
from testbed.host.ui import Failure
from testbed.source.patching import as_bytes, read_series, weave
from testbed.source.tree import Tree

# The folders of the clone that mirror the kernel tree.
KERNEL_FOLDERS = (
    "Documentation", "arch", "drivers", "include", "lib", "mm", "net", "rust", "samples",
    "tools/testing",
)  # fmt: skip
_IGNORED_SUFFIXES = ("~", ".orig", ".rej", ".swp", ".pyc")


class Laid(NamedTuple):
    """The changes made by laying the overlay."""

    written: list[str]
    removed: list[str]


def new_files(clone: Path) -> Iterator[str]:
    """The clone's kernel files, relative to the tree's top, sorted."""
    for folder in KERNEL_FOLDERS:
        for path in sorted((clone / folder).rglob("*")):
            relative = path.relative_to(clone)
            hidden = any(part.startswith(".") for part in relative.parts)
            if path.is_file() and not hidden and not path.name.endswith(_IGNORED_SUFFIXES):
                yield str(relative)


def manifest_files(manifest: Path) -> list[str]:
    """The files laid by an earlier call, if there was one."""
    try:
        names = json.loads(manifest.read_text())
    except (OSError, ValueError):
        return []
    return [str(name) for name in names]


def wanted_files(clone: Path, base: Path) -> dict[str, bytes | None]:
    """Content of every file that the overlay makes, changes or removes."""
    wanted: dict[str, bytes | None] = {}
    for name in new_files(clone):
        if (base / name).exists():
            raise Failure(
                f"{name} exists in the kernel tree already",
                "the overlay holds new files only: change an existing one by a",
                "patch in patches/, or give the new file another name",
            )
        wanted[name] = (clone / name).read_bytes()
    # The clone's own files are as they are: only a series needs their earlier states.
    for name, file in weave(base, read_series(clone / "patches"), own=wanted).items():
        wanted[name] = as_bytes(file.content())
    return wanted


def is_applied(clone: Path, base: Path) -> bool:
    """Whether a tree of the user's own has the series, changed perhaps; a part is a `Failure`."""
    ours = list(new_files(clone))
    lacking = [name for name in ours if not (base / name).exists()]
    if lacking and len(lacking) < len(ours):
        raise Failure(
            f"the tree has a part of the series, without {lacking[0]}",
            "make patches writes all of it: apply the rest, or take out what is there",
            "OVERLAY=0 builds the tree as it is; DRIVER=rust loads the driver that it has",
        )
    return not lacking


def _replace(path: Path, content: bytes) -> None:
    """Write by renaming: the old file may be a hard link into the base."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.skbulk")
    part.write_bytes(content)
    # Executable files are tests, which are installed with their mode.
    part.chmod(0o755 if content.startswith(b"#!") else 0o644)
    part.rename(path)


def _same(path: Path, content: bytes) -> bool:
    try:
        if path.is_symlink() or path.stat().st_size != len(content):
            return False
        return path.read_bytes() == content
    except OSError:
        return False


def _put_back(tree: Tree, name: str) -> bool:
    """Restore `name` from the base; returns whether it changed."""
    target, source = tree.work / name, tree.base / name
    if source.is_file():
        content = source.read_bytes()
        if _same(target, content):
            return False
        # A copy, not a link: make notices the change by the new time.
        _replace(target, content)
        return True
    if not target.exists():
        return False
    target.unlink()
    folder = target.parent
    while folder != tree.work and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
    return True


def apply(tree: Tree, wanted: dict[str, bytes | None]) -> Laid:
    """Write files that differ from `wanted`, restore those no longer wanted."""
    before = manifest_files(tree.manifest)
    laid = Laid([], [])
    # The union first: after an interruption the next call still has all names.
    _write_manifest(tree.manifest, sorted({*before, *wanted}))
    for name, content in wanted.items():
        target = tree.work / name
        if content is None:
            if target.exists():
                target.unlink()
                laid.removed.append(name)
        elif not _same(target, content):
            _replace(target, content)
            laid.written.append(name)
    for name in before:
        if name not in wanted and _put_back(tree, name):
            laid.removed.append(name)
    _write_manifest(tree.manifest, sorted(wanted))
    return laid


def state_of(tree: Tree, wanted: dict[str, bytes | None]) -> str:
    """A name for the content of the base plus `wanted`."""
    parts = [part for name in sorted(wanted) for part in (name, wanted[name] or b"")]
    return short_hash(tree.base.name, *parts)


def is_laid(tree: Tree, wanted: dict[str, bytes | None]) -> bool:
    """Whether the tree is the base plus `wanted` already."""
    if sorted(wanted) != manifest_files(tree.manifest):
        return False
    return all(
        not (tree.work / name).exists() if content is None else _same(tree.work / name, content)
        for name, content in wanted.items()
    )


def _write_manifest(path: Path, names: list[str]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(names, indent=0) + "\n")
    part.replace(path)
