# SPDX-License-Identifier: GPL-2.0
"""Programs that the build root does not have: of a newer Debian, or needed by few."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from testbed.env import Env, short_hash
from testbed.host import proc
from testbed.host.lock import Lock
from testbed.host.ui import Failure, Step

# The build root's, and a newer one.
OWN, NEWER = "trixie", "forky"


def unpacked(env: Env, name: str, packages: Sequence[str], release: str = NEWER) -> Path:
    """A folder of the cache with the files of some packages of a release, fetched once."""
    folder = env.cache / f"{name}-{release}-{short_hash(*packages)}"
    with Lock(env.cache / f"{folder.name}.lock", name):
        if not folder.is_dir():
            _fetch(env, name, packages, release, folder)
    return folder


def _fetch(env: Env, name: str, packages: Sequence[str], release: str, folder: Path) -> None:
    sources = (env.root / "etc/apt/sources.list").read_text(errors="replace")
    mirror = re.search(r"^deb (?:\[[^]]*\] )?(\S+)", sources, re.M)
    if mirror is None:
        raise Failure("the build root names no Debian mirror", f"{name} cannot be fetched")
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    for place in ("apt/lists/partial", "apt/cache/archives/partial", "root"):
        (part / place).mkdir(parents=True)
    (part / "apt/list").write_text(f"deb {mirror[1]} {release} main\n")
    options = [
        f"Dir::State::lists={part}/apt/lists", f"Dir::Cache={part}/apt/cache",
        f"Dir::Etc::SourceList={part}/apt/list", "Dir::Etc::SourceParts=/dev/null",
        "APT::Sandbox::User=", "Debug::NoLocking=1",
        # The mirror may be a snapshot: its signature counts.
        "Acquire::Check-Valid-Until=false",
    ]  # fmt: skip
    apt = ["apt-get", *(word for one in options for word in ("-o", one))]
    log = proc.fresh(env.logs / f"{name}-fetch.log")
    with Step(f"{name}: fetching it from Debian"):
        proc.run([*apt, "update"], log, what="reading the package lists", timeout=300)
        proc.run([*apt, "download", *packages], log, what=f"fetching {name}",
                 cwd=part / "apt", timeout=300)  # fmt: skip
        for package in sorted((part / "apt").glob("*.deb")):
            proc.run(["dpkg-deb", "-x", package, part / "root"], log, what=f"unpacking {name}")
    (part / "root").rename(folder)
    shutil.rmtree(part)
