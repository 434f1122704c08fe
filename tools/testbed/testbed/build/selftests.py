# SPDX-License-Identifier: GPL-2.0
"""Builds and installs the kernel's own selftests, for programs that run in a guest.

The kernel's `make kselftest-install` does it, from the overlaid tree. Some artifacts go beside
their sources, so it works in a copy of the tree, made of hard links, and leaves the tree alone.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from testbed.build import kernel
from testbed.env import Env, short_hash
from testbed.host import proc
from testbed.host.ui import Failure, Step
from testbed.source import tree

# The folders of tools/testing/selftests that are built and installed.
TARGETS = ("drivers/net", "drivers/net/hw", "net/lib", "net", "ptp", "tc-testing")
# Builds programs of selftests/bpf, and has scripts that run them and xdp-tools. The makefile of
# that folder builds libbpf, bpftool and hundreds of other programs.
BPF = "tools/testbed/guest/bpf"
_LIST = "kselftest-list.txt"
_SELFTESTS = "tools/testing/selftests"
# Inputs of the build, apart from the exported headers of the rest of the tree.
_INPUTS = (
    *(f"{_SELFTESTS}/{name}" for name in ("drivers/net", "net", "ptp", "tc-testing", "kselftest")),
    f"{_SELFTESTS}/lib.mk", f"{_SELFTESTS}/Makefile", f"{_SELFTESTS}/kselftest.h",
    f"{_SELFTESTS}/kselftest_harness.h", "tools/net/ynl", "tools/lib/bpf", "tools/include",
    "tools/scripts", "Documentation/netlink", "include/uapi", "arch/x86/include/uapi",
    *(f"{_SELFTESTS}/bpf/{name}" for name in ("xskxceiver.c", "xsk.c", "prog_tests/test_xsk.c",
                                              "progs/xsk_xdp_progs.c", "xdp_features.c",
                                              "progs/xdp_features.c")),
)  # fmt: skip
# Installed without a build: a change of one compiles nothing.
_SCRIPTS = (".py", ".sh", ".json")
_PROGRAMS = (".py", ".sh")


@dataclass(frozen=True)
class Selftests:
    """The installed selftests."""

    folder: Path

    def programs(self, *collections: str) -> list[str]:
        """The programs of some folders, as paths below `folder`.

        These are the ones that the folder's runner calls, and executable scripts.
        """
        found = set()
        for line in (self.folder / _LIST).read_text().splitlines():
            collection, _, name = line.partition(":")
            if collection in collections:
                found.add(f"{collection}/{name}")
        for collection in collections:
            for path in (self.folder / collection).iterdir():
                if path.suffix in _PROGRAMS and os.access(path, os.X_OK):
                    found.add(f"{collection}/{path.name}")
        return sorted(found)

    def copy(self, folder: Path) -> None:
        """Copy them for one run: the next build may replace the installation."""
        shutil.copytree(self.folder, folder, symlinks=True)


def build(env: Env, work: tree.Tree) -> Selftests:
    """Build and install them unless they are up to date. The caller holds the tree's lock."""
    folder = tree.place(env) / f"build-programs-{env.toolchain_key}"
    installed, stamp = folder / "installed", folder / "installed.stamp"
    compiled, scripts = _states(env, work.work)
    bpf = env.clone / BPF
    scripts += short_hash(*(path.read_text() for path in sorted(bpf.iterdir())))
    if proc.text_of(stamp) != compiled + scripts:
        with Step("the kernel's selftests: drivers/net, net, ptp, tc-testing, bpf"):
            stamp.unlink(missing_ok=True)
            log = proc.fresh(env.logs / "selftests-build.log")
            _copy_tree(work.work, folder, log)
            if proc.text_of(folder / "compiled.stamp") != compiled:
                # The rules of the selftests do not know which headers they depend on.
                (folder / "compiled.stamp").unlink(missing_ok=True)
                shutil.rmtree(folder / "objects/kselftest", ignore_errors=True)
            shutil.rmtree(installed, ignore_errors=True)
            _make(env, folder, installed, log)
            shutil.copytree(bpf, installed / "bpf", symlinks=True)
            words = (folder / "source", f"clang{env.llvm}", installed / "bpf")
            proc.run([bpf / "build", *words], log, what="the build of selftests/bpf")
            (folder / "compiled.stamp").write_text(compiled)
            stamp.write_text(compiled + scripts)
    return Selftests(installed)


def _states(env: Env, work: Path) -> tuple[str, str]:
    """Hashes of the compiled inputs, and of those installed without a build."""
    compiled: list[str] = []
    scripts: list[str] = []
    for path in _files(work, _INPUTS):
        info = path.stat()
        line = f"{path.relative_to(work)} {info.st_size} {info.st_mtime_ns}"
        (scripts if path.suffix in _SCRIPTS else compiled).append(line)
    # pyynl generates sources.
    compiled += [line for line in scripts if line.startswith("tools/net/ynl/")]
    return short_hash(env.toolchain_key, str(env.root), *compiled), short_hash(*scripts)


def _files(work: Path, names: Iterable[str]) -> Iterator[Path]:
    for name in names:
        if (work / name).is_file():
            yield work / name
        for folder, folders, files in os.walk(work / name):
            folders.sort()
            yield from (Path(folder, file) for file in sorted(files))


def _copy_tree(work: Path, folder: Path, log: Path) -> None:
    """Bring the copy up to date, without artifacts of earlier builds."""
    source = folder / "source"
    source.mkdir(parents=True, exist_ok=True)
    command = ["rsync", "-a", "--delete", f"--link-dest={work}", f"{work}/", f"{source}/"]
    proc.run(command, log, what="copying the kernel tree for its selftests")


def _make(env: Env, folder: Path, installed: Path, log: Path) -> None:
    make = [
        *kernel.make_command(env, folder / "source", folder / "objects"),
        # The selftests' makefiles know LLVM=, but compile BPF with CLANG=.
        f"CLANG=clang{env.llvm}",
    ]
    # The architecture is that of the programs, also for guests in User-Mode Linux, which has no
    # exported headers. The makefile wants some configuration to be there.
    proc.run([*make, "-s", "allnoconfig"], log, what="configuring the kernel's selftests")
    proc.run(
        [*make, "-k", f"TARGETS={' '.join(TARGETS)}", f"KSFT_INSTALL_PATH={installed}",
         "kselftest-install"],
        log,
        what="the build of the kernel's selftests",
    )  # fmt: skip
    if not (installed / _LIST).exists():
        raise Failure("kselftest-install installed no selftests", f"log: {log}")
