# SPDX-License-Identifier: GPL-2.0
"""A job for a machine, its run, its outcome."""

import itertools
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from stat import S_ISREG

from testbed.boot import dmesg, judge
from testbed.boot.card import CARDS, MODELLED
from testbed.boot.contention import Contention
from testbed.boot.nicmodel import Model
from testbed.build.selftests import Selftests
from testbed.env import Env
from testbed.host import proc
from testbed.host.ui import Failure, say

OnLine = Callable[[str], None]
_ORDINARY = "Could not enable error recovery for the device"
_SMALL = 1 << 20
# Limits of what a guest says and leaves behind, and of what is read of a growing file at once.
_MOST = 1 << 28
_ENTRIES = 10_000
_AT_ONCE = 1 << 20
# Logs of earlier runs.
_KEPT = 9
# The power-off after the script's end takes a moment, a hang has no end.
_AFTER_RESULT = 30.0
# Exit codes of guest/init: the driver did not load, or bound no port.
_NO_DRIVER = {
    97: "the {driver} driver cannot be loaded in {name}",
    98: "the {driver} driver was loaded in {name}, but has bound no port ({pci_id})",
}


@dataclass(frozen=True)
class Job:
    """A script with its environment, for one boot."""

    script: Path | None
    # An argument of load-driver: rust, c, none, or the name of a module.
    driver: str
    timeout: float = 600.0
    cpus: int = 2
    ports: int = 2
    # A key of CARDS.
    card: str = MODELLED
    accel: str = "tcg"
    variables: dict[str, str] = field(default_factory=dict)
    plugin: Sequence[str] = ()
    kernel_words: Sequence[str] = ()
    # Whether interfaces get IPv6 addresses. Tests and measurements count every packet,
    # including those of neighbour discovery.
    ipv6: bool = False
    qemu_words: Sequence[str] = ()
    # In User-Mode Linux: whether tail registers lie in memory, and whether the guest
    # and the model are pinned to different processors.
    shared_tails: bool = True
    pinned: bool = False
    # Whether the model judges the driver, which costs it time and traps ring registers.
    judge: bool = False
    # Modules that were not built with the kernel; load-driver finds them.
    modules: Sequence[Path] = ()
    # Called with the run's folder, the guest's /mnt/job, before the boot.
    on_share: Callable[[Path], None] | None = None
    # Called with the running model, before the boot.
    on_model: Callable[[Model], None] | None = None
    # The same as on_model, after the script's end.
    on_end: Callable[[Model], None] | None = None
    # Ends the run when it is set.
    stop: threading.Event = field(default_factory=threading.Event)
    # The kernel's selftests, for /mnt/selftests; each guest has its own copy.
    selftests: Selftests | None = None

    @property
    def words(self) -> list[str]:
        """Its words for the kernel's command line."""
        return [*self.kernel_words, *([] if self.ipv6 else ["ipv6.disable_ipv6=1"])]


@dataclass(frozen=True)
class Outcome:
    """The result of a job."""

    code: int
    output: str
    console: str
    seconds: float
    complaints: list[dmesg.Complaint]
    # Rules of the datasheet that the driver has broken.
    breaches: list[judge.Breach] = field(default_factory=list)
    # The files of /mnt/job/results, by name.
    results: dict[str, str] = field(default_factory=dict)
    # The share of time for which machine and model waited for a processor.
    waited: float = 0.0


def fill_share(env: Env, share: Path, job: Job, config: str) -> None:
    """Make the folder that the guest sees as /mnt/job."""
    (share / "results").mkdir(parents=True)
    mode = "shell" if job.script is None else "script"
    variables = {"DRIVER": job.driver, "CARD": job.card, "MODE": mode, "CONFIG": config}
    if job.script is not None:
        variables["SCRIPT"] = _place_script(env, job.script, share)
    variables.update(job.variables)
    (share / "env").write_text(
        "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
    )
    if job.on_share:
        job.on_share(share)


def _place_script(env: Env, script: Path, share: Path) -> str:
    """The script's path in the guest: one of the clone stays beside the files that it
    may need; another one is copied."""
    if script.resolve().is_relative_to(env.clone):
        return f"/mnt/clone/{script.resolve().relative_to(env.clone)}"
    shutil.copyfile(script, share / "script")
    (share / "script").chmod(0o755)
    return "/mnt/job/script"


def _collect(env: Env, folder: Path) -> dict[str, str]:
    """Copy the script's results to out/results, folders too; return the small files.

    The guest made them, and the host may be root: links are not followed, and there is an end.
    """
    found: dict[str, str] = {}
    left, entries = _MOST, 0
    for place, _, names, descriptor in os.fwalk(folder):
        inside = Path(place).relative_to(folder)
        (env.out / "results" / inside).mkdir(parents=True, exist_ok=True)
        entries += 1
        for name in sorted(names):
            data = _regular(name, descriptor, left)
            if data is None:
                continue
            left, entries = left - len(data), entries + 1
            if left < 0 or entries > _ENTRIES:
                say(f"    the rest of the results, from {str(inside / name)!a} on, is left out:",
                    f"    they have more than {_ENTRIES} files or {_MOST >> 20} MiB")  # fmt: skip
                return found
            (env.out / "results" / inside / name).write_bytes(data)
            if len(data) < _SMALL:
                found[str(inside / name)] = data.decode(errors="replace")
    return found


def _regular(name: str, folder: int, most: int) -> bytes | None:
    """The content of a file, at least one byte more than `most` if it has more; None of what is
    no file."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        return file.read(min(status.st_size, most) + 1) if S_ISREG(status.st_mode) else None


def fresh_log(env: Env, name: str) -> Path:
    """A new log file; the last few of the same name are kept as NAME.1.log and so on."""
    log = env.logs / f"{name}.log"
    older = [log, *(env.logs / f"{name}.{number}.log" for number in range(1, _KEPT + 1))]
    for newer, old in reversed(list(itertools.pairwise(older))):
        if newer.exists():
            newer.replace(old)
    return log


def is_ordinary(line: str) -> bool:
    """Whether QEMU prints this line about every modelled port, even when all is well."""
    return _ORDINARY in line


class Follower:
    """Reads a growing file and passes its lines on as they appear.

    It is opened once: the guest may put something else in its place. The last look closes it.
    """

    def __init__(self, path: Path, on_line: OnLine | None) -> None:
        self._file = path.open("rb", buffering=0)
        self._on_line = on_line
        self._rest = ""
        self.text = ""

    def poll(self, last: bool = False) -> None:
        """Read new lines; with `last` also one without an end."""
        data = self._file.read(_AT_ONCE) or b""
        while last and len(data) < _MOST and (more := self._file.read(_AT_ONCE)):
            data += more
        text = data.decode(errors="replace").replace("\r\n", "\n")
        self.text += text
        *lines, self._rest = (self._rest + text).split("\n")
        if last:
            self._file.close()
            lines += [self._rest] if self._rest else []
        if self._on_line:
            for line in lines:
                self._on_line(line)


def _exit_code(text: str) -> int | None:
    """The exit code that the guest reported, if it did."""
    words = text.split()
    if len(words) == 2 and words[0] == "exit" and words[1].isdigit():
        return int(words[1])
    return None


def _tail(path: Path, count: int) -> list[str]:
    """The last lines of a log, without the ordinary ones."""
    return [one for one in proc.text_of(path).splitlines() if not is_ordinary(one)][-count:]


@dataclass(frozen=True)
class Run:
    """One boot, from the command line to the outcome."""

    env: Env
    job: Job
    console: Path
    folder: Path
    model: Model | None

    @property
    def share(self) -> Path:
        """The guest's /mnt/job."""
        return self.folder / "job"

    @property
    def out(self) -> Path:
        """The script's output."""
        return self.share / "out"

    @property
    def result(self) -> Path:
        """The script's exit code."""
        return self.share / "result"

    def follow(
        self,
        command: Sequence[str],
        name: str,
        on_line: OnLine | None,
        log: Path | None = None,
        environment: Mapping[str, str] | None = None,
        descriptors: Sequence[int] = (),
        on_start: Callable[[int], None] = lambda _: None,
    ) -> Outcome:
        """Start the machine, pass its script's lines on, judge its end.

        `name` is the machine's in messages, `log` that of its program, which is the console
        by default. `on_start` is called with the process id.
        """
        for path in (self.out, self.result):
            path.touch()
        lines, result = Follower(self.out, on_line), Follower(self.result, None)
        log = log or self.console
        began = time.monotonic()
        with log.open("wb") as file:
            child = proc.start(command, file, env=environment, descriptors=descriptors)
        model = self.model and self.model.pid
        contention = Contention([child.pid, *([model] if model else [])])

        def look() -> bool:
            lines.poll()
            result.poll()
            contention.look()
            if max(len(lines.text), self.console.stat().st_size) > _MOST:
                raise Failure(f"{name} printed more than {_MOST >> 20} MiB", f"log: {log}")
            return bool(result.text)

        try:
            on_start(child.pid)
            problem = self._wait(child, name, began, look)
        finally:
            # User-Mode Linux would halt in its signal handler, and complain until it is killed.
            proc.stop(child, 0.0 if self.job.stop.is_set() else proc.GRACE)
            lines.poll(last=True)
            result.poll(last=True)
        seconds = time.monotonic() - began
        outcome = self._judge(name, problem, log, lines.text, result.text, seconds)
        return replace(outcome, waited=contention.share)

    def _wait(
        self, child: subprocess.Popen[bytes], name: str, began: float, look: Callable[[], bool]
    ) -> str | None:
        """Wait for the end; returns the problem, if there is one.

        `look` returns whether the script has ended.
        """
        ended: float | None = None
        while child.poll() is None:
            time.sleep(0.05)
            finished = look()
            now = time.monotonic()
            if self.job.stop.is_set():
                return "it was stopped"
            if ended is None and finished:
                ended = now
            if ended is not None and now - ended > _AFTER_RESULT:
                return f"{name} did not power off after the script's end"
            if now - began > self.job.timeout:
                return f"no end after {self.job.timeout:.0f} s"
            if self.model is not None and self.model.died is not None and ended is None:
                return f"the NIC model died (exit code {self.model.died})"
        if child.returncode != 0:
            return f"{name} failed (exit code {child.returncode})"
        return None

    def _judge(
        self, name: str, problem: str | None, log: Path, output: str, result: str, seconds: float
    ) -> Outcome:
        console = self.console.read_text(errors="replace")
        found = dmesg.complaints(console)
        code = _exit_code(result)
        try:
            results = _collect(self.env, self.share / "results")
        except OSError as error:
            results = {}
            say(f"    the results cannot be kept: {error}")
        logs = [f"console: {self.console}"]
        if self.model is not None:
            logs.append(f"model: {self.model.log}")
        if code is None or problem:
            raise Failure(problem or f"{name} ended before the script did",
                          *map(str, found[:5]), *_tail(log, 6), *logs)  # fmt: skip
        if code in _NO_DRIVER:
            driver, pci_id = self.job.driver, CARDS[self.job.card].pci_id
            words = _NO_DRIVER[code].format(driver=driver, name=name, pci_id=pci_id)
            raise Failure(words, *_tail(self.console, 6), *logs)
        broken = judge.breaches(self.model) if self.model is not None else []
        return Outcome(code, output, console, seconds, found, broken, results)


def print_line(line: str) -> None:
    """Pass a line of the script's output on."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
