# SPDX-License-Identifier: GPL-2.0
"""Configures and builds the kernel in a folder of the cache."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from testbed import overlay, proc, tree, warnings
from testbed.env import Env, short_hash
from testbed.tree import Tree
from testbed.ui import Failure, Step, say

# In QEMU; the third one is for User-Mode Linux.
CONFIGS = ("perf", "debug", "kcsan")
UML = "uml"
_TARGET = {UML: "linux"}
_SET = re.compile(r"^(CONFIG_\w+)=(.*)$")
_BUILT_LINE = re.compile(r"^  [A-Z]+[A-Z. ]* +(\[M\] +)?\S+")
_RUST_DRIVER = "drivers/net/ethernet/intel/ixgbe/ixgbe_rust.rs"
_DRIVER_FOLDER = "drivers/net/ethernet/intel/ixgbe"


@dataclass(frozen=True)
class Kernel:
    """A built kernel."""

    tree: Tree
    config: str
    build: Path
    log: Path

    @property
    def image(self) -> Path:
        """What QEMU boots, or the program that is User-Mode Linux."""
        return self.build / ("linux" if self.config == UML else "arch/x86/boot/bzImage")

    @property
    def release(self) -> str:
        """The kernel's own name for itself."""
        path = self.build / "include/config/kernel.release"
        return path.read_text().strip() if path.exists() else self.tree.version

    @property
    def warnings(self) -> list[str]:
        """Warnings of the compiler and clippy about Rust code, also of earlier builds."""
        return sorted(warnings.known(self.build))

    def copy_modules(self, folder: Path) -> None:
        """Copy the modules, and nothing else of the large build, into a folder."""
        order = (self.build / "modules.order").read_text()
        for name in order.split():
            file = Path(name).with_suffix(".ko")
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.build / file, folder / file)
        (folder / "modules.order").write_text(order)

    def module(self, driver: str) -> Path:
        """The module of a driver: "rust" or "c"."""
        name = {"rust": "ixgbe_rust.ko", "c": "ixgbe.ko"}[driver]
        path = self.build / _DRIVER_FOLDER / name
        if not path.exists():
            raise Failure(
                f"the {driver} driver ({name}) was not built into {self.build}",
                f"log: {self.log}",
                "DRIVER=c runs the stock C driver" if driver == "rust" else "",
            )
        return path


def make_command(env: Env, source: Path, build: Path) -> list[str | Path]:
    """The kernel's make, with the tool chain that everything is built with."""
    words: list[str | Path] = [
        "make",
        "-C",
        source,
        f"O={build}",
        f"LLVM={env.llvm or '1'}",
        f"-j{env.jobs}",
    ]
    if build.name.startswith("build-uml"):
        words.append("ARCH=um")
    # The debug kernel is compiled by clippy: make test reads its warnings.
    return [*words, "CLIPPY=1"] if build.name.startswith("build-debug") else words


def _build_env() -> dict[str, str]:
    # Same input, same output: no build host, user or time in the image.
    return {
        "KBUILD_BUILD_TIMESTAMP": "2026-01-01",
        "KBUILD_BUILD_USER": "skbulk",
        "KBUILD_BUILD_HOST": "skbulk",
    }


def read_fragment(text: str) -> dict[str, str]:
    """The symbols that a fragment sets, in order; later lines win."""
    return {m[1]: m[2] for line in text.splitlines() if (m := _SET.match(line))}


def missing_symbols(wanted: dict[str, str], config: str) -> list[str]:
    """The symbols that the final configuration does not have as asked for."""
    have = read_fragment(config)
    return [
        f"{name}={value} (it is {have.get(name, 'not set')})"
        for name, value in wanted.items()
        if have.get(name, "n") != value
    ]


def fragment(env: Env, config: str, work: Path) -> str:
    """The text of the fragments of one configuration."""
    folder = env.clone / "tools/testbed/configs"
    names = ["common", config] if config == UML else ["common", "qemu", config]
    text = "".join((folder / f"{name}.config").read_text() for name in names)
    if not (work / _RUST_DRIVER).exists():
        say("    note: this tree has no Rust driver; only the C driver is built")
        text += "CONFIG_IXGBE_RUST=n\n"
    return text


def _kconfig_state(work: Path) -> str:
    """A name for the Kconfig files that the overlay changes."""
    manifest = work.parent / "overlay.json"
    parts = []
    for name in overlay.manifest_files(manifest):
        path = work / name
        if path.name.startswith("Kconfig") and path.exists():
            parts.append(f"{name} {short_hash(path.read_bytes())}")
    return "\n".join(parts)


def _configure(env: Env, source: Path, build: Path, config: str, log: Path) -> None:
    text = fragment(env, config, source)
    state = short_hash(text, _kconfig_state(source), str(source))
    stamp = build / ".skbulk-config"
    if stamp.exists() and stamp.read_text() == state and (build / ".config").exists():
        return
    stamp.unlink(missing_ok=True)
    build.mkdir(parents=True, exist_ok=True)
    frag = build / ".skbulk-fragment"
    frag.write_text(text)
    make = make_command(env, source, build)
    proc.run([*make, "-s", "rustavailable"], log, what="the check for a usable Rust tool chain")
    proc.run(
        [*make, "-s", "allnoconfig"],
        log,
        what="configuring the kernel",
        env={"KCONFIG_ALLCONFIG": str(frag), **_build_env()},
    )
    missing = missing_symbols(read_fragment(text), (build / ".config").read_text())
    if missing:
        raise Failure(
            f"the {config} configuration cannot be had on this tree:",
            *missing,
            f"tools/testbed/configs/ asks for them; the result is {build / '.config'}",
        )
    stamp.write_text(state)


def build_folder(env: Env, config: str) -> Path:
    """Where the kernel of a configuration is built."""
    return tree.place(env) / f"build-{config}-{env.toolchain_key}"


def prepare_tree(env: Env) -> Tree:
    """The kernel tree with the overlay laid on it. The caller holds the lock."""
    manifest = tree.place(env) / "overlay.json"
    work = tree.prepare(env, overlay.manifest_files(manifest))
    wanted = {} if env.overlay_off else overlay.wanted_files(env.clone, work.base)
    laid = overlay.apply(work, wanted)
    say(f"    overlay: {laid}")
    return work


def build(env: Env, work: Tree, config: str) -> Kernel:
    """Build the kernel and its modules. The caller holds the tree's lock."""
    folder = build_folder(env, config)
    log = env.logs / f"kernel-{config}.log"
    log.unlink(missing_ok=True)
    with Step(f"kernel: Linux {work.version}, {config} configuration") as step:
        _configure(env, work.work, folder, config, log)
        done = _Counter(log)

        def watch() -> None:
            step.detail = f"{done.count()} files built"

        proc.run(
            [*make_command(env, work.work, folder), _TARGET.get(config, "bzImage"), "modules"],
            log,
            what=f"the {config} kernel's build",
            env=_build_env(),
            watch=watch,
        )
        warnings.update(folder, log.read_text(errors="replace"))
        step.detail = f"{done.count()} files built"
    return Kernel(work, config, folder, log)


class _Counter:
    """Counts the lines of a growing make log that name a built file."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._seen = 0
        self._count = 0

    def count(self) -> int:
        with self._log.open("rb") as file:
            file.seek(self._seen)
            data = file.read()
        end = data.rfind(b"\n") + 1
        self._seen += end
        for line in data[:end].decode(errors="replace").splitlines():
            if _BUILT_LINE.match(line):
                self._count += 1
        return self._count
