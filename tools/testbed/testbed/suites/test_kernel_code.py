# SPDX-License-Identifier: GPL-2.0
"""Suites that check the kernel code: formatting, clippy, checkpatch, misuse."""

import re
import subprocess
import tempfile
from pathlib import Path

import pytest

from insn import panic_path, stack, symbols
from testbed.build import compile_fail, rustdoc
from testbed.build.kernel import UML, Kernel
from testbed.env import Env
from testbed.harness.results import Results
from testbed.host import proc
from testbed.host.ui import Failure, Step, say
from testbed.source import overlay
from testbed.source.patches import write_series
from testbed.suites.conftest import Ready

_TOTAL = re.compile(r"^total: (\d+) errors?, (\d+) warnings?(?:, (\d+) checks?)?", re.M)
_MESSAGE = re.compile(r"^(?:ERROR|WARNING|CHECK):(\S+): .*", re.M)
# struct Qdisc is in camel case. spin_is_locked() asserts nothing where it decides
# whether to wait.
_IGNORED = ("CAMELCASE", "USE_LOCKDEP")
# checkpatch asks whether MAINTAINERS needs an update if a mail adds files and leaves it alone.
# The entry that has the folder may have come with an earlier mail, or be upstream's; a unit test
# refuses files without one.
_ANSWERED = "FILE_PATH_CHANGES"


@pytest.mark.suite("kernel-lint")
def test_kernel_lint(env: Env, ready: Ready, results: Results) -> None:
    """rustfmt of our files, clippy's warnings about them, checkpatch of the series."""
    kernel = ready(UML).kernels[UML]
    work = kernel.tree.work
    log = proc.fresh(env.logs / "test-kernel-lint.log")
    ours = [name for name in overlay.new_files(env.clone) if name.endswith(".rs")]
    with Step("kernel code: rustfmt, clippy, checkpatch --strict"):
        unformatted = _unformatted(work, ours)
        for name in ours:
            problem = "it is not formatted" if work / name in unformatted else None
            results.add(f"rustfmt {name}", problem)
            found = [one for one in kernel.warnings if f"in {name}:" in one]
            results.add(f"clippy {name}", found[0] if found else None)
            if name.startswith("drivers/"):
                results.add(f"no unsafe code in {name}", _unsafe_in_driver(env.clone / name))
        _checkpatch(env, kernel, results, log)


@pytest.mark.suite("kernel-lint")
def test_rustdoc(env: Env, ready: Ready, results: Results) -> None:
    """The documentation of public items has no links that lead nowhere."""
    kernel = ready(UML).kernels[UML]
    ours = tuple(f"in {name}:" for name in overlay.new_files(env.clone))
    with Step("kernel code: rustdoc"):
        found = rustdoc.of(kernel.build, "rust/kernel.o")
    bad = [one for one in found if one.startswith(ours)]
    results.none("rustdoc has no warnings about our files", bad)


def _unformatted(work: Path, names: list[str]) -> set[Path]:
    """The files that rustfmt would change. It follows modules, so it lists the files."""
    options = ("--check", "-l", "--edition=2021", "--config-path", work / ".rustfmt.toml")
    files = [work / name for name in names]
    done = proc.capture(["rustfmt", *options, *files], stderr=subprocess.PIPE)
    found = {Path(line) for line in done.stdout.splitlines()}
    if done.returncode != 0 and not found:
        raise Failure("rustfmt cannot read the kernel code",
                      *done.stderr.strip().splitlines()[-5:])  # fmt: skip
    return found


def _unsafe_in_driver(path: Path) -> str | None:
    """Drivers contain no unsafe code, apart from the attributes that forbid it."""
    text = re.sub(r"//.*", "", path.read_text(errors="replace"))
    text = text.replace("forbid(unsafe_code)", "").replace("deny(unsafe_op_in_unsafe_fn)", "")
    return "a driver contains the word unsafe" if re.search(r"\bunsafe\b", text) else None


def _checkpatch(env: Env, kernel: Kernel, results: Results, log: Path) -> None:
    work = kernel.tree.work
    with tempfile.TemporaryDirectory(prefix="skbulk-mails-") as name:
        folder = Path(name)
        written = write_series(env.clone, kernel.tree.base, kernel.tree.version, folder / "mails")
        results.add("the series apply with git am")
        for path in [mail for series in written for mail in series.mails]:
            mail = f"{path.parent.name}/{path.name}"
            options = ("--strict", "--no-tree", "--no-signoff", "--show-types",
                       f"--ignore={','.join(_IGNORED)}")  # fmt: skip
            script = work / "scripts/checkpatch.pl"
            text = proc.capture(
                ["perl", script, *options, folder / "mails" / mail], cwd=work
            ).stdout
            with log.open("a") as out:
                out.write(text)
            total = _TOTAL.search(text)
            say(f"    checkpatch {mail}: {total[0] if total else 'no result'}")
            problem = _problem(text)
            results.add(f"checkpatch {mail}", f"{problem} (log: {log})" if problem else None)


def _problem(text: str) -> str:
    """The first message of checkpatch that has no answer yet; empty if there is none."""
    total = _TOTAL.search(text)
    if total is None:
        return "no result"
    answered = 0
    for found in _MESSAGE.finditer(text):
        if found[1] != _ANSWERED:
            return found[0]
        answered += 1
    # Each message is counted, whatever it looks like.
    return "" if answered == sum(int(n or 0) for n in total.groups()) else total[0]


# Entry points of a driver for each packet.
_HOT = {
    "start_xmit": "Ops::ixgbe_rust::port::PortDriver::start_xmit",
    "poll_callback": "poll::poll_callback::ixgbe_rust::port::PortDriver",
}


@pytest.mark.suite("objects")
@pytest.mark.parametrize("config", [UML, pytest.param("perf", marks=pytest.mark.beyond)])
def test_objects(env: Env, ready: Ready, results: Results, config: str) -> None:
    """The object code of the drivers has no path to a panic."""
    kernel = ready(config).kernels[config]
    modules = sorted((kernel.build / "drivers/net").rglob("ixgbe_rust.ko"))
    if not modules:
        raise Failure(f"there is no driver in {kernel.build}")
    objdump = f"llvm-objdump{env.llvm}"
    prefix = "" if config == "perf" else f"{config}: "
    with Step("object code of the drivers"):
        for module in modules:
            found = symbols.panics(module)
            results.none(f"{prefix}{module.stem} cannot panic", found)
            code = panic_path.disassemble(objdump, kernel.build / "rust/kernel.o")
            code.update(panic_path.disassemble(objdump, module))
            for name, end in _HOT.items():
                _hot(results, code, f"{prefix}{name}", end)


def _hot(results: Results, code: dict[str, set[str]], name: str, end: str) -> None:
    """No function that it calls, in the driver or the kernel crate, can panic."""
    roots = panic_path.named(code, end)
    if not roots:
        results.add(f"{name} cannot panic", f"no function of the driver is called {end}")
    for root in roots:
        ways = panic_path.way(code, root)
        results.add(f"{name} cannot panic", " calls ".join(ways) or None)
        say(f"    {name} and {len(panic_path.reached(code, root)) - 1} functions that it reaches")


# Bytes of stack that a function may take: a quarter of the smallest stack.
_MOST_STACK = 4096


@pytest.mark.suite("objects")
def test_stack(env: Env, ready: Ready, results: Results) -> None:
    """No function of the kernel crate takes too much of the stack; its tests are in there."""
    kernel = ready(UML).kernels[UML]
    with Step("stack frames of the kernel crate"):
        found = stack.measure(f"llvm-objdump{env.llvm}", kernel.build / "rust/kernel.o")
        if not found:
            raise Failure(f"there is no function in {kernel.build}/rust/kernel.o")
        largest = sorted(found.items(), key=lambda one: -one[1])
        say(f"    {len(found)} functions, the largest: {largest[0][1]} bytes")
        bad = [f"{symbols.readable(name)} takes {size} bytes"
               for name, size in largest if size > _MOST_STACK]  # fmt: skip
        results.none(f"no function takes more than {_MOST_STACK} bytes of stack", bad)


@pytest.mark.suite("compile-fail")
def test_compile_fail(env: Env, ready: Ready, results: Results) -> None:
    """Misuse does not compile."""
    kernel = ready(UML).kernels[UML]
    cases = env.clone / "tools/testbed/compile_fail"
    with Step("misuse that must not compile"):
        found = compile_fail.run(kernel.build, kernel.tree.work, cases)
    if not found:
        raise Failure(f"there is no case in {cases}")
    for name, passed, detail in found:
        say(f"    {'ok' if passed else 'not ok'} {name}")
        results.add(name, None if passed else detail)
