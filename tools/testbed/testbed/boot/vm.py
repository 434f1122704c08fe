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
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from testbed.boot.job import Job, Outcome, Run, fill_share, fresh_log, is_ordinary
from testbed.boot.nicmodel import WIRES, Model
from testbed.build.kernel import Kernel
from testbed.env import Env

_9P = "trans=virtio,version=9p2000.L,msize=262144"
_GUEST_INIT = "/mnt/clone/tools/testbed/guest/init"
_FIRST_STEP = (
    f"mount -t tmpfs tmpfs /mnt && mkdir /mnt/clone && "
    f"mount -t 9p -o {_9P},ro,cache=loose clone /mnt/clone && exec {_GUEST_INIT}"
)
# With five-level paging KASAN sometimes reports a wild access in early boot, which
# switches lockdep off for the rest of the boot.
_TCG_CPU = "max,la57=off"
_MEMORY = {"perf": "1G", "debug": "2G", "kcsan": "2G"}


class Vm:
    """One boot of the VM. The folder of a run goes away with it."""

    def __init__(self, env: Env, kernel: Kernel, tools: Path, name: str) -> None:
        self.env = env
        self.kernel = kernel
        self.tools = tools
        self.log = fresh_log(env, f"console-{name}")
        self.model_log = fresh_log(env, f"nicmodel-{name}")

    def run(
        self,
        job: Job,
        on_line: Callable[[str], None] | None = None,
        on_copied: Callable[[], None] | None = None,
    ) -> Outcome:
        """Boot, run the job's script, power off.

        `on_copied` is called when the VM has its own copy of the build: from then
        on the kernel may be built again.
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
                return _on_terminal(command)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _fill(self, folder: Path, job: Job) -> None:
        self.kernel.copy_modules(folder / "modules", job.modules)
        shutil.copyfile(self.kernel.image, folder / "bzImage")
        fill_share(self.env, folder / "job", job, self.kernel.config)
        if job.selftests is not None:
            job.selftests.copy(folder / "selftests")

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
        if job.selftests is not None:
            shares.append(("selftests", folder / "selftests", False))
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
        for number in range(WIRES):
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
            *job.words,
            "--", "-c", f'"{_FIRST_STEP}"',
        ]  # fmt: skip
        return " ".join(words)

    def _boot(
        self, folder: Path, job: Job, model: Model | None, on_line: Callable[[str], None] | None
    ) -> Outcome:
        self.log.touch()
        serial = ["-chardev", f"file,id=console,path={self.log}", "-serial", "chardev:console"]
        run = Run(
            self.env,
            job,
            name="the VM",
            log=folder / "qemu.log",
            console=self.log,
            out=folder / "out",
            result=folder / "result",
            share=folder / "job",
            model=model,
        )
        return run.follow(self._command(folder, job, model, serial), on_line)


def accel_key() -> str:
    """A key that differs between boots of the host."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        boot = "unknown"
    return f"{boot} {os.uname().release}"


def _on_terminal(command: Sequence[str]) -> int:
    """Run QEMU on this terminal: Ctrl-C belongs to the guest. Its ordinary messages about
    each port look like errors and are filtered."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as child:
        assert child.stderr is not None
        for line in child.stderr:
            if not is_ordinary(line):
                sys.stderr.write(line)
                sys.stderr.flush()
    return child.returncode
