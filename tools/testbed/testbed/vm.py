# SPDX-License-Identifier: GPL-2.0
"""Boots the VM with the modelled ports, runs a script in it, collects results.

The root file system is the build root itself over 9p, read-only; the kernel's
command line mounts the clone and starts guest/init from it. The script's
output and exit code come back through virtio ports, apart from the console,
which is kept whole and searched for kernel complaints.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from testbed import dmesg, proc
from testbed.env import Env
from testbed.kernel import Kernel
from testbed.model import Model
from testbed.ui import Failure

_9P = "trans=virtio,version=9p2000.L,msize=262144"
_GUEST_INIT = "/mnt/clone/tools/testbed/guest/init"
_FIRST_STEP = (
    f"mount -t tmpfs tmpfs /mnt && mkdir /mnt/clone && "
    f"mount -t 9p -o {_9P},ro,cache=loose clone /mnt/clone && exec {_GUEST_INIT}"
)
_WIRES = 4
# What QEMU says about every modelled port, whether all is well or not.
_ORDINARY = "Could not enable error recovery for the device"
_SMALL = 1 << 20
# The power-off after the script's end takes a moment, a hang takes for ever.
_AFTER_RESULT = 30.0
# Five-level paging under KASAN makes the early boot report a wild access now and
# then, which switches lockdep off for good.
_TCG_CPU = "max,la57=off"
_MEMORY = {"perf": "1G", "debug": "2G"}


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


class Vm:
    """One boot of the VM. The folder of a run goes away with it."""

    def __init__(self, env: Env, kernel: Kernel, tools: Path, name: str) -> None:
        self.env = env
        self.kernel = kernel
        self.tools = tools
        self.log = env.logs / f"console-{name}.log"
        self.model_log = env.logs / f"nicmodel-{name}.log"
        for log in (self.log, self.model_log):
            log.unlink(missing_ok=True)

    def run(
        self,
        job: Job,
        on_line: Callable[[str], None] | None = None,
        on_copied: Callable[[], None] | None = None,
    ) -> Outcome:
        """Boot, run the job's script, power off.

        `on_copied` is called when the VM has its own copy of all that was
        built: from then on the kernel may be built anew.
        """
        folder = Path(tempfile.mkdtemp(prefix="skbulk-vm-"))
        try:
            self._fill(folder, job)
            if on_copied:
                on_copied()
            if job.ports == 0:
                return self._boot(folder, job, None, on_line)
            program = self.tools / "nicmodel"
            with Model(program, folder / "model", self.model_log, job.ports) as model:
                return self._boot(folder, job, model, on_line)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def shell(self, job: Job, on_copied: Callable[[], None]) -> int:
        """Boot with the console on this terminal; returns QEMU's exit code."""
        folder = Path(tempfile.mkdtemp(prefix="skbulk-vm-"))
        try:
            self._fill(folder, job)
            on_copied()
            with Model(self.tools / "nicmodel", folder / "model", self.model_log) as model:
                command = self._command(folder, job, model, ["-serial", "mon:stdio"])
                # QEMU takes the terminal: Ctrl-C belongs to the guest.
                return subprocess.call(command)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _fill(self, folder: Path, job: Job) -> None:
        share = folder / "job"
        share.mkdir()
        (share / "results").mkdir()
        self.kernel.copy_modules(folder / "modules")
        shutil.copyfile(self.kernel.image, folder / "bzImage")
        mode = "shell" if job.script is None else "script"
        variables = {"DRIVER": job.driver, "MODE": mode, "CONFIG": self.kernel.config}
        if job.script is not None:
            variables["SCRIPT"] = self._place_script(job.script, share)
        variables.update(job.variables)
        (share / "env").write_text(
            "".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items())
        )

    def _place_script(self, script: Path, share: Path) -> str:
        """Where the guest finds the script: one of the clone's stays at its
        place, next to the files that it may need; another one is copied."""
        if script.resolve().is_relative_to(self.env.clone):
            return f"/mnt/clone/{script.resolve().relative_to(self.env.clone)}"
        shutil.copyfile(script, share / "script")
        (share / "script").chmod(0o755)
        return "/mnt/job/script"

    def _command(
        self, folder: Path, job: Job, model: Model | None, serial: Sequence[str]
    ) -> list[str]:
        memory = _MEMORY[self.kernel.config]
        words = [
            "qemu-system-x86_64", "-nodefaults", "-no-user-config", "-no-reboot",
            "-display", "none", "-vga", "none",
            "-machine", "q35,memory-backend=ram,usb=off,smbus=off,sata=off",
            "-accel", job.accel, "-cpu", "host" if job.accel == "kvm" else _TCG_CPU,
            "-smp", str(job.cpus), "-m", memory,
            "-object", f"memory-backend-memfd,id=ram,size={memory},share=on",
            "-device", "virtio-serial-pci,max_ports=16",
            "-kernel", str(folder / "bzImage"), "-append", self._append(job), *serial,
        ]  # fmt: skip
        shares = [
            ("rootfs", self.env.root, True),
            ("clone", self.env.clone, True),
            ("build", folder / "modules", True),
            ("tools", self.tools, True),
            ("job", folder / "job", False),
        ]
        for tag, path, readonly in shares:
            option = f"local,id={tag},path={path},security_model=none,multidevs=remap"
            words += ["-fsdev", option + (",readonly=on" if readonly else "")]
            words += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
        for port in ("out", "result"):
            words += ["-chardev", f"file,id={port},path={folder / port}"]
            words += ["-device", f"virtserialport,chardev={port},name=org.skbulk.{port}"]
        if model is not None:
            words += self._wire_words(model)
        for word in job.plugin:
            words.append(word)
        return [*words, *job.qemu_words]

    def _wire_words(self, model: Model) -> list[str]:
        words: list[str] = []
        for number in range(model.ports):
            device = {
                "driver": "vfio-user-pci",
                "bus": f"slot{number}",
                "socket": {"path": str(model.port(number)), "type": "unix"},
            }
            words += ["-device", f"pcie-root-port,id=slot{number},chassis={number + 1}"]
            words += ["-device", json.dumps(device)]
        for number in range(_WIRES):
            name = "org.skbulk.wire" + (f".{number}" if number else "")
            words += ["-chardev", f"socket,id=wire{number},path={model.control}"]
            words += ["-device", f"virtserialport,chardev=wire{number},name={name}"]
        return words

    def _append(self, job: Job) -> str:
        words = [
            "console=ttyS0", "root=rootfs", "rootfstype=9p",
            f"rootflags={_9P},cache=loose", "ro", "init=/bin/bash",
            "norandmaps", "panic=-1",
            # The measured kernel says only what matters: its console is slow.
            "loglevel=6" if self.kernel.config == "perf" else "ignore_loglevel",
            *job.kernel_words,
            "--", "-c", f'"{_FIRST_STEP}"',
        ]  # fmt: skip
        return " ".join(words)

    def _boot(
        self, folder: Path, job: Job, model: Model | None, on_line: Callable[[str], None] | None
    ) -> Outcome:
        for name in ("out", "result"):
            (folder / name).touch()
        self.log.touch()
        serial = ["-chardev", f"file,id=console,path={self.log}", "-serial", "chardev:console"]
        command = self._command(folder, job, model, serial)
        qemu_log = folder / "qemu.log"
        began = time.monotonic()
        with qemu_log.open("wb") as log:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        lines = _Follower(folder / "out", on_line)
        try:
            problem = self._wait(child, folder, job, model, lines, began)
        finally:
            proc.stop(child)
            lines.poll(last=True)
        seconds = time.monotonic() - began
        console = self.log.read_text(errors="replace")
        found = dmesg.complaints(console)
        code = _exit_code(folder / "result")
        results = self._collect(folder / "job/results")
        if code is None or problem:
            raise Failure(
                problem or "the VM ended before the script did",
                *[str(one) for one in found[:5]],
                *_tail(qemu_log, 4),
                f"console: {self.log}",
                *([f"model: {self.model_log}"] if model else []),
            )
        if code in (97, 98):
            raise Failure(
                f"the {job.driver} driver did not come up in the VM",
                *_tail(self.log, 6),
                f"console: {self.log}",
            )
        return Outcome(code, lines.text, console, seconds, found, results)

    def _collect(self, folder: Path) -> dict[str, str]:
        """Keep the script's result files in out/results; return the small ones."""
        found = {}
        for path in sorted(folder.iterdir()):
            if not path.is_file():
                continue
            kept = self.env.out / "results" / path.name
            kept.parent.mkdir(exist_ok=True)
            shutil.copyfile(path, kept)
            if path.stat().st_size < _SMALL:
                found[path.name] = path.read_text(errors="replace")
        return found

    def _wait(
        self,
        child: subprocess.Popen[bytes],
        folder: Path,
        job: Job,
        model: Model | None,
        lines: _Follower,
        began: float,
    ) -> str | None:
        """Follow the run to its end; returns what went wrong, if anything."""
        ended: float | None = None
        while child.poll() is None:
            time.sleep(0.1)
            lines.poll()
            now = time.monotonic()
            if ended is None and (folder / "result").stat().st_size:
                ended = now
            if ended is not None and now - ended > _AFTER_RESULT:
                return "the VM did not power off after the script's end"
            if now - began > job.timeout:
                return f"no end after {job.timeout:.0f} s"
            if model is not None and model.died is not None and ended is None:
                return f"the NIC model died (exit code {model.died})"
        if child.returncode != 0:
            return f"QEMU failed (exit code {child.returncode})"
        return None


class _Follower:
    """Reads a growing file and hands on its lines as they appear."""

    def __init__(self, path: Path, on_line: Callable[[str], None] | None) -> None:
        self._path = path
        self._on_line = on_line
        self._seen = 0
        self._rest = ""
        self.text = ""

    def poll(self, last: bool = False) -> None:
        """Take what is there; with `last` also a line without an end."""
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


def _exit_code(path: Path) -> int | None:
    words = path.read_text(errors="replace").split()
    if len(words) == 2 and words[0] == "exit" and words[1].isdigit():
        return int(words[1])
    return None


def _tail(path: Path, count: int) -> list[str]:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return [line for line in lines if _ORDINARY not in line][-count:]


def print_line(line: str) -> None:
    """Pass a line of the script's output on."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def accel_key() -> str:
    """Tells one boot of the host from the next."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = "unknown"
    return f"{boot} {os.uname().release}"
