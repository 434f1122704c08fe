# SPDX-License-Identifier: GPL-2.0
"""The kernel series as mails for git am, one topic per patch.

patches/README explains the files of a topic and of a series.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testbed.host import proc
from testbed.host.ui import Failure
from testbed.settings import child_environment
from testbed.source import maintainers
from testbed.source.patching import Series, copy_files, read, touched_files, write
from testbed.source.states import Files, States
from testbed.source.topics import Topic

# The sender of the mails without AUTHOR: not a person, so there is no sign-off.
NOBODY = "skbulk <skbulk@localhost>"
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
            "GIT_AUTHOR_DATE": _SOME_DATE, "GIT_COMMITTER_DATE": _SOME_DATE,
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
        }  # fmt: skip
        folder.mkdir()
        copy_files(base, folder, touched)
        self.git("init", "-q", "-b", "main", what="making a scratch repository")
        self.commit(f"Linux {version}")
        self.base = self.head()

    def git(self, *words: str | Path, what: str, date: str = "") -> str:
        """Run git there."""
        command: list[str | Path] = ["git", "-C", self.folder, *words]
        identity = {**self._identity, **({"GIT_AUTHOR_DATE": date} if date else {})}
        done = proc.capture(command, env=child_environment(**identity))
        if done.returncode != 0:
            raise Failure(f"{what} failed", *done.stdout.strip().splitlines()[-8:])
        return done.stdout

    def commit(self, message: str, date: str = "") -> None:
        """Commit all changes."""
        self.git("add", "-A", "-f", what="adding files")
        self.git("commit", "-q", "--allow-empty", "-m", message, date=date,
                 what=f"committing {message[:60]}")  # fmt: skip

    def head(self) -> str:
        """The commit that it stands at."""
        return self.git("rev-parse", "HEAD", what="git rev-parse").strip()

    def go_to(self, commit: str) -> None:
        """Stand at a commit, with its files."""
        self.git("checkout", "-q", "--detach", commit, what="git checkout")


_SOME_DATE = "2026-01-01T00:00:00Z"


def _put(repository: Repository, files: Files, clone: Path) -> None:
    """Write the files that differ."""
    for name, content in files.items():
        path = repository.folder / name
        if content is None:
            path.unlink(missing_ok=True)
        elif read(path) != content:
            write(path, content)
            if (clone / name).is_file():
                # A script stays executable.
                path.chmod((clone / name).stat().st_mode)


@dataclass(frozen=True)
class Written:
    """One series that was written: its folder and the patches in it."""

    series: Series
    folder: Path
    mails: tuple[Path, ...]


@dataclass(frozen=True)
class Sender:
    """The sender's settings, for all mails."""

    author: str = ""
    # The commit of the tree that they are for.
    base_commit: str = ""


def write_series(
    clone: Path, base: Path, version: str, out: Path, sender: Sender = Sender(), only: str = ""
) -> list[Written]:
    """Write the mails into folders of `out`, verified by applying them to a fresh base."""
    states = States(clone, base, sender.author)
    if only and only not in states.series:
        names = ", ".join(states.series)
        raise Failure(f"SERIES={only}: there is no such series", f"there are {names}")
    if unlisted := states.unlisted():
        raise Failure(
            "these new files are in no entry of MAINTAINERS:",
            *(f"{series}: {file}" for series, file in unlisted),
            "add them, or their folder, to patches/SERIES.maintainers",
        )
    touched = [*touched_files(topic.patch for topic in states.topics), maintainers.FILE]
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="skbulk-series-") as name:
        scratch = Repository(Path(name) / "write", base, touched, version, sender.author or NOBODY)
        needed = [*(one.name for one in states.needs(only)), only] if only else states.series
        written = {
            one: _write(scratch, states, clone, out / f"{number:02}-{one}", version, sender, one)
            for number, one in enumerate(states.series, 1) if one in needed
        }  # fmt: skip
        fresh = Repository(Path(name) / "check", base, touched, version, NOBODY)
        _Check(fresh, states, written).run()
    for one in [one for one in written if only not in ("", one)]:
        shutil.rmtree(written.pop(one).folder)
    return list(written.values())


def _write(scratch: Repository, states: States, clone: Path, folder: Path, version: str,
           sender: Sender, name: str) -> Written:  # fmt: skip
    """The mails of one series, on top of those that it needs and of no other."""
    series = states.series[name]
    scratch.go_to(scratch.base)
    for topic, files in states.steps(name):
        _put(scratch, files, clone)
        if topic is None:
            scratch.commit("the series that it needs")
            scratch.git("tag", f"before-{name}", what="tagging")
        else:
            scratch.commit(message(topic, sender))
    prefix = f"PATCH {series.tree}".strip()
    scratch.git("format-patch", "-q", "--cover-letter", f"--subject-prefix={prefix}", "-o", folder,
                f"before-{name}..HEAD", what="git format-patch")  # fmt: skip
    _cover(clone, series, [one.name for one in states.needs(name)], folder, version,
           sender.base_commit)  # fmt: skip
    mails = tuple(sorted(path for path in folder.iterdir() if path.name[:4] != "0000"))
    return Written(series, folder, mails)


@dataclass
class _Check:
    """Applies each series to a fresh base, after the series that it names and no other."""

    fresh: Repository
    states: States
    written: Mapping[str, Written]
    # The commits after some series.
    _after: dict[tuple[str, ...], str] = field(default_factory=dict)

    def run(self) -> None:
        for name in self.written:
            order = (*(one.name for one in self.states.needs(name)), name)
            self.fresh.go_to(self._apply(order))
            *_, (_, files) = self.states.steps(name)
            for file, content in files.items():
                if read(self.fresh.folder / file) != content:
                    raise Failure(f"the series {name} makes another {file} than it should")

    def _apply(self, order: tuple[str, ...]) -> str:
        if not order:
            return self.fresh.base
        if order not in self._after:
            self.fresh.go_to(self._apply(order[:-1]))
            self.fresh.git("am", "-q", *self.written[order[-1]].mails,
                           what=f"git am of the series {', '.join(order)}")  # fmt: skip
            self._after[order] = self.fresh.head()
        return self._after[order]


def message(topic: Topic, sender: Sender) -> str:
    """A patch's message. Only a person signs off."""
    trailer = f"\n\nSigned-off-by: {sender.author}" if sender.author else ""
    return f"{topic.patch.subject}\n\n{topic.patch.body}{trailer}\n"


def _cover(clone: Path, series: Series, needs: Sequence[str], folder: Path, version: str,
           base_commit: str) -> None:  # fmt: skip
    """Fill in the cover letter: patches/NAME.cover, the series it needs, and its base."""
    source = clone / f"patches/{series.name}.cover"
    if not source.exists():
        raise Failure(f"the series {series.name} has no cover letter", f"write {source}")
    subject, _, text = source.read_text().strip().partition("\n\n")
    needed = f"\n\nIt goes on top of the series {', '.join(needs)}." if needs else ""
    text += f"{needed}\n\nBased on Linux {version}."
    if not base_commit:
        text += " There is no base-commit: the source was not a git tree."
    path = next(folder.glob("0000-*"))
    mail = path.read_text()
    mail = mail.replace("*** SUBJECT HERE ***", subject).replace("*** BLURB HERE ***", text)
    if base_commit:
        head, mark, tail = mail.rpartition("\n-- \n")
        mail = f"{head}\nbase-commit: {base_commit}{mark}{tail}"
    path.write_text(mail)
