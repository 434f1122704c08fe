#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs programs of an installed kselftest, one after the other, in this guest.

The interpreter starts once, and imports the kernel's test libraries and parses the netlink
specifications once: on an emulated machine each of these takes seconds. A Python program runs in a
fork of this process, any other is executed.

Each program's KTAP is printed unchanged, between "# begin NAME" and "# end NAME CODE". Marks in the
kernel's log for the program and the end of each case attribute complaints to cases.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import os
import pickle
import re
import runpy
import select
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path("/mnt/selftests")
TIME_LIMIT = 900.0
# From SIGTERM, on which ksft_run() cleans up, to SIGKILL.
GRACE = 20.0
# A process that is stuck in the kernel is abandoned.
LEFT_BEHIND = 5.0
# The interval of polling for requests.
BETWEEN_LOOKS = 0.05
# The exit code of kselftest's own runner for a timeout.
TIMED_OUT = 124
# The time limit of commands in the kernel's library, and one for emulated or busy machines.
USUAL_COMMAND_TIME, COMMAND_TIME = 20, 120
# The specifications that nearly every program of drivers/net uses.
SPECS = ("ethtool", "netdev", "rt-link")
_VARIABLE = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True)
class Program:
    """One line of the input: a program, its variables and its arguments."""

    name: str
    variables: dict[str, str]
    arguments: tuple[str, ...]

    @classmethod
    def parse(cls, line: str) -> Program | None:
        """Read `drivers/net/stats.py NETIF=eth0 -t check_pause`; nothing of an empty line."""
        words = shlex.split(line, comments=True)
        if not words:
            return None
        variables = dict(word.split("=", 1) for word in words[1:] if _VARIABLE.match(word))
        arguments = tuple(word for word in words[1:] if not _VARIABLE.match(word))
        return cls(words[0], variables, arguments)

    def time_limit(self, otherwise: float) -> float:
        """Seconds that it may take: TIME_LIMIT= of its line."""
        return float(self.variables.get("TIME_LIMIT", otherwise))


class ParsedOnce:
    """Replaces the yaml module for readers of specifications: each file is parsed once.

    Each call returns a copy, since readers may modify it.
    """

    def __init__(self, yaml: Any) -> None:
        self._yaml = yaml
        self._parsed: dict[str, bytes] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._yaml, name)

    def load(self, stream: Any, **keywords: Any) -> Any:
        """The result of yaml.load()."""
        name = str(stream.name)
        if name not in self._parsed:
            self._parsed[name] = pickle.dumps(self._yaml.load(stream, **keywords))
        return pickle.loads(self._parsed[name])


class Libraries:
    """The test libraries of each folder.

    Every folder of tests has a package of its own named lib.py, which uses net.lib.py. The latter
    stays imported; the former is exchanged for the one of the next program's folder.
    """

    _OWN = ("lib", "drivers")

    def __init__(self, root: Path) -> None:
        self._root = root
        self._sets: dict[Path, dict[str, ModuleType]] = {}
        self._paths = list(sys.path)

    def select(self, folder: Path) -> None:
        """Make `from lib.py import` mean that of `folder`."""
        for name in [name for name in sys.modules if name.split(".")[0] in self._OWN]:
            del sys.modules[name]
        sys.path[:] = [str(folder), *self._paths]
        importlib.invalidate_caches()
        if not (folder / "lib/py/__init__.py").is_file():
            return
        if folder in self._sets:
            sys.modules.update(self._sets[folder])
            return
        try:
            self._import_common()
            importlib.import_module("lib.py")
        except (Exception, SystemExit):
            # A program that needs the library reports the error better.
            print(f"# {folder}/lib/py: {traceback.format_exc(limit=-1).splitlines()[-1]}")
            return
        self._sets[folder] = {
            name: module for name, module in sys.modules.items() if name.split(".")[0] in self._OWN
        }

    def _import_common(self) -> None:
        """Import the common library, and parse the specifications."""
        if "net.lib.py" in sys.modules:
            return
        self._paths.append(str(self._root))
        sys.path.append(str(self._root))
        common = importlib.import_module("net.lib.py")
        for function in (common.utils.cmd.__init__, common.utils.cmd.process):
            function.__defaults__ = tuple(
                COMMAND_TIME if value == USUAL_COMMAND_TIME else value
                for value in function.__defaults__
            )
        for name, module in list(sys.modules.items()):
            if not name.endswith("pyynl.lib.nlspec"):
                continue
            once = ParsedOnce(module.pyyaml)
            module.pyyaml = once  # type: ignore[attr-defined]
            folder = common.ynl.SPEC_PATH
            for spec in SPECS:
                path = folder / f"{spec}.yaml"
                if path.is_file():
                    with path.open(encoding="utf-8") as stream:
                        once.load(stream, Loader=module.SpecFamily._yaml_loader)


@dataclass(frozen=True)
class KernelLog:
    """The kernel's log, and the key that logs the stacks of blocked tasks."""

    kmsg: Path = Path("/dev/kmsg")
    sysrq: Path = Path("/proc/sysrq-trigger")

    def add(self, text: str) -> None:
        """Add a line."""
        self._write(self.kmsg, f"skbulk: {text}\n")

    def add_blocked_tasks(self) -> None:
        """Add the stacks of blocked tasks."""
        self._write(self.sysrq, "w")

    @staticmethod
    def _write(path: Path, text: str) -> None:
        # Not open(): it seeks to the end of a file, and /dev/kmsg has none.
        with suppress(FileNotFoundError, PermissionError):
            file = os.open(path, os.O_WRONLY | os.O_APPEND)
            os.write(file, text.encode())
            os.close(file)


class Runner:
    """Runs programs, each with a time limit."""

    def __init__(self, root: Path, time_limit: float, log: KernelLog) -> None:
        self._root = root
        self._time_limit = time_limit
        self._log = log
        self._libraries = Libraries(root)

    def run(self, program: Program) -> int:
        """Run a program between its marks; returns its exit code."""
        print(f"# begin {program.name}", flush=True)
        self._log.add(f"begin {program.name}")
        code = self._run(program)
        self._log.add(f"end {program.name}")
        print(f"# end {program.name} {code}", flush=True)
        return code

    def _run(self, program: Program) -> int:
        path = self._root / program.name
        if not path.is_file():
            print(f"TAP version 13\n1..1\nnot ok 1 {path.stem} # there is no {path}", flush=True)
            return 1
        python = path.suffix == ".py"
        if python:
            self._libraries.select(path.parent)
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            self._become(program, path, python)
        with suppress(OSError):
            os.setpgid(child, child)
        try:
            return self._wait(child, program)
        finally:
            # Its background processes must not disturb the next program.
            with suppress(OSError):
                os.killpg(child, signal.SIGKILL)

    def _become(self, program: Program, path: Path, python: bool) -> None:
        """The child: never returns."""
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(1, 2)
        # The old object may have buffered lines.
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        os.chdir(path.parent)
        os.environ.update(program.variables)
        if not python:
            command = [str(path), *program.arguments]
            if not os.access(path, os.X_OK):
                command.insert(0, "bash")
            try:
                os.execvp(command[0], command)
            except OSError as error:
                print(f"# {path}: {error.strerror}", flush=True)
                os._exit(126)
        sys.argv = [str(path), *program.arguments]
        self._tell_ksft(path.stem, program.name)
        # End like an interpreter, with its cleanup.
        try:
            runpy.run_path(str(path), run_name="__main__")
        except Exception:
            print("# " + traceback.format_exc().rstrip().replace("\n", "\n# "), flush=True)
            sys.exit(1)
        sys.exit(0)

    def _tell_ksft(self, name: str, program: str) -> None:
        """Set the program's name, and mark the end of each of its cases."""
        for module_name, module in list(sys.modules.items()):
            if module_name.endswith("lib.py.ksft"):
                module.KSFT_MAIN_NAME = name  # type: ignore[attr-defined]
                self._mark_cases(module, program)

    def _mark_cases(self, ksft: Any, program: str) -> None:
        print_result = ksft.ktap_result

        def ktap_result(ok: bool, cnt: int = 1, case_name: str = "", comment: str = "") -> None:
            print_result(ok, cnt, case_name, comment)
            self._log.add(f"case {program} {case_name}")

        ksft.ktap_result = ktap_result

    def _wait(self, child: int, program: Program) -> int:
        """Wait for its end, or kill it."""
        limit = program.time_limit(self._time_limit)
        if (code := _ended(child, limit)) is not None:
            return code
        # Before signals change the stacks.
        self._log.add_blocked_tasks()
        print(f"# {program.name} did not end within {limit:g} s; "
              "the stacks of blocked tasks are in the kernel log", flush=True)  # fmt: skip
        for number, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, LEFT_BEHIND)):
            with suppress(OSError):
                os.kill(child, number)
            if _ended(child, patience) is not None:
                break
            # The program may wait for its children.
            with suppress(OSError):
                os.killpg(child, number)
        return TIMED_OUT


def _ended(child: int, seconds: float) -> int | None:
    """The exit code of a child; None if it does not end in time."""
    handle = os.pidfd_open(child)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(seconds * 1000):
            return None
    finally:
        os.close(handle)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    # As a shell has it, so that SIGILL is not taken for 4, the code of a skipped program.
    return code if code >= 0 else 128 - code


def _requests(folder: Path) -> Iterator[str]:
    """One line from each of the files 1, 2, 3 that the host puts into a folder, until the line
    is "end". Polling a shared folder works on every kind of machine."""
    for number in itertools.count(1):
        path = folder / str(number)
        while not path.exists():
            time.sleep(BETWEEN_LOOKS)
        line = path.read_text(encoding="utf-8").strip()
        if line == "end":
            return
        yield line


def _lines(names: Sequence[str]) -> Iterator[str]:
    """The lines of the command line, of the variables PROGRAMS or REQUESTS, or of standard
    input."""
    if names:
        yield from names
    elif folder := os.environ.get("REQUESTS"):
        yield from _requests(Path(folder))
    elif programs := os.environ.get("PROGRAMS"):
        yield from programs.splitlines()
    else:
        while line := sys.stdin.readline():
            yield line


def main() -> int:
    """Returns 1 if a program failed."""
    parser = argparse.ArgumentParser(description="Runs programs of an installed kselftest.")
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder of the installation")
    parser.add_argument(
        "--time-limit", type=float, default=TIME_LIMIT, help="seconds, unless TIME_LIMIT= is given"
    )
    parser.add_argument("--kmsg", type=Path, default=KernelLog.kmsg, help=argparse.SUPPRESS)
    parser.add_argument("--sysrq", type=Path, default=KernelLog.sysrq, help=argparse.SUPPRESS)
    parser.add_argument(
        "program",
        nargs="*",
        help="a path below the root, followed in the same word by VAR=value and arguments; "
        "without any, lines come from PROGRAMS, from the files in the folder REQUESTS, or from "
        "standard input",
    )
    options = parser.parse_args()
    sys.argv = sys.argv[:1]
    runner = Runner(options.root, options.time_limit, KernelLog(options.kmsg, options.sysrq))
    worst = 0
    began = time.monotonic()
    for line in _lines(options.program):
        program = Program.parse(line)
        if program is not None and runner.run(program) not in (0, 4):
            worst = 1
    print(f"# all programs took {time.monotonic() - began:.1f} s", flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
