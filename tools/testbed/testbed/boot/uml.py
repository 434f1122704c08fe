# SPDX-License-Identifier: GPL-2.0
"""Runs the kernel as a process: User-Mode Linux, at the machine's own speed.

The root file system is the one that this program runs in, through hostfs and
read-only. Otherwise a guest looks like one in QEMU: the same init, the same
places, the modelled ports, a script, its output and its exit code. The ports
are virtio devices that carry PCI, and serial lines lead to the model's control
socket.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from testbed.boot.job import Job, Outcome, Run, fill_share, fresh_log
from testbed.boot.nicmodel import WIRES, Model
from testbed.boot.usage import UsageLine
from testbed.build.kernel import Kernel
from testbed.env import Env
from testbed.settings import child_environment

_MEMORY = "768M"
# CONFIG_UML_PCI_OVER_VIRTIO_DEVICE_ID
DEVICE = 1234
# Microseconds that the guest waits for the model's answer. On a busy machine the
# model may get no processor for longer than the default of 40 ms.
_PATIENCE = 20_000_000


class Uml:
    """One run of the kernel. The folder of a run goes away with it."""

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
        """Start the kernel, run the job's script, power off."""
        with self._prepared(job) as (folder, model, lines):
            if on_copied:
                on_copied()
            run = Run(
                self.env,
                job,
                name="the kernel",
                log=self.log,
                console=self.log,
                out=folder / "job/out",
                result=folder / "job/result",
                share=folder / "job",
                model=model,
            )
            with closing(UsageLine()) as usage:
                all_lines = [*lines, usage.descriptor]
                command = self._command(folder, job, model, lines, usage.descriptor)
                return run.follow(command, on_line, _environment(), all_lines, usage.answer_for)

    def shell(self, job: Job, on_copied: Callable[[], None]) -> int:
        """Start it with the console on this terminal; returns its exit code."""
        with self._prepared(job) as (folder, model, lines):
            on_copied()
            command = self._command(folder, job, model, lines)
            return subprocess.call(command, env=_environment(), pass_fds=lines)

    @contextmanager
    def _prepared(self, job: Job) -> Iterator[tuple[Path, Model | None, list[int]]]:
        """The run's folder, the model, and descriptors of lines to it."""
        folder = Path(tempfile.mkdtemp(prefix="skbulk-uml-"))
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            self._fill(folder, job)
            if job.ports == 0:
                yield folder, None, []
                return
            _, processors = pins(job)
            model = stack.enter_context(
                Model(
                    self.tools / "nicmodel",
                    folder / "model",
                    self.model_log,
                    job.ports,
                    transport="vhost",
                    words=() if job.shared_tails else ("--trap",),
                    before=processors,
                )
            )
            lines = [stack.enter_context(model.connect()).fileno() for _ in range(WIRES)]
            yield folder, model, lines

    def _fill(self, folder: Path, job: Job) -> None:
        self.kernel.copy_modules(folder / "modules", job.modules)
        # A copy that is cheap where it can be: the image is 30 MB.
        shutil.copy2(self.kernel.image, folder / "linux")
        fill_share(self.env, folder / "job", job, self.kernel.config)
        for name in ("out", "result"):
            (folder / "job" / name).touch()
        if job.selftests is not None:
            job.selftests.copy(folder / "selftests")

    def _command(
        self,
        folder: Path,
        job: Job,
        model: Model | None,
        lines: Sequence[int],
        usage: int | None = None,
    ) -> list[str]:
        processors, _ = pins(job)
        words = [
            *processors,
            str(folder / "linux"),
            f"mem={_MEMORY}",
            "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
            f"init={self.env.clone}/tools/testbed/guest/init",
            # Words unknown to the kernel become variables of init.
            "SKBULK_MACHINE=uml",
            f"SKBULK_CLONE={self.env.clone}",
            f"SKBULK_RUN={folder}",
            f"SKBULK_TOOLS={self.tools}",
            f"SKBULK_WIRES={len(lines)}",
            "con=null", "con0=fd:0,fd:1", "ssl=null", "panic=-1", "loglevel=7",
            *[f"ssl{number}=fd:{line}" for number, line in enumerate(lines)],
            f"virtio_pcidev.max_delay_us={_PATIENCE}",
            *job.words,
        ]  # fmt: skip
        if usage is not None:
            words += [f"ssl{len(lines)}=fd:{usage}", "SKBULK_USAGE=1"]
        if model is not None:
            ports = range(model.ports)
            words += [f"virtio_uml.device={model.port(number)}:{DEVICE}" for number in ports]
        if job.cpus > 1:
            # Processes of the guest must be threads of the host for that.
            words += ["seccomp=on", f"ncpus={job.cpus}"]
        return words


def pins(job: Job) -> tuple[list[str], list[str]]:
    """Prefixes for the commands of the kernel and the model that give each its own
    processors. If there are too few, both share them."""
    if not job.pinned:
        return [], []
    here = sorted(os.sched_getaffinity(0))
    if len(here) <= job.cpus:
        return [], []
    return _taskset(here[: job.cpus]), _taskset(here[job.cpus :])


def _taskset(processors: Sequence[int]) -> list[str]:
    return ["taskset", "-c", ",".join(map(str, processors))]


def _environment() -> dict[str, str]:
    """The guest's memory is a file there; anywhere else it would be on a disk."""
    return child_environment(TMPDIR="/dev/shm")
