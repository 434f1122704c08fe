# SPDX-License-Identifier: GPL-2.0
"""make patches: the kernel series as mails for git am."""

import time
from pathlib import Path

from testbed.env import Env
from testbed.host import proc
from testbed.host.lock import Lock
from testbed.host.ui import Step, say
from testbed.settings import Settings
from testbed.source import overlay, tree
from testbed.source.patches import Sender, write_series


def main(env: Env) -> int:
    """Write out/patches: a folder for each series, with its cover letter."""
    only, commit = env.settings.text("SERIES"), _base_commit(env)
    sender = sender_of(env.settings, commit)
    with Lock(tree.place(env) / "lock", "this kernel tree"):
        manifest = tree.place(env) / "overlay.json"
        work = tree.prepare(env, overlay.manifest_files(manifest))
    out = env.out / "patches"
    with Step(f"series against Linux {work.version}") as step:
        written = write_series(env.clone, work.base, work.version, out, sender, only)
        count = sum(len(one.mails) for one in written)
        step.detail = f"{count} patches, applied with git am to check them"
    for one in written:
        needs = f", after {', '.join(one.series.needs)}" if one.series.needs else ""
        say(f"    {one.folder}: {len(one.mails)} patches and a cover letter{needs}")
    say(*lacking(sender.author, commit))
    say(f"git am --empty=drop {out}/*/*.patch applies them (cover letters are dropped)")
    return 0


def sender_of(settings: Settings, commit: str) -> Sender:
    """The sender that the variables describe."""
    now = settings.internal.get("SOURCE_DATE_EPOCH") or time.time()
    return Sender(
        author=settings.text("AUTHOR"),
        base_commit=commit,
        version=settings.number("VERSION"),
        when=int(now),
    )


def lacking(author: str, commit: str) -> list[str]:
    """The parts that the mails lack, and the variables that add them."""
    sign_off = ('No patch is signed off, only a person can do that: AUTHOR="Name <mail>" sets the '
                "sender, Signed-off-by and the maintainer.")  # fmt: skip
    base = "No cover letter has a base-commit: KDIR=FOLDER names a git tree."
    return [*([] if author else [sign_off]), *([] if commit else [base])]


def _base_commit(env: Env) -> str:
    """The commit that KDIR stands at, where it is a git tree."""
    if env.kdir is None:
        return ""
    trust = f"safe.directory={env.kdir}"
    words: list[str | Path] = ["git", "-c", trust, "-C", env.kdir, "rev-parse", "HEAD"]
    return (proc.output(words) or "").strip()
