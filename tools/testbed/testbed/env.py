# SPDX-License-Identifier: GPL-2.0
"""Where things are: the clone, the cache, the output folder, the variables."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from testbed import proc
from testbed.ui import Failure


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    if not text.isdigit() or int(text) == 0:
        raise Failure(f"{name}={text} is not a positive number")
    return int(text)


@dataclass(frozen=True)
class Env:
    """Everything that a verb takes from its surroundings, read once."""

    clone: Path
    cache: Path
    out: Path
    root: Path
    kdir: Path | None
    llvm: str
    jobs: int

    @staticmethod
    def read() -> Env:
        """Read the environment; complain about what makes no sense."""
        clone = Path(__file__).resolve().parents[3]
        home_cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        cache = Path(os.environ.get("SKBULK_CACHE") or Path(home_cache) / "skbulk")
        kdir_text = os.environ.get("KDIR", "")
        kdir = Path(kdir_text).resolve() if kdir_text else None
        if kdir is not None and not kdir.is_dir():
            raise Failure(f"KDIR={kdir_text} is not a folder")
        return Env(
            clone=clone,
            cache=cache,
            out=Path(os.environ.get("SKBULK_OUT") or clone / "out"),
            # Without a build root the host's own root takes its place.
            root=Path(os.environ.get("SKBULK_ROOT") or "/"),
            kdir=kdir,
            llvm=os.environ.get("SKBULK_LLVM", ""),
            jobs=_number("JOBS", os.cpu_count() or 1),
        )

    @cached_property
    def toolchain_key(self) -> str:
        """Tells build folders of different tool chains apart."""
        tools = ([f"clang{self.llvm}"], ["rustc", "-vV"], ["bindgen"], ["make"])
        texts = []
        for words in tools:
            command = words if len(words) > 1 else [*words, "--version"]
            text = proc.output(command)
            if text is None:
                raise Failure(
                    f"the tool {words[0]} is missing or does not work",
                    "make doctor lists what is missing",
                )
            texts.append(text)
        return short_hash(*texts)

    @property
    def logs(self) -> Path:
        """The folder of log files; made when asked for."""
        path = self.out / "logs"
        path.mkdir(parents=True, exist_ok=True)
        return path

    @property
    def overlay_off(self) -> bool:
        """OVERLAY=0 asks for the kernel as it came, with the C driver only."""
        return os.environ.get("OVERLAY", "1") == "0"


def short_hash(*parts: str | bytes) -> str:
    """A 12-digit name for some content."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part)
        digest.update(b"\0")
    return digest.hexdigest()[:12]
