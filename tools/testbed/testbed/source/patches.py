# SPDX-License-Identifier: GPL-2.0
"""The kernel series as mails for git am, one topic per patch.

patches/README explains the files of a topic and of a series.
"""

import re
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testbed.host import proc
from testbed.host.ui import Failure
from testbed.settings import child_environment
from testbed.source import maintainers
from testbed.source.figures import Figures
from testbed.source.patching import Series, copy_files, read, touched_files, write
from testbed.source.states import Files, States
from testbed.source.topics import Topic

# The sender of the mails without AUTHOR: not a person, so there is no sign-off.
NOBODY = "skbulk <skbulk@localhost>"
# netdev takes no longer series.
MOST_PATCHES = 15


class Repository:
    """A scratch repository of the files that the series touches, as they are upstream."""

    def __init__(self, folder: Path, base: Path, touched: Sequence[str], version: str,
                 author: str, when: int) -> None:  # fmt: skip
        self.folder = folder
        self._when = when
        name, _, mail = author.removesuffix(">").rpartition(" <")
        self._identity = {
            "GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": mail,
            "GIT_COMMITTER_NAME": name, "GIT_COMMITTER_EMAIL": mail,
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
        }  # fmt: skip
        folder.mkdir()
        copy_files(base, folder, touched)
        self.git("init", "-q", "-b", "main", what="making a scratch repository")
        self.commit(f"Linux {version}")
        self.base = self.head()

    def git(self, *words: str | Path, what: str, later: int = 0) -> str:
        """Run git there, some seconds later than the other commits."""
        command: list[str | Path] = ["git", "-C", self.folder, *words]
        date = f"@{self._when + later} +0000"
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        done = proc.capture(command, env=child_environment(**self._identity, **dates))
        if done.returncode != 0:
            raise Failure(f"{what} failed", *done.stdout.strip().splitlines()[-8:])
        return done.stdout

    def commit(self, message: str, later: int = 0) -> None:
        """Commit all changes."""
        self.git("add", "-A", "-f", what="adding files")
        self.git("commit", "-q", "--allow-empty", "-m", message, later=later,
                 what=f"committing {message[:60]}")  # fmt: skip

    def head(self) -> str:
        """The commit that it stands at."""
        return self.git("rev-parse", "HEAD", what="git rev-parse").strip()

    def go_to(self, commit: str) -> None:
        """Stand at a commit, with its files."""
        self.git("checkout", "-q", "--detach", commit, what="git checkout")


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
    # The number of the posting, from 1 on.
    version: int = 1
    # The date of the cover letter, in seconds; each mail is one second later.
    when: int = field(default_factory=lambda: int(time.time()))


def write_series(
    clone: Path, base: Path, version: str, out: Path, sender: Sender = Sender(), only: str = ""
) -> list[Written]:
    """Write the mails into folders of `out`, verified by applying them to a fresh base."""
    states = States(clone, base, sender.author)
    if only and only not in states.series:
        names = ", ".join(states.series)
        raise Failure(f"SERIES={only}: there is no such series", f"there are {names}")
    touched = [*touched_files(topic.patch for topic in states.topics), maintainers.FILE]
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="skbulk-series-") as name:
        folder = Path(name)
        author = sender.author or NOBODY
        scratch = Repository(folder / "write", base, touched, version, author, sender.when)
        writer = _Writer(scratch, states, clone, version, sender, Figures(clone))
        needed = [*(one.name for one in states.needs(only)), only] if only else states.series
        written = {one: writer.write(one, out / f"{number:02}-{one}")
                   for number, one in enumerate(states.series, 1) if one in needed}  # fmt: skip
        fresh = Repository(folder / "check", base, touched, version, NOBODY, sender.when)
        _Check(fresh, states, written).run()
    for one in [one for one in written if only not in ("", one)]:
        shutil.rmtree(written.pop(one).folder)
    return list(written.values())


@dataclass(frozen=True)
class _Writer:
    """Writes each series on top of those that it needs and of no other."""

    scratch: Repository
    states: States
    clone: Path
    version: str
    sender: Sender
    figures: Figures

    def write(self, name: str, folder: Path) -> Written:
        """The mails of one series."""
        series, scratch = self.states.series[name], self.scratch
        scratch.go_to(scratch.base)
        for later, (topic, files) in enumerate(self.states.steps(name)):
            _put(scratch, files, self.clone)
            if topic is None:
                scratch.commit("the series that it needs")
                scratch.git("tag", f"before-{name}", what="tagging")
                continue
            scratch.commit(message(topic, self.sender, self.figures), later)
        scratch.git("format-patch", "-q", "--cover-letter", "-o", folder,
                    f"--subject-prefix={prefix(series, self.sender)}",
                    f"before-{name}..HEAD", what="git format-patch")  # fmt: skip
        cover, *mails = sorted(folder.iterdir())
        self._cover(series, cover)
        return Written(series, folder, tuple(mails))

    def _cover(self, series: Series, path: Path) -> None:
        """Fill in the cover letter: patches/NAME.cover, the series it needs, and its base."""
        source = self.clone / f"patches/{series.name}.cover"
        if not source.exists():
            raise Failure(f"the series {series.name} has no cover letter", f"write {source}")
        subject, _, text = source.read_text().strip().partition("\n\n")
        text = self.figures.fill(text, source.name)
        needs = [one.name for one in self.states.needs(series.name)]
        needed = f"\n\nIt goes on top of the series {', '.join(needs)}." if needs else ""
        text += f"{needed}\n\nBased on Linux {self.version}."
        commit = self.sender.base_commit
        if not commit:
            text += " There is no base-commit: the source was not a git tree."
        mail = path.read_text()
        mail = mail.replace("*** SUBJECT HERE ***", subject).replace("*** BLURB HERE ***", text)
        if commit:
            head, mark, tail = mail.rpartition("\n-- \n")
            mail = f"{head}\nbase-commit: {commit}{mark}{tail}"
        path.write_text(mail)


def prefix(series: Series, sender: Sender) -> str:
    """The words in brackets before the number of a mail."""
    version = f"v{sender.version}" if sender.version > 1 else ""
    return " ".join(word for word in ("PATCH", series.tree, version) if word)


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


# The last paragraph of a message that has tags of its own.
_TAGS = re.compile(r"(?:[A-Z][\w-]+: \S.*(?:\n|$))+")


def message(topic: Topic, sender: Sender, figures: Figures) -> str:
    """A patch's message. Only a person signs off."""
    patch = topic.patch
    body = figures.fill(patch.body, patch.path.name)
    gap = "\n" if _TAGS.fullmatch(body.rpartition("\n\n")[2]) else "\n\n"
    sign_off = f"{gap}Signed-off-by: {sender.author}" if sender.author else ""
    return f"{patch.subject}\n\n{body}{sign_off}\n"
