# SPDX-License-Identifier: GPL-2.0
"""Runs the kernel as a process: User-Mode Linux, at the machine's own speed.

The root file system is the one that this program runs in, through hostfs and
read-only. Otherwise a guest looks like one in QEMU: the same init, the same
places, the modelled ports, a script, its output and its exit code. The ports
are virtio devices that carry PCI, and serial lines lead to the model's control
socket.
"""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from testbed.boot import judge
from testbed.boot.card import CARDS
from testbed.boot.job import Job, OnLine, Outcome, Run
from testbed.boot.machine import Machine
from testbed.boot.nicmodel import WIRES, Model
from testbed.boot.usage import UsageLine
from testbed.settings import child_environment

_MEMORY = "768M"
# CONFIG_UML_PCI_OVER_VIRTIO_DEVICE_ID
DEVICE = 1234
# Microseconds that the guest waits for the model's answer. On a busy machine the
# model may get no processor for longer than the default of 40 ms.
_PATIENCE = 20_000_000


class Uml(Machine):
    """User-Mode Linux."""

    def _boot(self, run: Run, on_line: OnLine | None) -> Outcome:
        with _lines(run.model) as lines, closing(UsageLine()) as usage:
            command = self._command(run, lines, usage.descriptor)
            return run.follow(command, "the kernel", on_line, None, _environment(),
                              [*lines, usage.descriptor], usage.answer_for)  # fmt: skip

    def _on_terminal(self, run: Run) -> int:
        with _lines(run.model) as lines:
            return subprocess.call(self._command(run, lines), env=_environment(), pass_fds=lines)

    def _model(self, job: Job, folder: Path) -> Model:
        words = [] if job.shared_tails and not job.judge else ["--trap"]
        if job.judge:
            words += judge.words(job.driver)
        words += CARDS[job.card].words
        program, (_, processors) = self.tools / "nicmodel", pins(job)
        return Model(program, folder, self._model_log, job.ports, "vhost", words, processors)

    def _command(self, run: Run, lines: Sequence[int], usage: int | None = None) -> list[str]:
        job, folder, model = run.job, run.folder, run.model
        processors, _ = pins(job)
        words = [
            *processors,
            str(folder / "kernel"),
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
            # Tests look for what is behind the text that was there before: none may leave.
            "log_buf_len=4M",
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


@contextmanager
def _lines(model: Model | None) -> Iterator[list[int]]:
    """Descriptors of lines to the model."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(model.connect()) for _ in range(WIRES)] if model else []
        yield [one.fileno() for one in sockets]


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
