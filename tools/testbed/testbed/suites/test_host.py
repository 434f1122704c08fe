# SPDX-License-Identifier: GPL-2.0
"""Suites that need no kernel: tests of the Rust crates in tools/, and linters."""

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from testbed.boot import nicmodel
from testbed.catalogue import LINTERS
from testbed.env import Env
from testbed.harness.results import Results
from testbed.host import proc
from testbed.host.lock import Lock
from testbed.host.ui import Failure, Step, say

# The folders of tools/ with a package and its tests.
PACKAGES = ("testbed", "insn", "txsim")
# Seconds for a build of tests, and for those of a crate.
_TIMEOUT = 1500
# Its findings depend on the version.
_RUFF = "0.17.6"


def messages(log: Path) -> Iterator[dict[str, Any]]:
    """The lines of JSON in a log, among others."""
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def executables(log: Path) -> list[tuple[str, Path, Path]]:
    """The test programs that cargo has built: a name, the program, its package's folder."""
    found = []
    for one in messages(log):
        if one["reason"] == "compiler-artifact" and one["profile"]["test"] and one["executable"]:
            package = Path(one["manifest_path"]).parent
            found.append(
                (f"{package.name}/{one['target']['name']}", Path(one["executable"]), package)
            )
    return found


def build_tests(env: Env, log: Path, manifest: Path, *words: str) -> list[tuple[str, Path, Path]]:
    """Build the tests of some crates; returns the programs."""
    proc.run(
        ["cargo", "test", "--no-run", "--locked", *words,
         "--message-format=json-render-diagnostics", "--manifest-path", manifest,
         "-j", str(env.jobs)],
        proc.fresh(log), what="cargo test --no-run", env=nicmodel.cargo_env(env), timeout=_TIMEOUT,
    )  # fmt: skip
    return executables(log)


@pytest.mark.suite("cargo")
def test_cargo(env: Env, results: Results) -> None:
    """Every test of every crate in tools/."""
    log = env.logs / "test-cargo-build.log"
    with Step("tests of the host tools: cargo test") as step:
        found = build_tests(env, log, env.clone / "tools/Cargo.toml", "--workspace")
        if not found:
            raise Failure(f"cargo built no test (log: {log})")
        for name, program, folder in found:
            step.detail = name
            _run_crate(env, results, name, program, folder)


def _run_crate(env: Env, results: Results, name: str, program: Path, folder: Path) -> None:
    log = proc.fresh(env.logs / f"test-cargo-{name.replace('/', '-')}-{program.stem}.log")
    code = proc.run(
        [program, "-Z", "unstable-options", "--format", "json"],
        log,
        what=f"the tests of {name}",
        cwd=folder,
        # The stable test harness prints JSON only with unstable options.
        env={"RUSTC_BOOTSTRAP": "1", "CARGO_MANIFEST_DIR": str(folder)},
        timeout=_TIMEOUT,
        check=False,
    )
    failed = crate_results(messages(log), name, results)
    if code != 0 and not failed:
        results.add(name, f"it ended with exit code {code} (log: {log})")


def crate_results(lines: Iterator[dict[str, Any]], crate: str, results: Results) -> int:
    """Report the results of a test program; returns the number of failures."""
    failed = 0
    for one in lines:
        # The second is a notice: a test has been running for a minute, and goes on.
        if one["type"] == "test" and one["event"] not in ("started", "timeout"):
            name = f"{crate}: {one['name']}"
            if one["event"] == "ok":
                results.add(name)
            elif one["event"] == "ignored":
                results.skip(name, "ignored")
            else:
                failed += 1
                words = one.get("stdout", one["event"]).strip().splitlines()
                results.add(name, " | ".join(words[:3]) or one["event"])
        elif one["type"] == "suite" and one["event"] != "started":
            say(f"    {crate}: {one['event']}: {one['passed']} passed, {one['failed']} failed, "
                f"{one['ignored']} ignored")  # fmt: skip
    return failed


def shell_scripts(clone: Path) -> list[Path]:
    """The clone's shell scripts, recognised by their first line."""
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
    """The Python linter, which is not in Debian: from PyPI, in the cache. Without it the
    linter counts as skipped."""
    folder = env.cache / f"ruff-{_RUFF}"
    program = folder / "bin/ruff"
    if program.exists() or shutil.which("ruff"):
        return program if program.exists() else "ruff"
    with Lock(env.cache / f"{folder.name}.lock", "ruff"):
        return program if program.exists() else _install_ruff(env, folder)


def _install_ruff(env: Env, folder: Path) -> str | Path:
    log = proc.fresh(env.logs / "test-ruff-install.log")
    program, part = folder / "bin/ruff", folder.with_suffix(".part")
    commands: tuple[list[str | Path], ...] = (
        [sys.executable, "-m", "venv", "--clear", part],
        [part / "bin/pip", "install", "--quiet", f"ruff=={_RUFF}"],
    )
    for command in commands:
        if proc.run(command, log, what="installing ruff", timeout=300, check=False) != 0:
            return "ruff"
    # The program alone: it does not need its environment.
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    shutil.copy2(part / "bin/ruff", program)
    shutil.rmtree(part)
    return program


def _linters(env: Env) -> Mapping[str, tuple[list[str | Path], Path, dict[str, str]]]:
    """Command, folder and variables of each linter of code outside the kernel."""
    tools = env.clone / "tools"
    manifest = tools / "Cargo.toml"
    cargo = nicmodel.cargo_env(env)
    cache = env.cache / "home/mypy"
    scripts = [os.path.relpath(path, env.clone) for path in shell_scripts(env.clone)]
    return {
        "rustfmt": (["cargo", "fmt", "--all", "--check", "--manifest-path", manifest],
                    tools, cargo),
        "clippy": (["cargo", "clippy", "--locked", "--workspace", "--all-targets",
                    "--manifest-path", manifest, "--", "-D", "warnings"], tools, cargo),
        "mypy": (["mypy", "--strict", "--cache-dir", cache,
                  *(f"{name}/{name}" for name in PACKAGES)], tools,
                 {"MYPYPATH": ":".join(PACKAGES)}),
        "ruff check": ([_ruff(env), "check", "--no-cache", "."], tools, {}),
        "ruff format": ([_ruff(env), "format", "--no-cache", "--check", "."], tools, {}),
        "shellcheck": (["shellcheck", "-x", "-P", "SCRIPTDIR", "-S", "warning", *scripts],
                       env.clone, {}),
    }  # fmt: skip


@pytest.mark.suite("lint")
@pytest.mark.parametrize("program", LINTERS)
def test_lint(env: Env, program: str) -> None:
    """A linter has no findings."""
    command, folder, variables = _linters(env)[program]
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not installed")
    log = proc.fresh(env.logs / f"test-{program.replace(' ', '-')}.log")
    with Step(f"linter: {program}"):
        code = proc.run(command, log, what=program, cwd=folder, env=variables, timeout=900,
                        check=False)  # fmt: skip
    if code != 0:
        raise Failure(program, *proc.last_errors(log, 3), f"log: {log}")
