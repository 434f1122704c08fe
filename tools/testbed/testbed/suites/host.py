# SPDX-License-Identifier: GPL-2.0
"""Suites that need no kernel: cargo test, Python's unit tests, linters."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from testbed.boot import nicmodel
from testbed.env import Env
from testbed.host import proc
from testbed.host.ui import Step, say
from testbed.suites.report import Report

_CARGO_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.M)
_CARGO_FAILED = re.compile(r"^test (\S+) \.\.\. FAILED$", re.M)
_CARGO_IGNORED = re.compile(r"^test (\S+) \.\.\. ignored", re.M)
_UNITTEST_RAN = re.compile(r"^Ran (\d+) tests? in", re.M)
_UNITTEST_BAD = re.compile(r"^(?:FAIL|ERROR): (.+)$", re.M)
_UNITTEST_SKIP = re.compile(r"skipped=(\d+)")

# The folders of tools/ with a package and its tests.
PACKAGES = ("testbed", "insn", "txsim")

# The version decides what it finds.
_RUFF = "0.17.6"


def _fresh_log(env: Env, name: str) -> Path:
    log = env.logs / f"test-{name}.log"
    log.unlink(missing_ok=True)
    return log


def cargo(env: Env) -> Report:
    """cargo test of every crate in tools/."""
    report = Report("cargo")
    log = _fresh_log(env, "cargo")
    with Step("tests of the host tools: cargo test"):
        code = proc.run(
            ["cargo", "test", "--locked", "--workspace", "--no-fail-fast",
             "--manifest-path", env.clone / "tools/Cargo.toml", "-j", str(env.jobs)],
            log,
            what="cargo test",
            env=nicmodel.cargo_env(env),
            timeout=1500,
            check=False,
        )  # fmt: skip
    text = log.read_text(errors="replace")
    for line in text.splitlines():
        if line.startswith("test result:"):
            say(f"    {line}")
    results = _CARGO_RESULT.findall(text)
    report.passed = sum(int(passed) for passed, _, _ in results)
    report.failures = [*_CARGO_FAILED.findall(text)]
    for name in _CARGO_IGNORED.findall(text):
        report.skip(name, "ignored")
    if code != 0 and not report.failures:
        report.add("cargo test", "; ".join(proc.last_errors(log, 4)) + f" (log: {log})")
    if code == 0 and not results:
        report.add("cargo test", f"it ran no test (log: {log})")
    return report


def python(env: Env) -> Report:
    """The testbed's own unit tests."""
    report = Report("python")
    log = _fresh_log(env, "python")
    code = 0
    with Step("unit tests of the Python packages: python3 -m unittest"):
        for name in PACKAGES:
            code |= proc.run(
                ["python3", "-m", "unittest", "discover", "-v", "-s", "tests", "-t", "."],
                log,
                what="the testbed's unit tests",
                cwd=env.clone / "tools" / name,
                env={"PYTHONPATH": ":".join(str(env.clone / "tools" / one) for one in PACKAGES)},
                timeout=300,
                check=False,
            )
    text = log.read_text(errors="replace")
    ran = [int(number) for number in _UNITTEST_RAN.findall(text)]
    report.failures = _UNITTEST_BAD.findall(text)
    skipped = sum(int(number) for number in _UNITTEST_SKIP.findall(text))
    for number in range(skipped):
        report.skip(f"unit test {number + 1}", f"see {log}")
    if ran:
        report.passed = sum(ran) - report.failed - skipped
        say(f"    Ran {sum(ran)} tests")
    if code != 0 and not report.failures:
        report.add("python3 -m unittest", f"it failed (log: {log})")
    if len(ran) != len(PACKAGES) or not all(ran):
        report.add("python3 -m unittest", f"it ran no test (log: {log})")
    return report


def _linter(
    env: Env,
    report: Report,
    name: str,
    command: Sequence[str | Path],
    cwd: Path | None = None,
    extra: dict[str, str] | None = None,
) -> None:
    """One linter is one test: it passes if it has nothing to say."""
    if shutil.which(str(command[0])) is None:
        report.skip(name, f"{command[0]} is not installed")
        return
    log = _fresh_log(env, name.replace(" ", "-"))
    code = proc.run(command, log, what=name, cwd=cwd, env=extra, timeout=900, check=False)
    problem = None
    if code != 0:
        problem = "; ".join(proc.last_errors(log, 3)) + f" (log: {log})"
    report.add(name, problem)


def shell_scripts(clone: Path) -> list[Path]:
    """The clone's own shell scripts, by their first line."""
    found = []
    places = [clone / ".ci", clone / "tools/testbed/guest", clone / "tools/testbed"]
    candidates = [clone / "tools/buildroot", *(p for f in places for p in sorted(f.rglob("*")))]
    for path in dict.fromkeys(candidates):
        if not path.is_file() or path.suffix in (".py", ".rs"):
            continue
        with path.open("rb") as file:
            first = file.readline()
        if path.suffix == ".sh" or (first.startswith(b"#!") and b"sh" in first):
            found.append(path)
    return found


def _ruff(env: Env) -> str | Path:
    """The Python linter, which Debian does not have: from its own registry,
    in the cache. Without one the linter counts as skipped."""
    folder = env.cache / f"ruff-{_RUFF}"
    program = folder / "bin/ruff"
    if program.exists() or shutil.which("ruff"):
        return program if program.exists() else "ruff"
    log = _fresh_log(env, "ruff-install")
    part = folder.with_suffix(".part")
    commands: tuple[list[str | Path], ...] = (
        [sys.executable, "-m", "venv", "--clear", part],
        [part / "bin/pip", "install", "--quiet", f"ruff=={_RUFF}"],
    )
    for command in commands:
        if proc.run(command, log, what="installing ruff", timeout=300, check=False) != 0:
            return "ruff"
    # The program alone: it needs nothing of the environment that it came with.
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    shutil.copy2(part / "bin/ruff", program)
    shutil.rmtree(part)
    return program


def lint(env: Env) -> Report:
    """Formatters and linters of everything that is not kernel code."""
    report = Report("lint")
    tools = env.clone / "tools"
    manifest = tools / "Cargo.toml"
    cargo_env = nicmodel.cargo_env(env)
    cache = env.cache / "home"
    with Step("linters: rustfmt, clippy, mypy, ruff, shellcheck"):
        _linter(env, report, "rustfmt", ["cargo", "fmt", "--all", "--check",
                "--manifest-path", manifest], extra=cargo_env)  # fmt: skip
        _linter(env, report, "clippy", ["cargo", "clippy", "--locked", "--workspace",
                "--all-targets", "--manifest-path", manifest, "--", "-D", "warnings"],
                extra=cargo_env)  # fmt: skip
        _linter(env, report, "mypy", ["mypy", "--strict", "--cache-dir", cache / "mypy",
                *(f"{name}/{name}" for name in PACKAGES)], cwd=tools,
                extra={"MYPYPATH": ":".join(PACKAGES)})  # fmt: skip
        ruff = _ruff(env)
        _linter(env, report, "ruff check", [ruff, "check", "--no-cache", "."], cwd=tools)
        _linter(env, report, "ruff format", [ruff, "format", "--no-cache", "--check", "."],
                cwd=tools)  # fmt: skip
        scripts = [os.path.relpath(path, env.clone) for path in shell_scripts(env.clone)]
        _linter(env, report, "shellcheck", ["shellcheck", "-x", "-P", "SCRIPTDIR", "-S",
                "warning", *scripts], cwd=env.clone)  # fmt: skip
    return report
