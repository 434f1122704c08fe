# SPDX-License-Identifier: GPL-2.0
"""Missing parts of the series in a tree of the user's own.

The tree may have the series applied, or some of its topics, with changes on top:
those are kept. A topic that is incomplete in the tree is refused.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from testbed.host.ui import Failure, say
from testbed.source import listing, overlay
from testbed.source.diff import Section
from testbed.source.patching import apply, as_bytes, as_text, read
from testbed.source.topics import Topic, topics
from testbed.source.weave import Misfit, Weave

_WAY_OUT = "OVERLAY=0 builds the tree as it is; DRIVER=rust loads the driver that it has"
# Upstream's files by name, with some patches and without others.
_Texts = dict[str, str | None]


def complete(clone: Path, base: Path) -> dict[str, bytes | None]:
    """The files that complete the tree; a conflict is a `Failure`."""
    everything = topics(clone)
    own = set(overlay.new_files(clone))
    sections = {topic.name: [one for one in topic.patch.sections if one.name not in own]
                for topic in everything}  # fmt: skip
    before = {one.name: as_text(read(base / one.name)) for ones in sections.values()
              for one in ones}  # fmt: skip
    texts, reverted = _revert(dict(before), everything, sections)
    there = [topic for topic in everything if _is_there(topic, clone, base, reverted)]
    wanted: dict[str, bytes | None] = {}
    for topic in everything:
        if topic not in there:
            wanted.update({file: (clone / file).read_bytes() for file in topic.files})
        elif topic.name not in reverted:
            continue
        for section in sections[topic.name]:
            file = Weave(texts[section.name])
            apply(file, section, topic.patch, _WAY_OUT)
            texts[section.name] = file.content()
    wanted.update(_of_no_topic(own, everything, clone, base))
    wanted.update({name: as_bytes(text) for name, text in texts.items() if text != before[name]})
    wanted.update(_grown(clone, base, there, own))
    if there:
        say(
            f"    the tree has {len(there)} of the {len(everything)} patches: they stay as they are"
        )
    return wanted


def _revert(
    texts: _Texts, everything: Sequence[Topic], sections: Mapping[str, list[Section]]
) -> tuple[_Texts, set[str]]:
    """Revert the patches that the tree has, the last one first; the texts, and their names."""
    found = set()
    for topic in reversed(everything):
        back = dict(texts)
        try:
            for section in sections[topic.name]:
                file = Weave(back[section.name])
                file.apply(section.reversed, topic.name)
                back[section.name] = file.content()
        except Misfit:
            continue
        if sections[topic.name]:
            texts = back
            found.add(topic.name)
    return texts, found


def _of_no_topic(
    own: Iterable[str], everything: Sequence[Topic], clone: Path, base: Path
) -> dict[str, bytes]:
    """New files that no topic lists yet."""
    listed = {file for topic in everything for file in topic.files}
    new = [file for file in own if file not in listed and not _same(clone, base, file)]
    if there := [file for file in new if (base / file).exists()]:
        raise Failure(f"{there[0]} exists in the tree, and no topic of the series has it", _WAY_OUT)
    return {file: (clone / file).read_bytes() for file in new}


def _is_there(topic: Topic, clone: Path, base: Path, reverted: set[str]) -> bool:
    """Whether the tree has the topic, possibly with changes."""
    patched = topic.name in reverted
    if not topic.files:
        return patched
    present = [file for file in topic.files if (base / file).exists()]
    if not present and not patched:
        return False
    if missing := [file for file in topic.files if file not in present]:
        raise Failure(
            f"the tree has a part of the topic {topic.name}, without {missing[0]}",
            "apply the patch as a whole (make patches writes it), or take all of it out",
            _WAY_OUT,
        )
    if patched or any(_same(clone, base, file) for file in topic.files):
        return True
    raise Failure(
        f"{present[0]} exists in the tree, but is not the one of the topic {topic.name}", _WAY_OUT
    )


def _grown(
    clone: Path, base: Path, there: Sequence[Topic], own: Container[str]
) -> dict[str, bytes]:
    """Files that list what the tree lacks, and are otherwise as they were before that."""
    found = {}
    for file in (one for topic in there for one in topic.files):
        content = (clone / file).read_bytes()
        gone = {module for module, one in listing.listed(file, content, own).items()
                if not (base / one).exists()}  # fmt: skip
        if gone and read(base / file) == listing.without(content, gone):
            found[file] = content
    return found


def _same(clone: Path, base: Path, file: str) -> bool:
    return read(clone / file) == read(base / file)
