# SPDX-License-Identifier: GPL-2.0
"""The kernel series as mails for git am, one topic per patch.

patches/README explains the files of a topic and of a series.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.host import proc
from testbed.host.ui import Failure
from testbed.settings import child_environment
from testbed.source import overlay
from testbed.source.patching import Series, copy_files, read, read_all, touched_files, write
from testbed.source.topics import Topic, check, states_of_new_files, topics

# The sender of the mails without AUTHOR: not a person, so there is no sign-off.
NOBODY = "skbulk <skbulk@localhost>"
_MAINTAINERS = "MAINTAINERS"
_PERSON = re.compile(r"([^<>]+?) +<([^<>@\s]+@[^<>@\s]+)>")


def parse_author(text: str) -> tuple[str, str]:
    """The name and the address in "Name <mail>"."""
    found = _PERSON.fullmatch(text.strip())
    if found is None:
        raise Failure(f"AUTHOR={text}: this is no name and address",
                      'an example: AUTHOR="Jane Doe <jane@example.org>"')  # fmt: skip
    return found[1], found[2]


class Repository:
    """A scratch repository of the files that the series touches, as they are upstream."""

    def __init__(self, folder: Path, base: Path, touched: Sequence[str], version: str,
                 author: str) -> None:  # fmt: skip
        self.folder = folder
        name, mail = parse_author(author)
        self._identity = {
            "GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": mail,
            "GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": mail,
            "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
        }  # fmt: skip
        folder.mkdir()
        copy_files(base, folder, touched)
        self.git("init", "-q", "-b", "main", what="making a scratch repository")
        self.commit(f"Linux {version}")

    def git(self, *words: str | Path, what: str) -> str:
        """Run git there."""
        command: list[str | Path] = ["git", "-C", self.folder, *words]
        done = proc.capture(command, env=child_environment(**self._identity))
        if done.returncode != 0:
            raise Failure(f"{what} failed", *done.stdout.strip().splitlines()[-8:])
        return done.stdout

    def commit(self, message: str) -> None:
        """Commit all changes."""
        self.git("add", "-A", "-f", what="adding files")
        self.git("commit", "-q", "--allow-empty", "-m", message, what=f"committing {message[:60]}")


def take(repository: Repository, topic: Topic, clone: Path, first: Mapping[str, bytes]) -> None:
    """Bring a topic's changes and files into the repository."""
    patch = topic.patch
    if patch.sections:
        repository.git("apply", "--index", "--whitespace=nowarn", patch.path,
                       what=f"git apply of {patch.path.name}")  # fmt: skip
    for file in topic.files:
        path = repository.folder / file
        write(path, first.get(file) or (clone / file).read_bytes())
        # A script stays executable.
        path.chmod((clone / file).stat().st_mode)


@dataclass(frozen=True)
class Written:
    """One series that was written: its folder and the patches in it."""

    series: Series
    folder: Path
    mails: tuple[Path, ...]


def write_series(
    clone: Path,
    base: Path,
    version: str,
    out: Path,
    author: str = "",
    only: str = "",
    base_commit: str = "",
) -> list[Written]:
    """Write the mails into folders of `out`, verified by applying them to a fresh base."""
    check(clone)
    wanted = overlay.wanted_files(clone, base)
    every_series, everything = read_all(clone / "patches"), topics(clone)
    if only and only not in [series.name for series in every_series]:
        names = ", ".join(series.name for series in every_series)
        raise Failure(f"SERIES={only}: there is no such series", f"there are {names}")
    first = states_of_new_files(clone, everything)
    touched = [*touched_files(topic.patch for topic in everything), _MAINTAINERS]
    shutil.rmtree(out, ignore_errors=True)
    written = []
    with tempfile.TemporaryDirectory(prefix="skbulk-series-") as name:
        scratch = Repository(Path(name) / "write", base, touched, version, author or NOBODY)
        for number, series in enumerate(every_series, 1):
            scratch.git("tag", f"before-{series.name}", what="tagging")
            for topic in [topic for topic in everything if topic.series == series.name]:
                take(scratch, topic, clone, first)
                scratch.commit(message(topic.patch.subject, topic.patch.body, author))
            _maintain(scratch, clone, series, author)
            folder = out / f"{number:02}-{series.name}"
            scratch.git("format-patch", "-q", "--cover-letter", "-o", folder,
                        f"before-{series.name}..HEAD", what="git format-patch")  # fmt: skip
            _cover(clone, series, folder, version, base_commit)
            mails = tuple(sorted(path for path in folder.iterdir() if path.name[:4] != "0000"))
            written.append(Written(series, folder, mails))
        fresh = Repository(Path(name) / "check", base, touched, version, author or NOBODY)
        for one in written:
            for mail in one.mails:
                fresh.git("am", "-q", mail, what=f"git am of the written {mail.name}")
        for file, content in wanted.items():
            if read(fresh.folder / file) != content:
                raise Failure(f"the written series makes another {file} than the overlay")
    for one in written:
        if only and one.series.name != only:
            shutil.rmtree(one.folder)
    return [one for one in written if not only or one.series.name == only]


def message(subject: str, body: str, author: str) -> str:
    """A patch's message. Only a person signs off."""
    trailer = f"\n\nSigned-off-by: {author}" if author else ""
    return f"{subject}\n\n{body}{trailer}\n"


def _maintain(scratch: Repository, clone: Path, series: Series, author: str) -> None:
    """The last patch of a series: its entry in MAINTAINERS."""
    path = clone / f"patches/{series.name}.maintainers"
    target = scratch.folder / _MAINTAINERS
    if not path.exists() or not target.exists():
        return
    title, _, rest = path.read_text().strip().partition("\n")
    if not author:
        rest = rest.replace("S:\tMaintained", "S:\tOrphan")
    entry = [title, *([f"M:\t{author}"] if author else []), *rest.splitlines()]
    target.write_text(insert_entry(target.read_text(), entry))
    text = f"Add an entry for the files of this series.{'' if author else _NO_MAINTAINER}"
    scratch.commit(message(f"MAINTAINERS: add {title}", text, author))


_NO_MAINTAINER = "\n\nIt names no maintainer, as the series was written without AUTHOR."


def insert_entry(text: str, entry: Sequence[str]) -> str:
    """Insert an entry of MAINTAINERS in alphabetical order."""
    blocks = text.rstrip("\n").split("\n\n")
    # The entries come after an explanation of the file.
    entries = [i for i, block in enumerate(blocks) if re.match(r"\S.*\n[A-Z]:\t", block)]
    place = next(
        (i for i in entries if blocks[i].partition("\n")[0].upper() > entry[0].upper()), len(blocks)
    )
    # "THE REST" is always the last one.
    if place == len(blocks) and entries and blocks[entries[-1]].startswith("THE REST"):
        place = entries[-1]
    blocks.insert(place, "\n".join(entry))
    return "\n\n".join(blocks) + "\n"


def _cover(clone: Path, series: Series, folder: Path, version: str, base_commit: str) -> None:
    """Fill in the cover letter: patches/NAME.cover, the series it needs, and its base."""
    source = clone / f"patches/{series.name}.cover"
    if not source.exists():
        raise Failure(f"the series {series.name} has no cover letter", f"write {source}")
    subject, _, text = source.read_text().strip().partition("\n\n")
    needs = f"\n\nIt goes on top of the series {', '.join(series.needs)}." if series.needs else ""
    text += f"{needs}\n\nBased on Linux {version}."
    path = next(folder.glob("0000-*"))
    mail = path.read_text()
    mail = mail.replace("*** SUBJECT HERE ***", subject).replace("*** BLURB HERE ***", text)
    if base_commit:
        head, mark, tail = mail.rpartition("\n-- \n")
        mail = f"{head}\nbase-commit: {base_commit}{mark}{tail}"
    path.write_text(mail)


def steps(clone: Path, base: Path) -> Iterator[tuple[Topic, dict[str, bytes | None]]]:
    """Each topic, and all files that the series up to it make or change."""
    everything = topics(clone)
    first = states_of_new_files(clone, everything)
    touched = touched_files(topic.patch for topic in everything)
    with tempfile.TemporaryDirectory(prefix="skbulk-steps-") as name:
        scratch = Repository(Path(name) / "steps", base, touched, "", NOBODY)
        seen: dict[str, None] = {}
        for topic in everything:
            take(scratch, topic, clone, first)
            scratch.commit(topic.name)
            seen.update(dict.fromkeys([*touched_files([topic.patch]), *topic.files]))
            yield topic, {file: read(scratch.folder / file) for file in seen}
