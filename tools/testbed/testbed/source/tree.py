# SPDX-License-Identifier: GPL-2.0
"""The kernel tree: Debian's source or the user's own, never changed itself."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from testbed.env import Env, short_hash
from testbed.host import proc
from testbed.host.lock import Lock
from testbed.host.ui import Failure, Step, say

# The version of the series. With another one the patches may not apply.
WANTED = (7, 3)
_SOURCE = "linux-source-7.3"
# Beside a copy of Debian's source: the name of that.
_STAMP = "tree.stamp"
# Patterns for rsync.
_LEFTOVERS = Path(__file__).with_name("leftovers.txt")


@dataclass(frozen=True)
class Tree:
    """A kernel tree that the overlay may be laid on.

    `base` is never changed. `work` is a copy that may be made of hard links: files
    in it are replaced, never written to.
    """

    base: Path
    work: Path
    version: str
    # A name for the content of `work`, if it cannot change unnoticed.
    state: str = ""

    @property
    def manifest(self) -> Path:
        """The file that lists the files of the overlay."""
        return self.work.parent / "overlay.json"


def version_of(tree: Path) -> tuple[int, int, str]:
    """Version, patch level and full name from the tree's Makefile, as settings.py has found it."""
    text = (tree / "Makefile").read_text(errors="replace")[:4000]
    found = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*)", text, re.M))
    major, minor = int(found["VERSION"]), int(found["PATCHLEVEL"])
    full = f"{major}.{minor}.{found.get('SUBLEVEL', '0')}{found.get('EXTRAVERSION', '')}"
    return major, minor, full


def _tarball(env: Env) -> Path:
    for root in (env.root, Path("/")):
        path = root / "usr/src" / f"{_SOURCE}.tar.xz"
        if path.exists():
            return path
    raise Failure(
        f"the kernel source ({_SOURCE}.tar.xz) is not installed",
        f"install Debian's package {_SOURCE} (trixie-backports),",
        "or set KDIR to a Linux 7.3 tree",
    )


def _source_key(env: Env) -> str:
    tarball = _tarball(env)
    info = tarball.stat()
    return short_hash(tarball.name, str(info.st_size), str(int(info.st_mtime)))


def _unpack(env: Env) -> Path:
    """Unpack Debian's source into the cache, once per version of it."""
    tarball, base = _tarball(env), _source(env)
    # The trees of the series and of OVERLAY=0 have one source, and locks of their own.
    with Lock(env.cache / f"{base.name}.lock", "the kernel source"):
        if base.is_dir():
            return base
        part = base.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        with Step(f"kernel source: unpacking {tarball.name}"):
            proc.run(
                ["tar", "-xJf", tarball, "--strip-components=1", "--no-same-owner", "-C", part],
                env.logs / "unpack.log", what="unpacking the kernel source",
            )  # fmt: skip
        part.rename(base)
    return base


def _copy(env: Env, base: Path, work: Path, keep: list[str]) -> None:
    """Bring `work` up to `base`, leaving the files in `keep`."""
    work.mkdir(parents=True, exist_ok=True)
    exclude = work.parent / "overlay.exclude"
    exclude.write_text("".join(f"/{name}\n" for name in keep))
    # Files of the cache are shared; the user's own are copied (and may lie on
    # another file system, to which there are no hard links).
    options = [f"--link-dest={base}"] if base.parent == env.cache else []
    options += [f"--exclude-from={exclude}", f"--exclude-from={_LEFTOVERS}"]
    command = ["rsync", "-a", "--delete", *options, f"{base}/", f"{work}/"]
    proc.run(command, env.logs / "unpack.log", what="copying the kernel tree")


def place(env: Env) -> Path:
    """The folder of the cache with this base's tree, builds and lock."""
    kind, key = ("kdir", short_hash(str(env.kdir))) if env.kdir else ("debian", _source_key(env))
    return env.cache / f"{kind}-{key}{'-plain' if env.overlay_off else ''}"


def existing(env: Env) -> Tree | None:
    """The tree as prepared before, if it is up to date."""
    if env.kdir is not None:
        return None
    folder, base = place(env), _source(env)
    if not (_is_copied(folder, base) and base.is_dir()):
        return None
    return Tree(base, folder / "tree", version_of(base)[2])


def _source(env: Env) -> Path:
    """The folder of the cache for Debian's source."""
    return env.cache / f"linux-{_source_key(env)}"


def _is_copied(folder: Path, base: Path) -> bool:
    return proc.text_of(folder / _STAMP) == base.name


def prepare(env: Env, laid: list[str]) -> Tree:
    """The tree to lay the overlay on; `laid` are files that the overlay owns already."""
    folder = place(env)
    work = folder / "tree"
    if env.kdir is not None:
        major, minor, version = version_of(env.kdir)
        if (major, minor) != WANTED and not env.overlay_off:
            say(f"note: {env.kdir} is Linux {version}; the series is made for "
                f"{WANTED[0]}.{WANTED[1]} and may not apply")  # fmt: skip
        with Step(f"kernel source: copying {env.kdir} (Linux {version})"):
            _copy(env, env.kdir, work, laid)
        return Tree(env.kdir, work, version)
    base = _unpack(env)
    _, _, version = version_of(base)
    if not _is_copied(folder, base):
        with Step(f"kernel source: Linux {version}"):
            _copy(env, base, work, laid)
        (folder / _STAMP).write_text(base.name)
    return Tree(base, work, version)
