# SPDX-License-Identifier: GPL-2.0
"""Boots the VM with the modelled ports, runs a script in it, collects results.

The root file system is the build root itself over 9p, read-only; the kernel's
command line mounts the clone and starts guest/init from it. The script's
output and exit code come back through virtio ports, apart from the console,
which is kept whole and searched for kernel complaints.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from testbed.boot import board, judge
from testbed.boot.card import CARDS
from testbed.boot.job import Job, OnLine, Outcome, Run, is_ordinary
from testbed.boot.machine import Machine
from testbed.boot.nicmodel import WIRES, Model
from testbed.build import arch

_9P = "trans=virtio,version=9p2000.L,msize=262144"
_GUEST_INIT = "/mnt/clone/tools/testbed/guest/init"
_FIRST_STEP = (
    f"mount -t tmpfs tmpfs /mnt && mkdir /mnt/clone && "
    f"mount -t 9p -o {_9P},ro,cache=loose clone /mnt/clone && exec {_GUEST_INIT}"
)
# MiB
_MEMORY = {"debug": 2048, "kcsan": 2048, "rt": 2048}
_ENOUGH = 1024
_NODES = {"memory": 2}

# The machine has an IOMMU if the kernel is told to use it. In caching mode, the kernel tells of new
# translations, too: QEMU passes them to the model, which has no others.
_USE_IOMMU = "intel_iommu=on"
_IOMMU = ("-device", "intel-iommu,caching-mode=on,intremap=off")


class Vm(Machine):
    """A virtual machine of QEMU."""

    def _boot(self, run: Run, on_line: OnLine | None) -> Outcome:
        self.log.touch()
        serial = ["-chardev", f"file,id=console,path={self.log}", "-serial", "chardev:console"]
        log = run.folder / "qemu.log"
        return run.follow(self._command(run, serial), "the VM", on_line, log)

    def _on_terminal(self, run: Run) -> int:
        return _on_terminal(self._command(run, ["-serial", "mon:stdio"]))

    def _model(self, job: Job, folder: Path) -> Model:
        words = judge.words(job.driver) if job.judge else []
        card = CARDS[job.card]
        return Model(self.tools / "nicmodel", folder, self._model_log, job.ports,
                     card.transport, [*words, *card.words])  # fmt: skip

    def _command(self, run: Run, serial: Sequence[str]) -> list[str]:
        job, folder, model = run.job, run.folder, run.model
        config = self.kernel.config
        memory = _MEMORY.get(config, _ENOUGH)
        nodes = _NODES.get(config) or self.env.settings.number("NODES")
        words = [
            *board.of(config).shared(job.accel, job.cpus, memory, nodes),
            # Before the cards that it translates for.
            *(_IOMMU if _USE_IOMMU in job.words else ()),
            "-device", "pcie-root-port,id=virtio,chassis=99",
            "-device", _virtio("virtio-serial-pci", 0, "max_ports=16"),
            "-kernel", str(folder / "kernel"), "-append", self._append(job), *serial,
        ]  # fmt: skip
        shares = [
            ("rootfs", self.env.guest_root(arch.of(self.kernel.config)), True),
            ("clone", self.env.clone, True),
            ("build", folder / "modules", True),
            ("tools", self.tools, True),
            ("job", run.share, False),
        ]
        if job.selftests is not None:
            shares.append(("selftests", folder / "selftests", False))
        for number, (tag, path, readonly) in enumerate(shares, 1):
            option = f"local,id={tag},path={path},security_model=none,multidevs=remap"
            words += ["-fsdev", option + (",readonly=on" if readonly else "")]
            device = _virtio("virtio-9p-pci", number, f"fsdev={tag},mount_tag={tag}")
            words += ["-device", device]
        for port in (run.out, run.result):
            words += ["-chardev", f"file,id={port.name},path={port}"]
            words += ["-device", f"virtserialport,chardev={port.name},name=org.skbulk.{port.name}"]
        if model is not None:
            words += [*card_words(model), *_wire_words(model)]
        return [*words, *job.plugin, *job.qemu_words]

    def _append(self, job: Job) -> str:
        it = board.of(self.kernel.config)
        words = [
            f"console={it.console}", *it.words, "root=rootfs", "rootfstype=9p",
            f"rootflags={_9P},cache=loose", "ro", "init=/bin/bash",
            "norandmaps", "panic=-1",
            # Tests look for what is behind the text that was there before: none may leave.
            "log_buf_len=4M",
            # The measured kernel prints important messages only: its console is slow.
            "loglevel=6" if self.kernel.config == "perf" else "ignore_loglevel",
            *job.words,
            "--", "-c", f'"{_FIRST_STEP}"',
        ]  # fmt: skip
        return " ".join(words)


def _wire_words(model: Model) -> Iterator[str]:
    for number in range(WIRES):
        name = "org.skbulk.wire" + (f".{number}" if number else "")
        yield from ("-chardev", f"socket,id=wire{number},path={model.control}")
        yield from ("-device", f"virtserialport,chardev=wire{number},name={name}")


def card_words(model: Model) -> list[str]:
    """The card, each port of it in a slot of its own."""
    words: list[str] = []
    for number in range(model.ports):
        words += ["-device", f"pcie-root-port,id=slot{number},chassis={number + 1},x-speed=5"]
        if model.transport == "stream":
            words += _own_card(number, model.port(number))
            continue
        device = {
            "driver": "vfio-user-pci",
            "bus": f"slot{number}",
            "socket": {"path": str(model.port(number)), "type": "unix"},
        }
        words += ["-device", json.dumps(device)]
    return words


def _virtio(driver: str, number: int, options: str) -> str:
    """A function of the virtio card. The drivers of file systems cannot restore a device after
    the machine has slept, so its functions keep their state."""
    return (
        f"{driver},bus=virtio,addr=0.{number},multifunction=on,x-pcie-pm-no-soft-reset=on,{options}"
    )


def _own_card(number: int, path: Path) -> list[str]:
    """A card that QEMU models, connected to the model's socket, with the model's address."""
    return [
        "-netdev", f"stream,id=net{number},server=off,addr.type=unix,addr.path={path}",
        "-device", f"e1000e,netdev=net{number},bus=slot{number},romfile=,"
                   f"mac=02:82:59:90:00:{number:02x}",
    ]  # fmt: skip


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
