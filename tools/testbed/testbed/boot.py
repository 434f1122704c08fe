# SPDX-License-Identifier: GPL-2.0
"""What every kind of machine has in common: a job, its outcome, its output."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testbed import dmesg
from testbed.env import Env
from testbed.ui import check_cancelled

# What QEMU says about every modelled port, whether all is well or not.
_ORDINARY = "Could not enable error recovery for the device"
_SMALL = 1 << 20
# The power-off after the script's end takes a moment, a hang takes for ever.
AFTER_RESULT = 30.0


@dataclass(frozen=True)
class Job:
    """What to run in the VM."""

    script: Path | None
    driver: str
    timeout: float = 600.0
    cpus: int = 2
    ports: int = 2
    accel: str = "tcg"
    variables: dict[str, str] = field(default_factory=dict)
    plugin: Sequence[str] = ()
    kernel_words: Sequence[str] = ()
    qemu_words: Sequence[str] = ()
    # The model acts within the guest's register accesses, so that a run repeats.
    repeatable: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    code: int
    output: str
    console: str
    seconds: float
    complaints: list[dmesg.Complaint]
    # What the script left in /mnt/job/results, by name.
    results: dict[str, str] = field(default_factory=dict)


def fill_share(env: Env, share: Path, job: Job, config: str) -> None:
    """Make the folder that the guest sees as /mnt/job."""
    (share / "results").mkdir(parents=True)
    mode = "shell" if job.script is None else "script"
    variables = {"DRIVER": job.driver, "MODE": mode, "CONFIG": config}
    if job.script is not None:
        variables["SCRIPT"] = _place_script(env, job.script, share)
    variables.update(job.variables)
    (share / "env").write_text(
        "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
    )


def _place_script(env: Env, script: Path, share: Path) -> str:
    """Where the guest finds the script: one of the clone's stays at its
    place, next to the files that it may need; another one is copied."""
    if script.resolve().is_relative_to(env.clone):
        return f"/mnt/clone/{script.resolve().relative_to(env.clone)}"
    shutil.copyfile(script, share / "script")
    (share / "script").chmod(0o755)
    return "/mnt/job/script"


def collect(env: Env, folder: Path) -> dict[str, str]:
    """Keep the script's result files in out/results; return the small ones."""
    found = {}
    for path in sorted(folder.iterdir()):
        if not path.is_file():
            continue
        kept = env.out / "results" / path.name
        kept.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, kept)
        if path.stat().st_size < _SMALL:
            found[path.name] = path.read_text(errors="replace")
    return found


class Follower:
    """Reads a growing file and hands on its lines as they appear."""

    def __init__(self, path: Path, on_line: Callable[[str], None] | None) -> None:
        self._path = path
        self._on_line = on_line
        self._seen = 0
        self._rest = ""
        self.text = ""

    def poll(self, last: bool = False) -> None:
        """Take what is there; with `last` also a line without an end.

        Every run of a machine comes by here: a cancelled one ends here.
        """
        if not last:
            check_cancelled()
        with self._path.open("rb") as file:
            file.seek(self._seen)
            data = file.read()
        self._seen += len(data)
        text = data.decode(errors="replace").replace("\r\n", "\n")
        self.text += text
        *lines, self._rest = (self._rest + text).split("\n")
        if last and self._rest:
            lines.append(self._rest)
            self._rest = ""
        if self._on_line:
            for line in lines:
                self._on_line(line)


def exit_code(path: Path) -> int | None:
    """The exit code that the guest reported, if it did."""
    words = path.read_text(errors="replace").split()
    if len(words) == 2 and words[0] == "exit" and words[1].isdigit():
        return int(words[1])
    return None


def tail(path: Path, count: int) -> list[str]:
    """The last lines of a log that say something."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [line for line in lines if _ORDINARY not in line][-count:]


def print_line(line: str) -> None:
    """Pass a line of the script's output on."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
