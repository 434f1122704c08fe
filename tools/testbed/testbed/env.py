# SPDX-License-Identifier: GPL-2.0
"""Where things are: the clone, the cache, the output folder, the variables."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from testbed import settings
from testbed.build.arch import Arch
from testbed.host import proc
from testbed.host.ui import Failure, OutOfTime, begin_at, since_start
from testbed.settings import Settings


@dataclass(frozen=True)
class Env:
    """The settings and folders of a verb, read once."""

    settings: Settings
    clone: Path
    cache: Path
    out: Path
    root: Path
    kdir: Path | None
    llvm: str
    jobs: int

    @staticmethod
    def read(verb: str) -> Env:
        """Read the environment; a wrong value is a `Failure`."""
        values = settings.read(verb)
        # The caller may have made the build root before.
        if began := values.internal.get("SKBULK_BEGAN"):
            begin_at(float(began))
        clone = Path(__file__).resolve().parents[3]
        cache = values.path("XDG_CACHE_HOME") or Path.home() / ".cache"
        return Env(
            settings=values,
            clone=clone,
            cache=Path(values.internal.get("SKBULK_CACHE") or cache / "skbulk"),
            out=clone / "out",
            # Without a build root the host's own root takes its place.
            root=Path(values.internal.get("SKBULK_ROOT") or "/"),
            kdir=values.path("KDIR"),
            llvm=values.internal.get("SKBULK_LLVM", ""),
            jobs=values.number("JOBS", os.cpu_count() or 1),
        )

    def with_setting(self, name: str, text: str) -> Env:
        """The same with another value of a variable."""
        return replace(self, settings=self.settings.having(name, text))

    @cached_property
    def toolchain_key(self) -> str:
        """A key that differs between tool chains."""
        texts = []
        for tool in (f"clang{self.llvm}", "rustc", "bindgen", "make"):
            text = proc.output([tool, "-vV" if tool == "rustc" else "--version"])
            if text is None:
                raise Failure(f"the tool {tool} is missing or does not work",
                              "make doctor lists what is missing")  # fmt: skip
            texts.append(text)
        return short_hash(*texts)

    def guest_root(self, arch: Arch) -> Path:
        """The root file system of a virtual machine."""
        if arch.name == "":
            return self.root
        found = self.settings.internal.get(f"SKBULK_GUEST_{arch.name.upper()}", "")
        if not (Path(found) / ".skbulk-complete").exists():
            raise Failure(
                f"there is no root file system for {arch.name} guests",
                f"tools/buildroot foreign {arch.name} makes it",
            )
        return Path(found)

    @property
    def logs(self) -> Path:
        """The folder of log files, created on demand."""
        path = self.out / "logs"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def check_time(self) -> None:
        """Raise `OutOfTime` so many seconds after the start as LIMIT says."""
        if self.settings.given("LIMIT") and since_start() > float(self.settings.text("LIMIT")):
            raise OutOfTime

    @property
    def overlay_off(self) -> bool:
        """OVERLAY=0 requests the kernel without the series, with the C driver only."""
        return not self.settings.switch("OVERLAY")

    @property
    def drivers(self) -> list[str]:
        """The kernel's drivers that are compared: ours, and the C driver."""
        return ["c"] if self.overlay_off else ["rust", "c"]


def short_hash(*parts: str | bytes) -> str:
    """A 12-digit name for some content."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
        digest.update(b"\0")
    return digest.hexdigest()[:12]
