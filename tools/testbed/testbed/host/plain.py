# SPDX-License-Identifier: GPL-2.0
"""Plain roots: Debian as it is before skbulk, where commands of README.md are tried.

tools/buildroot makes one of each name with mmdebstrap, before the build root is entered; each
trial has a copy.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.env import Env
from testbed.host import proc
from testbed.host.ui import Failure

USER = "walker"
_CLONE = Path("home") / USER / "skbulk"
_EVERY_ID = "4294967295"


def not_here() -> str | None:
    """The reason why users of a root cannot be other users here."""
    ids = Path("/proc/self/uid_map").read_text().split()
    return None if ids[2] == _EVERY_ID else "a second user is not available without root"


def made(env: Env, name: str) -> Path:
    """The root of that name."""
    path = Path(env.settings.internal.get("SKBULK_PLAIN", "")) / name
    if not (path / "etc").exists():
        raise Failure(f"there is no root {name}: {path}", "make test ONLY=deb makes it")
    return path


@dataclass(frozen=True)
class Root:
    """A copy of a root."""

    env: Env
    folder: Path
    log: Path

    def run(self, what: str, *command: str) -> None:
        """Run a command as root; an error is a `Failure`."""
        program = self.env.clone / "tools/testbed/in-root"
        proc.run([program, self.folder, *command], self.log, what=what, watch=self.env.check_time)

    def run_as_user(self, command: str) -> None:
        """Run a command in the clone as the user, after a login."""
        self.run(command, "runuser", "-l", USER, "-c", f"cd skbulk && {command}")

    def add_user(self) -> Path:
        """Add a user with subordinate ids and a clone; returns the clone."""
        self.run("adding a user", "useradd", "-m", "-s", "/bin/bash", USER)
        place = self.copy_clone(_CLONE)
        self.run("giving the clone to the user", "chown", "-R", f"{USER}:{USER}", f"/{_CLONE}")
        return place

    def copy_clone(self, place: Path, *left_out: str) -> Path:
        """Copy the clone to a place in the root."""
        ignored = shutil.ignore_patterns("out", "__pycache__", *left_out)
        shutil.copytree(self.env.clone, self.folder / place, symlinks=True, ignore=ignored)
        return self.folder / place


@contextmanager
def copied(env: Env, name: str) -> Iterator[Root]:
    """A copy of a root, in the cache as it grows, removed at the end."""
    log = proc.fresh(env.logs / f"deb-{name}.log")
    with tempfile.TemporaryDirectory(prefix=f"walk-{name}-", dir=env.cache) as top:
        folder = Path(top) / "root"
        proc.run(["cp", "-a", made(env, name), folder], log, what="copying the root")
        # A user of the root goes through it.
        Path(top).chmod(0o755)
        yield Root(env, folder, log)


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a Containerfile, each with its text on one line."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    words = [line.partition(" ") for line in joined.splitlines()]
    return [(name, rest) for name, _, rest in words]
