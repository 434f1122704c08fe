# SPDX-License-Identifier: GPL-2.0
"""The boards that QEMU emulates, one for each architecture."""

from collections.abc import Mapping
from dataclasses import dataclass

from testbed.build import arch


@dataclass(frozen=True)
class Board:
    """A board, in QEMU's words."""

    program: str
    machine: str
    # The processor with TCG.
    cpu: str
    # The kernel's name of the serial line.
    console: str

    def command(self, options: str, accel: str, cpus: int, memory: str) -> list[str]:
        """The beginning of QEMU's command line; `options` are more of the board's."""
        return [
            self.program, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
            "-machine", f"{self.machine}{options}",
            "-accel", accel, "-cpu", "host" if accel == "kvm" else self.cpu,
            "-smp", str(cpus), "-m", memory,
        ]  # fmt: skip

    def shared(self, accel: str, cpus: int, memory: str) -> list[str]:
        """The same with memory that other processes can map: the model."""
        ram = f"memory-backend-memfd,id=ram,size={memory},share=on"
        return [*self.command(",memory-backend=ram", accel, cpus, memory), "-object", ram]


_BOARDS: Mapping[arch.Arch, Board] = {
    # With five-level paging KASAN sometimes reports a wild access in early boot, which
    # switches lockdep off for the rest of the boot.
    arch.X86: Board(
        "qemu-system-x86_64", "q35,usb=off,smbus=off,sata=off", "max,la57=off", "ttyS0"
    ),
    # A message of MSI-X reaches its processor through the ITS.
    arch.ARM64: Board("qemu-system-aarch64", "virt,gic-version=3,its=on", "neoverse-n1", "ttyAMA0"),
    # Everything below 4 GiB, as the kernel has no LPAE.
    arch.ARM: Board("qemu-system-arm", "virt,highmem=off", "cortex-a15", "ttyAMA0"),
}


def of(config: str) -> Board:
    """The board for the kernel of a configuration."""
    return _BOARDS[arch.of(config)]
