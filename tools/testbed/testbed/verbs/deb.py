# SPDX-License-Identifier: GPL-2.0
"""make deb: kernel packages for a machine with a real card."""

import shutil
import subprocess
from pathlib import Path

from testbed.build import kernel
from testbed.env import Env
from testbed.host import proc
from testbed.host.lock import Lock
from testbed.host.ui import Failure, say
from testbed.source import tree

DRIVERS = ("ixgbe_rust", "ixgbe")


def build(env: Env) -> Path:
    """Build the packages; returns the folder that holds them, and nothing else."""
    out = env.out / "deb"
    with Lock(tree.place(env) / "lock", "this kernel tree"):
        made = kernel.packages(env, kernel.prepare_tree(env))
        take(made, out)
    return out


def main(env: Env) -> int:
    """Build the packages, check them, and print how to install them."""
    out = build(env)
    for path in sorted(out.glob("*.deb")):
        say(f"{path}  ({path.stat().st_size >> 20} MB)")
    missing = missing_drivers(out, ("ixgbe",) if env.overlay_off else DRIVERS)
    if missing:
        raise Failure(f"the packages lack the module {missing[0]}.ko", f"they are in {out}")
    say("On the machine with the card: apt install ./linux-image-*.deb, boot it, then")
    say("modprobe -r ixgbe ixgbe_rust; modprobe ixgbe_rust. One driver has the card at a time;")
    say("udev loads both, and ports that one of them leaves are not offered to the other.")
    return 0


def take(made: kernel.Kernel, out: Path) -> None:
    """Take over the packages, which the kernel's build leaves beside its folder."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for path in sorted(made.build.parent.glob(f"linux-*{made.release}*.deb")):
        # Cache and clone are often on different file systems: in the build root, always.
        shutil.move(path, out / path.name)


def contents(package: Path) -> list[str]:
    """The files in a package."""
    done = proc.capture(["dpkg-deb", "--contents", package], stderr=subprocess.DEVNULL)
    if done.returncode:
        raise Failure(f"{package} is no package that can be read")
    # Mode, owner, size, date, time, name.
    rows = [line.split(maxsplit=5) for line in done.stdout.splitlines()]
    return [name for mode, *_, name in rows if not mode.startswith("d")]


def missing_drivers(folder: Path, drivers: tuple[str, ...]) -> list[str]:
    """The drivers that no package of the folder has."""
    names = [name for path in folder.glob("*.deb") for name in contents(path)]
    return [one for one in drivers if not any(f"/{one}.ko" in name for name in names)]
