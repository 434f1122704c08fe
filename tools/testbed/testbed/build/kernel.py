# SPDX-License-Identifier: GPL-2.0
"""Configures and builds the kernel in a folder of the cache."""

import re
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from testbed.boot.card import CARDS, MODELLED
from testbed.build import arch, precompiled, warnings
from testbed.build.config import Fragment, extra_fragments, fragments, merged, missing_symbols
from testbed.env import Env, short_hash
from testbed.host import proc
from testbed.host.aside import Watch
from testbed.host.lock import Lock
from testbed.host.torn import mended
from testbed.host.ui import Failure, Step, say
from testbed.source import overlay, tree
from testbed.source.tree import Tree

# In QEMU; then the ones for User-Mode Linux and for a real machine.
CONFIGS = ("perf", "debug", "kcsan", "memory", "tiny", "cfi", "rt", "arm64", "arm")
UML = "uml"
# For the kernel's own tests of drivers, in User-Mode Linux, too; and in QEMU.
SELFTESTS = "selftests"
SELFTESTS_VM = "selftestsvm"
# Without CONFIG_SMP.
UP = "up"
NATIVE = (UML, SELFTESTS, UP)
# With a card inside that lies, by the value of CONFIG.
FUZZ = "fuzz"
FUZZERS = {"perf": FUZZ, "debug": "fuzzcheck"}
DEB = "deb"
# That of User-Mode Linux, with defects.
SEEDED = f"{UML}-seeded"
# Configurations that have few symbols more than another, whose build theirs begins with.
_LIKE = {SELFTESTS: UML}
# In a build folder: the state of all that the finished build was made from.
_FINISHED = ".skbulk-finished"
# In a build folder: the modules to which the last build was limited; empty after all.
_SOME = ".skbulk-some-modules"
_BUILT_LINE = re.compile(r"^  [A-Z]+[A-Z. ]* +(?:\[M\] +)?\S+", re.M)


@dataclass(frozen=True)
class Kernel:
    """A built kernel."""

    tree: Tree
    config: str
    build: Path
    log: Path

    @property
    def image(self) -> Path:
        """The image for QEMU, or the program of User-Mode Linux."""
        return self.build / arch.of(self.config).image

    @property
    def release(self) -> str:
        """The kernel's own name for itself."""
        found = proc.text_of(self.build / "include/config/kernel.release").strip()
        return found or self.tree.version

    @property
    def warnings(self) -> list[str]:
        """Warnings of the compiler and clippy about Rust code, also of earlier builds."""
        return sorted(warnings.known(self.build))

    def copy_modules(self, folder: Path, more: Sequence[Path] = ()) -> None:
        """Copy the modules, and nothing else of the large build, into a folder.

        `more` are modules that were built elsewhere.
        """
        whole = self.build / "modules.order"
        # Kbuild leaves none if it builds single modules.
        order = (whole if whole.exists() else self.build / _SOME).read_text()
        for name in order.split():
            file = Path(name).with_suffix(".ko")
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.build / file, folder / file)
        for path in more:
            # depmod prefers this folder to the kernel's own modules of the same name.
            (folder / "updates").mkdir(exist_ok=True)
            shutil.copyfile(path, folder / "updates" / path.name)
            order = f"updates/{path.stem}.o\n{order}"
        (folder / "modules.order").write_text(order)
        for name in ("modules.builtin", "modules.builtin.modinfo"):
            if (self.build / name).exists():
                shutil.copyfile(self.build / name, folder / name)
        # For modprobe in the guest; depmod wants them below lib/modules.
        with tempfile.TemporaryDirectory(prefix="skbulk-depmod-") as base:
            place = Path(base) / "lib/modules" / self.release
            place.parent.mkdir(parents=True)
            place.symlink_to(folder.resolve())
            log = folder.parent / "depmod.log"
            proc.run(["depmod", "-b", base, self.release], log, what="depmod")

    def module(self, driver: str, card: str = MODELLED) -> Path:
        """The module of a driver of a card: "rust" or "c"."""
        path = self.build / CARDS[card].paths[driver]
        if not path.exists():
            raise Failure(
                f"the {driver} driver ({path.name}) was not built into {self.build}",
                f"log: {self.log}",
                "DRIVER=c runs the stock C driver" if driver == "rust" else "",
            )
        return path


def make_command(env: Env, source: Path, build: Path) -> list[str | Path]:
    """The kernel's make, with the tool chain of all builds."""
    words: list[str | Path] = ["make", "-C", source, f"O={build}", f"LLVM={env.llvm or '1'}",
                               f"-j{env.jobs}"]  # fmt: skip
    config = build.name.removeprefix("build-").partition("-")[0]
    words += arch.of(config).words
    # Compiled by clippy: make test reads its warnings.
    return [*words, "CLIPPY=1"] if config == UML else words


# The variables that the build depends on.
BUILD_ENV = {
    # bindgen's libclang is older than the compiler whose options it gets.
    "BINDGEN_EXTRA_CLANG_ARGS": "-Wno-unknown-warning-option",
    # Same input, same output: no build host, user or time in the image.
    "KBUILD_BUILD_TIMESTAMP": "2026-01-01",
    "KBUILD_BUILD_USER": "skbulk",
    "KBUILD_BUILD_HOST": "skbulk",
}


def _kconfig_state(work: Path) -> str:
    """A name for the Kconfig files that the overlay changes."""
    names = [name for name in overlay.manifest_files(work.parent / "overlay.json")
             if Path(name).name.startswith("Kconfig") and (work / name).exists()]  # fmt: skip
    return "\n".join(f"{name} {short_hash((work / name).read_bytes())}" for name in names)


def _configure(
    env: Env, source: Path, build: Path, config: str, log: Path, partial: bool = False
) -> None:
    """Configure a build unless it is up to date. `partial`: the tree has only the first
    topics of the series, so that some symbols are missing."""
    parts = fragments(env, config, source)
    if (
        not (partial or env.overlay_off)
        and not (source / CARDS[MODELLED].paths["rust"]).with_suffix(".rs").exists()
    ):
        say("    note: this tree has no Rust driver; only the C driver is built")
        parts.append(Fragment("this tree", "CONFIG_IXGBE_RUST=n\n"))
    text = merged(parts)
    base = env.settings.path("CONFIG_BASE")
    start = base.read_text(errors="replace") if base else ""
    state = short_hash(text, start, _kconfig_state(source), str(source))
    stamp = build / ".skbulk-config"
    if proc.text_of(stamp) == state and (build / ".config").exists():
        return
    stamp.unlink(missing_ok=True)
    build.mkdir(parents=True, exist_ok=True)
    make = make_command(env, source, build)
    proc.run([*make, "-s", "rustavailable"], log, what="the check for a usable Rust tool chain")
    fragment = build / (".config" if base else ".skbulk-fragment")
    fragment.write_text(f"{start}\n{text}")
    proc.run([*make, "-s", "olddefconfig" if base else "allnoconfig"], log,
             what="configuring the kernel",
             env={"KCONFIG_ALLCONFIG": str(fragment), **BUILD_ENV})  # fmt: skip
    result = (build / ".config").read_text()
    if not partial and (missing := missing_symbols(parts, result)):
        raise Failure(
            f"this tree does not support the {config} configuration:",
            *missing,
            f"the result is {build / '.config'}",
        )
    stamp.write_text(state)


def build_folder(env: Env, config: str) -> Path:
    """The build folder of a configuration."""
    folder = tree.place(env) / f"build-{config}-{env.toolchain_key}"
    extra = extra_fragments(env)
    if extra:
        return folder.with_name(f"{folder.name}-{short_hash(merged(extra))}")
    return folder


def build_lock(env: Env, config: str) -> Path:
    """The file whose lock its builder and its users hold."""
    return tree.place(env) / f"build-{config}.lock"


def _seed(folder: Path, plain: Path) -> None:
    """Begin a build with other options from a copy of the plain one, so that it is small."""
    if folder == plain or folder.exists() or not (plain / ".config").exists():
        return
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(plain, part, symlinks=True)
    (part / ".skbulk-config").unlink(missing_ok=True)
    part.rename(folder)


def shared_tree(env: Env, lock: Lock) -> Tree:
    """The kernel tree with the overlay. The lock is shared, and stays so if the tree is up
    to date, so that other processes can use the same tree at the same time."""
    while True:
        work = tree.existing(env)
        if work is not None and overlay.is_laid(work, wanted := _wanted(env, work)):
            return replace(work, state=overlay.state_of(work, wanted))
        if lock.try_own():
            work = prepare_tree(env)
            lock.share()
            # The user's own tree is copied every time.
            if env.kdir is not None:
                return work


def _wanted(env: Env, work: Tree) -> dict[str, bytes | None]:
    """The overlay's files."""
    if env.overlay_off:
        return {}
    if env.kdir is not None and overlay.is_applied(env.clone, work.base):
        say("    the tree has the series: it is built as it is")
        return {}
    return overlay.wanted_files(env.clone, work.base)


def prepare_tree(env: Env) -> Tree:
    """The same for a caller that holds the lock exclusively."""
    manifest = tree.place(env) / "overlay.json"
    work = tree.prepare(env, overlay.manifest_files(manifest))
    wanted = _wanted(env, work)
    laid = overlay.apply(work, wanted)
    say(f"    overlay: {len(wanted)} files, {len(laid.written)} written, "
        f"{len(laid.removed)} put back or removed")  # fmt: skip
    return work


def finished(env: Env, work: Tree, config: str, modules: Sequence[str] = ()) -> Kernel | None:
    """The kernel, if it was built from this tree and configuration before, with some modules
    or all. The caller holds the locks of both, shared."""
    kernel = _kernel(env, work, config)
    enough = {_state(env, work, config), _state(env, work, config, modules)} - {""}
    if not (proc.text_of(kernel.build / _FINISHED) in enough and kernel.image.exists()):
        return None
    with Step(_step_name(kernel)) as step:
        step.detail = "as built before"
    return kernel


def build(
    env: Env, work: Tree, config: str, watch: Watch | None = None, modules: Sequence[str] = ()
) -> Kernel:
    """Build the kernel and its modules, or some of them. The caller holds the tree's lock, and
    that of the build exclusively.

    `watch` is called about every second, and may end the build.
    """
    kernel = _kernel(env, work, config)
    folder, log = kernel.build, kernel.log
    log.unlink(missing_ok=True)
    with Step(_step_name(kernel)) as step:
        like = _LIKE.get(config, config)
        plain = tree.place(env) / f"build-{like}-{env.toolchain_key}"
        # Of its own configuration, the caller holds the lock.
        other = Lock(build_lock(env, like), f"the {like} kernel of this tree", shared=True)
        with nullcontext() if like == config or folder.exists() else other:
            _seed(folder, plain)
        (folder / _FINISHED).unlink(missing_ok=True)
        _configure(env, work.work, folder, config, log)
        try:
            for targets in _targets(env, config, modules):
                _make(env, kernel, step, *targets, more=watch)
        finally:
            # Crates that were compiled before something failed are not compiled again.
            warnings.update(folder, log.read_text(errors="replace"))
        (folder / _SOME).write_text("".join(f"{Path(one).with_suffix('.o')}\n" for one in modules))
        (folder / _FINISHED).write_text(_state(env, work, config, modules))
    return kernel


def _kernel(env: Env, work: Tree, config: str) -> Kernel:
    return Kernel(work, config, build_folder(env, config), env.logs / f"kernel-{config}.log")


def _step_name(kernel: Kernel) -> str:
    return f"kernel: Linux {kernel.tree.version}, {kernel.config} configuration"


def _targets(env: Env, config: str, modules: Sequence[str]) -> list[list[str]]:
    """The targets of each call of make: it builds single modules one by one if the kernel is
    among them, and would miss what they need of each other."""
    image = arch.of(config).target
    if modules:
        return [[image], list(modules)]
    gdb = ["scripts_gdb"] if env.settings.verb == "debug" else []
    return [[image, "modules", *gdb]]


def _state(env: Env, work: Tree, config: str, modules: Sequence[str] = ()) -> str:
    """A name for all that a build is made from; empty if the tree may change unnoticed."""
    if not work.state:
        return ""
    make = map(str, make_command(env, work.work, build_folder(env, config)))
    words = [word for word in make if not word.startswith("-j")]
    parts = merged(fragments(env, config, work.work))
    targets = [word for call in _targets(env, config, modules) for word in call]
    return short_hash(work.state, parts, *words, *targets)


def _make(
    env: Env, kernel: Kernel, step: Step, *targets: str, more: Watch | None = None,
    seen: tuple[Path, Path] | None = None, **variables: str,
) -> None:  # fmt: skip
    """Make targets of a configured kernel, with the number of built files as progress.

    With `seen`, its first folder is in the place of the second one.
    """
    words: list[str | Path] = []
    if seen:
        bind = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
        words = ["unshare", "--mount", "sh", "-c", bind, "sh", *seen]

    def watch() -> None:
        if more is not None:
            more()
        env.check_time()
        built = _BUILT_LINE.findall(kernel.log.read_text(errors="replace"))
        step.detail = f"{len(built)} files built"

    with (
        mended(kernel.build),
        precompiled.compilers(env, kernel.build, kernel.log) as more_variables,
    ):
        proc.run(
            [*words, *make_command(env, kernel.tree.work, kernel.build), *targets],
            kernel.log,
            what=f"the build of the {kernel.config} kernel",
            env={**BUILD_ENV, **more_variables, **variables},
            watch=watch,
        )
    watch()


def build_step(env: Env, work: Tree, log: Path, step: Step) -> Kernel:
    """Build a tree that has a part of the series, for User-Mode Linux, on top of the
    build of the step before."""
    folder = tree.place(env) / f"build-{UML}-bisect-{env.toolchain_key}"
    _seed(folder, build_folder(env, UML))
    log.unlink(missing_ok=True)
    _configure(env, work.work, folder, UML, log, partial=True)
    kernel = Kernel(work, UML, folder, log)
    _make(env, kernel, step, "linux", "modules")
    return kernel


def build_seeded(env: Env, work: Tree, source: Path, name: str, log: Path) -> Kernel:
    """Build the kernel for User-Mode Linux, without modules, on top of a copy of the plain build:
    with `source` in the place of a folder of the tree, which others may use meanwhile.

    The caller holds the lock of this build.
    """
    folder = tree.place(env) / f"build-{SEEDED}-{env.toolchain_key}"
    kernel = Kernel(work, UML, folder, log)
    log.unlink(missing_ok=True)
    with Step(f"kernel: with defects in {name}") as step:
        _seed(folder, build_folder(env, UML))
        _configure(env, work.work, folder, UML, log)
        _make(env, kernel, step, arch.of(UML).target, seen=(source, work.work / name))
    return kernel


def packages(env: Env, work: Tree) -> Kernel:
    """Build Debian packages of the kernel for a real machine. The caller holds the lock."""
    folder = build_folder(env, DEB)
    log = proc.fresh(env.logs / "kernel-deb.log")
    with Step(f"kernel packages: Linux {work.version}, {DEB} configuration") as step:
        _configure(env, work.work, folder, DEB, log)
        for old in folder.parent.glob("linux-*.deb"):
            old.unlink()
        kernel = Kernel(work, DEB, folder, log)
        # -d: dpkg asks for packages that the build root replaces by others.
        _make(env, kernel, step, "bindeb-pkg", "DPKG_FLAGS=-d",
              KDEB_PKGVERSION=f"{work.version}-1", KDEB_SOURCENAME="linux-skbulk",
              DEBEMAIL="skbulk@localhost", DEBFULLNAME="skbulk",
              KDEB_COMPRESS="zstd")  # fmt: skip
    return kernel
