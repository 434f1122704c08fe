# SPDX-License-Identifier: GPL-2.0
"""make patches: the kernel series as mails for git am, one topic per patch.

patches/README says how a topic is written down: its patch with the mail's
header, and next to it a list of the new files that belong to it.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from testbed import overlay, tree
from testbed.env import Env
from testbed.lock import Lock
from testbed.patching import Patch, read_series
from testbed.ui import Failure, Step, say

_IDENTITY = {
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "skbulk",
    "GIT_COMMITTER_EMAIL": "skbulk@localhost",
    "GIT_AUTHOR_NAME": "skbulk",
    "GIT_AUTHOR_EMAIL": "skbulk@localhost",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
}


@dataclass(frozen=True)
class Topic:
    """One mail of the series: a patch and the new files that come with it."""

    patch: Patch
    files: tuple[str, ...]


def _patterns(patch: Patch) -> list[str]:
    listing = patch.path.with_suffix(".files")
    if not listing.exists():
        return []
    lines = (line.split("#")[0].strip() for line in listing.read_text().splitlines())
    return [line for line in lines if line]


def topics(clone: Path) -> list[Topic]:
    """Sort the clone's new files into the topics of the series."""
    series = read_series(clone / "patches")
    if not series:
        raise Failure("patches/series lists no patch: there is no series to write")
    rules = {patch.path.name: _patterns(patch) for patch in series}
    used: set[tuple[str, str]] = set()
    members: dict[str, list[str]] = {name: [] for name in rules}
    homeless, twice = [], []
    for file in overlay.new_files(clone):
        homes = []
        for name, patterns in rules.items():
            hits = [one for one in patterns if fnmatch.fnmatchcase(file, one)]
            used.update((name, one) for one in hits)
            if hits:
                homes.append(name)
        if not homes:
            homeless.append(file)
        elif len(homes) > 1:
            twice.append(f"{file}: {', '.join(homes)}")
        else:
            members[homes[0]].append(file)
    if homeless:
        raise Failure(
            "these new files belong to no topic:",
            *homeless,
            "add them to the .files list next to the patch that they go with",
        )
    if twice:
        raise Failure("these new files belong to more than one topic:", *twice)
    stale = [
        f"{name}: {one}" for name, ones in rules.items() for one in ones if (name, one) not in used
    ]
    if stale:
        raise Failure("these lines of .files lists match no file:", *stale)
    return [Topic(patch, tuple(members[patch.path.name])) for patch in series]


def _git(repository: Path, *words: str | Path, what: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(repository), *[str(word) for word in words]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **_IDENTITY},
        check=False,
    )
    text = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        raise Failure(f"{what} failed", *text.strip().splitlines()[-8:])
    return text


def _start(folder: Path, base: Path, touched: list[str], version: str) -> Path:
    """A repository that holds the touched files as they are upstream."""
    folder.mkdir()
    for name in touched:
        source = base / name
        if source.is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    _git(folder, "init", "-q", "-b", "main", what="making a scratch repository")
    _git(folder, "add", "-A", "-f", what="adding the upstream files")
    _git(folder, "commit", "-q", "--allow-empty", "-m", f"Linux {version}",
         what="committing the upstream files")  # fmt: skip
    return folder


def write_series(clone: Path, base: Path, version: str, out: Path) -> list[str]:
    """Write the mails into `out`, verified by applying them to a fresh base."""
    wanted = overlay.wanted_files(clone, base)
    all_topics = topics(clone)
    touched = list(dict.fromkeys(n for topic in all_topics for n in topic.patch.touched))
    with tempfile.TemporaryDirectory(prefix="skbulk-series-") as name:
        scratch = _start(Path(name) / "write", base, touched, version)
        for topic in all_topics:
            patch = topic.patch.path
            if not topic.patch.touched:
                # Without a diff, git am must not see the line that announces one.
                patch = Path(name) / patch.name
                patch.write_text(topic.patch.text.split("\n---\n")[0] + "\n")
            _git(scratch, "am", "-q", "--empty=keep", patch, what=f"git am of {patch.name}")
            for file in topic.files:
                target = scratch / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(clone / file, target)
            _git(scratch, "add", "-A", "-f", what=f"adding the files of {patch.name}")
            _git(scratch, "commit", "-q", "--amend", "--no-edit", "--allow-empty",
                 what=f"committing {patch.name}")  # fmt: skip
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        _git(scratch, "format-patch", "-q", "-o", out, f"-{len(all_topics)}", "HEAD",
             what="git format-patch")  # fmt: skip
        mails = sorted(path.name for path in out.iterdir())
        check = _start(Path(name) / "check", base, touched, version)
        for mail in mails:
            _git(check, "am", "-q", out / mail, what=f"git am of the written {mail}")
        for file, content in wanted.items():
            path = check / file
            if (path.read_bytes() if path.is_file() else None) != content:
                raise Failure(f"the written series makes another {file} than the overlay")
    return mails


def patches(env: Env) -> int:
    """Write out/patches."""
    with Lock(tree.place(env) / "lock", "this kernel tree"):
        manifest = tree.place(env) / "overlay.json"
        work = tree.prepare(env, overlay.manifest_files(manifest))
    out = env.out / "patches"
    with Step(f"series against Linux {work.version}") as step:
        mails = write_series(env.clone, work.base, work.version, out)
        step.detail = f"{len(mails)} patches, applied with git am to check them"
    for mail in mails:
        say(f"    {out / mail}")
    return 0
