# SPDX-License-Identifier: GPL-2.0
"""make patches: the kernel series as mails for git am."""

from __future__ import annotations

from pathlib import Path

from testbed.env import Env
from testbed.host import proc
from testbed.host.lock import Lock
from testbed.host.ui import Step, say
from testbed.source import overlay, tree
from testbed.source.patches import Sender, write_series


def main(env: Env) -> int:
    """Write out/patches: a folder for each series, with its cover letter."""
    author, only = env.settings.text("AUTHOR"), env.settings.text("SERIES")
    with Lock(tree.place(env) / "lock", "this kernel tree"):
        manifest = tree.place(env) / "overlay.json"
        work = tree.prepare(env, overlay.manifest_files(manifest))
    out, commit = env.out / "patches", _base_commit(env)
    with Step(f"series against Linux {work.version}") as step:
        written = write_series(
            env.clone, work.base, work.version, out, Sender(author, commit), only
        )
        count = sum(len(one.mails) for one in written)
        step.detail = f"{count} patches, applied with git am to check them"
    for one in written:
        needs = f", after {', '.join(one.series.needs)}" if one.series.needs else ""
        say(f"    {one.folder}: {len(one.mails)} patches and a cover letter{needs}")
    for line in lacking(author, commit):
        say(line)
    say(f"git am --empty=drop {out}/*/*.patch applies them (cover letters are dropped)")
    return 0


def lacking(author: str, commit: str) -> list[str]:
    """The parts that the mails lack, and the variables that add them."""
    lines = []
    if not author:
        lines += [
            "No patch is signed off: only a person can do that.",
            'AUTHOR="Name <mail>" sets the sender, Signed-off-by and the maintainer.',
        ]
    if not commit:
        lines += [
            "No cover letter has a base-commit: the source is not a git tree.",
            "KDIR=FOLDER names one.",
        ]
    return lines


def _base_commit(env: Env) -> str:
    """The commit that KDIR stands at, where it is a git tree."""
    if env.kdir is None:
        return ""
    trust = f"safe.directory={env.kdir}"
    words: list[str | Path] = ["git", "-c", trust, "-C", env.kdir, "rev-parse", "HEAD"]
    return (proc.output(words) or "").strip()
