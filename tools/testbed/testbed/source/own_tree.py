# SPDX-License-Identifier: GPL-2.0
"""Missing parts of the series in a tree of the user's own.

The tree may have the series applied, or some of its topics, with changes on top:
those are kept. A topic that is incomplete in the tree is refused.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testbed.host.ui import Failure
from testbed.source.patching import (
    Patch,
    applies,
    apply_patch,
    copy_files,
    read,
    touched_files,
    write,
)
from testbed.source.topics import Topic, states_of_new_files, topics

_WAY_OUT = "OVERLAY=0 builds the tree as it is; DRIVER=rust loads the driver that it has"


@dataclass
class Found:
    """The files to be laid over the tree, and notes for the user."""

    wanted: dict[str, bytes | None]
    notes: list[str] = field(default_factory=list)


def complete(clone: Path, base: Path) -> Found:
    """The files that complete the tree; a conflict is a `Failure`."""
    everything = topics(clone)
    touched = touched_files(topic.patch for topic in everything)
    with tempfile.TemporaryDirectory(prefix="skbulk-own-") as name:
        scratch = Path(name)
        copy_files(base, scratch, touched)
        reverted = _revert(scratch, everything)
        there = [topic for topic in everything if _is_there(topic, clone, base, reverted)]
        first = states_of_new_files(clone, everything)
        wanted: dict[str, bytes | None] = {}
        for topic in everything:
            patch = topic.patch
            for file in topic.files if topic not in there else ():
                if file in first:
                    write(scratch / file, first[file])
            if topic in there and patch not in reverted:
                continue
            if patch.touched:
                apply_patch(scratch, patch, _WAY_OUT)
            if topic not in there:
                wanted.update({file: (clone / file).read_bytes() for file in topic.files})
        for file in touched:
            content = read(scratch / file)
            if content != read(base / file):
                wanted[file] = content
            else:
                wanted.pop(file, None)
    return Found(wanted, _notes(clone, base, there, len(everything)))


def _revert(scratch: Path, everything: Sequence[Topic]) -> set[Patch]:
    """Revert the patches that the tree has, the last one first."""
    found = set()
    for topic in reversed(everything):
        if topic.patch.touched and applies(scratch, topic.patch, reverse=True):
            apply_patch(scratch, topic.patch, reverse=True)
            found.add(topic.patch)
    return found


def _is_there(topic: Topic, clone: Path, base: Path, reverted: set[Patch]) -> bool:
    """Whether the tree has the topic, possibly with changes."""
    patched = topic.patch in reverted
    if not topic.files:
        return patched
    present = [file for file in topic.files if (base / file).exists()]
    if not present and not patched:
        return False
    if len(present) < len(topic.files):
        missing = [file for file in topic.files if file not in present]
        raise Failure(
            f"the tree has a part of the topic {topic.name}; these files are missing:",
            *missing[:5],
            *([f"and {len(missing) - 5} more"] if len(missing) > 5 else []),
            "apply the patch as a whole (make patches writes it), or take all of it out",
            _WAY_OUT,
        )
    if patched or any(_same(clone, base, file) for file in topic.files):
        return True
    raise Failure(
        f"{present[0]} exists in the tree, but is not the one of the topic {topic.name}",
        _WAY_OUT,
    )


def _notes(clone: Path, base: Path, there: Sequence[Topic], count: int) -> list[str]:
    if not there:
        return []
    notes = [f"this tree has {len(there)} of the {count} patches of the series already"]
    changed = [file for topic in there for file in topic.files if not _same(clone, base, file)]
    if changed:
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        notes.append(f"built as the tree has them: {', '.join(changed[:3])}{more}")
    return notes


def _same(clone: Path, base: Path, file: str) -> bool:
    return read(clone / file) == read(base / file)
