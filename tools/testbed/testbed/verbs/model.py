# SPDX-License-Identifier: GPL-2.0
"""make model: the modelled card for one's own QEMU or User-Mode Linux."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from testbed.boot import nicmodel
from testbed.boot.uml import DEVICE
from testbed.env import Env
from testbed.host import proc
from testbed.host.lock import Lock
from testbed.host.ui import Failure, say

_PORTS = 2
# The maximum length of a socket's address.
_LONGEST = 107


def main(env: Env) -> int:
    """Build the model, and print the commands that attach it."""
    with Lock(nicmodel.target_folder(env) / "skbulk.lock", "the host tools"):
        built = nicmodel.build(env) / "nicmodel"
        program = env.out / "nicmodel/nicmodel"
        program.parent.mkdir(parents=True, exist_ok=True)
        # Replaced by renaming: the old one may be running.
        part = program.with_suffix(".part")
        shutil.copy2(built, part)
        part.rename(program)
    say(f"\n{program}")
    say(f"    needs {needs(program)}\n")
    for line in recipe(program, sockets(env)):
        say(line)
    return 0


def needs(program: Path) -> str:
    """The requirements of the program."""
    done = proc.capture(["readelf", "--version-info", program], stderr=subprocess.PIPE)
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", done.stdout)
    if done.returncode or not versions:
        raise Failure(f"{program} is no program that can be read: {done.stderr.strip()}")
    major, minor = max((int(major), int(minor)) for major, minor in versions)
    return f"Linux on x86-64 with glibc {major}.{minor} or later, and libgcc_s"


def sockets(env: Env) -> Path:
    """The folder of the sockets: in out/, unless its path is too long for that."""
    folder = env.out / "nicmodel/sockets"
    if len(str(folder / "control.sock")) <= _LONGEST:
        return folder
    return Path(tempfile.gettempdir()) / "nicmodel"


def recipe(program: Path, folder: Path) -> list[str]:
    """The commands, ready to be pasted."""
    run, where = shlex.quote(str(program)), shlex.quote(str(folder))
    ports = [folder / f"port{number}.sock" for number in range(_PORTS)]
    devices = []
    for number, path in enumerate(ports):
        socket = f'{{"path":"{path}","type":"unix"}}'
        device = f'{{"driver":"vfio-user-pci","bus":"slot{number}","socket":{socket}}}'
        devices += [
            f"      -device pcie-root-port,id=slot{number},chassis={number + 1} \\",
            f"      -device {shlex.quote(device)} \\",
        ]
    uml = [f"      {shlex.quote(f'virtio_uml.device={path}:{DEVICE}')} \\" for path in ports]
    control = shlex.quote(f"UNIX-CONNECT:{folder}/control.sock")
    return [
        "QEMU 10.1 or later; the model first, and your guest's other options in place of …:",
        "",
        f"  {run} serve --ports {_PORTS} --dir {where}",
        "",
        "  qemu-system-x86_64 -machine q35,memory-backend=ram -m 1G \\",
        "      -object memory-backend-memfd,id=ram,size=1G,share=on \\",
        *devices,
        "      …",
        "",
        "User-Mode Linux with CONFIG_UML_PCI_OVER_VIRTIO=y and",
        f"CONFIG_UML_PCI_OVER_VIRTIO_DEVICE_ID={DEVICE}; the model first:",
        "",
        f"  {run} serve --ports {_PORTS} --transport vhost --dir {where}",
        "",
        "  TMPDIR=/dev/shm linux mem=512M \\",
        *uml,
        "      …",
        "",
        "Then modprobe ixgbe in the guest. The model explains its requests with",
        "",
        f'  echo \'{{"cmd":"help"}}\' | socat -t 5 - {control}',
        "",
        "and tools/nicmodel/README.md has recipes: Wireshark, TAP, iperf3 over a cable.",
    ]
