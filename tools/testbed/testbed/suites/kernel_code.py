# SPDX-License-Identifier: GPL-2.0
"""Suites that look at the kernel code: formatting, clippy, checkpatch, misuse."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from insn import panic_path, symbols
from testbed.build.kernel import Kernel
from testbed.env import Env
from testbed.host.ui import Failure, Step, say
from testbed.source import overlay
from testbed.source.patches import write_series
from testbed.suites.report import Report

_TOTAL = re.compile(r"^total: (\d+) errors?, (\d+) warnings?(?:, (\d+) checks?)?", re.M)
# The series adds files and no maintainer yet: said in the cover letter, not per
# patch. Rust's own formatter decides about line lengths and indentation.
# struct Qdisc has the name that it has.
_IGNORED = ("FILE_PATH_CHANGES", "CAMELCASE")


def kernel_lint(env: Env, kernel: Kernel) -> Report:
    """rustfmt of our files, clippy's warnings about them, checkpatch of the series."""
    report = Report("kernel-lint")
    work = kernel.tree.work
    log = env.logs / "test-kernel-lint.log"
    log.unlink(missing_ok=True)
    ours = [name for name in overlay.new_files(env.clone) if name.endswith(".rs")]
    with Step("kernel code: rustfmt, clippy, checkpatch --strict"):
        unformatted = _unformatted(work, ours)
        for name in ours:
            problem = "it is not formatted" if work / name in unformatted else None
            report.add(f"rustfmt {name}", problem)
            found = [one for one in kernel.warnings if f"in {name}:" in one]
            report.add(f"clippy {name}", found[0] if found else None)
            if name.startswith("drivers/"):
                report.add(f"no unsafe code in {name}", _unsafe_in_driver(env.clone / name))
        _checkpatch(env, kernel, report, log)
    return report


def _unformatted(work: Path, names: list[str]) -> set[Path]:
    """The files that rustfmt would change. It follows modules, so it names files."""
    done = subprocess.run(
        ["rustfmt", "--check", "-l", "--edition=2021", "--config-path",
         work / ".rustfmt.toml", *[work / name for name in names]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )  # fmt: skip
    found = {Path(line) for line in done.stdout.decode(errors="replace").splitlines()}
    if done.returncode != 0 and not found:
        text = done.stderr.decode(errors="replace").strip().splitlines()
        raise Failure("rustfmt cannot read the kernel code", *text[-5:])
    return found


def _unsafe_in_driver(path: Path) -> str | None:
    """Drivers contain no unsafe code, and the compiler is told to see to it."""
    text = re.sub(r"//.*", "", path.read_text(errors="replace"))
    text = text.replace("forbid(unsafe_code)", "").replace("deny(unsafe_op_in_unsafe_fn)", "")
    return "a driver contains the word unsafe" if re.search(r"\bunsafe\b", text) else None


def _checkpatch(env: Env, kernel: Kernel, report: Report, log: Path) -> None:
    work = kernel.tree.work
    with tempfile.TemporaryDirectory(prefix="skbulk-mails-") as name:
        folder = Path(name)
        written = write_series(env.clone, kernel.tree.base, kernel.tree.version, folder / "mails")
        report.add("the series apply with git am")
        for path in [mail for series in written for mail in series.mails]:
            mail = f"{path.parent.name}/{path.name}"
            done = subprocess.run(
                ["perl", work / "scripts/checkpatch.pl", "--strict", "--no-tree",
                 "--no-signoff", "--show-types", f"--ignore={','.join(_IGNORED)}",
                 folder / "mails" / mail],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=work,
                check=False,
            )  # fmt: skip
            text = done.stdout.decode(errors="replace")
            with log.open("a") as out:
                out.write(text)
            total = _TOTAL.search(text)
            say(f"    checkpatch {mail}: {total[0] if total else 'no result'}")
            clean = total is not None and not any(int(n or 0) for n in total.groups())
            first = next((line for line in text.splitlines()
                          if re.match(r"(ERROR|WARNING|CHECK):", line)), "no result")  # fmt: skip
            report.add(f"checkpatch {mail}", None if clean else f"{first} (log: {log})")


# Where the stack enters a driver for each packet, on either transmit path.
_HOT = {
    "start_xmit": "Entry::ixgbe_rust::port::PortDriver::direct::Direct::start_xmit",
    "poll_callback": "Vector::ixgbe_rust::port::PortDriver::poll_callback::tx_path::direct::Direct",
    "start_xmit, combining":
        "Entry::ixgbe_rust::port::PortDriver::combining::Combining::start_xmit",
    "poll_callback, combining":
        "Vector::ixgbe_rust::port::PortDriver::poll_callback::combining::Combining",
}  # fmt: skip


def objects(env: Env, kernel: Kernel) -> Report:
    """What the compiler has made of the drivers: nothing in them can panic."""
    report = Report("objects")
    modules = sorted((kernel.build / "drivers/net").rglob("ixgbe_rust.ko"))
    objdump = f"llvm-objdump{env.llvm}"
    with Step("object code of the drivers"):
        for module in modules:
            found = symbols.panics(module)
            report.add(f"{module.stem} cannot panic", "; ".join(found) or None)
            code = panic_path.disassemble(objdump, kernel.build / "rust/kernel.o")
            code.update(panic_path.disassemble(objdump, module))
            for name, end in _HOT.items():
                _hot(report, code, name, end)
    if not modules:
        report.add("objects", f"there is no driver in {kernel.build}")
    return report


def _hot(report: Report, code: dict[str, set[str]], name: str, end: str) -> None:
    """Nothing that a function calls, in the driver or the kernel crate, can panic."""
    roots = panic_path.named(code, end)
    if not roots:
        report.add(f"{name} cannot panic", f"no function of the driver is called {end}")
    for root in roots:
        ways = panic_path.way(code, root)
        report.add(f"{name} cannot panic", " calls ".join(ways) or None)
        say(f"    {name} and {len(panic_path.reached(code, root)) - 1} functions that it reaches")


def compile_fail(env: Env, kernel: Kernel) -> Report:
    """What must not compile does not."""
    from testbed.build import compile_fail as runner

    report = Report("compile-fail")
    cases = env.clone / "tools/testbed/compile_fail"
    with Step("misuse that must not compile"):
        results = runner.run(kernel.build, kernel.tree.work, cases)
    for name, passed, detail in results:
        say(f"    {'ok' if passed else 'not ok'} {name}")
        report.add(name, None if passed else detail)
    if not results:
        report.add("compile-fail", f"there is no case in {cases}")
    return report
