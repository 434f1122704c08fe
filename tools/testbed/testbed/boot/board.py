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
    # More words for the kernel's command line.
    words: tuple[str, ...] = ()

    def command(self, options: str, accel: str, cpus: int | str, memory: int) -> list[str]:
        """The beginning of QEMU's command line, with MiB of memory; `options` are more of the
        board's."""
        return [
            self.program, "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
            "-machine", f"{self.machine}{options}",
            "-accel", accel, "-cpu", "host" if accel == "kvm" else self.cpu,
            "-smp", str(cpus), "-m", str(memory),
        ]  # fmt: skip

    def shared(self, accel: str, cpus: int, memory: int, nodes: int = 1) -> list[str]:
        """The same with memory that other processes can map: the model. Each node has its part
        of the memory and of the processors."""
        if nodes == 1:
            return [*self.command(",memory-backend=ram", accel, cpus, memory),
                    "-object", _ram("ram", memory)]  # fmt: skip
        # A socket for each node, as the kernel expects: the last one may have empty places.
        each = -(-cpus // nodes)
        places = f"{cpus},sockets={nodes},maxcpus={nodes * each}"
        words = self.command("", accel, places, memory)
        for node in range(nodes):
            own = f"cpus={node * each}-{(node + 1) * each - 1}"
            words += ["-object", _ram(f"ram{node}", memory // nodes),
                      "-numa", f"node,nodeid={node},memdev=ram{node},{own}"]  # fmt: skip
        return words


def _ram(name: str, memory: int) -> str:
    return f"memory-backend-memfd,id={name},size={memory}M,share=on"


_BOARDS: Mapping[arch.Arch, Board] = {
    # With five-level paging KASAN sometimes reports a wild access in early boot, which
    # switches lockdep off for the rest of the boot.
    arch.X86: Board(
        "qemu-system-x86_64",
        "q35,usb=off,smbus=off,sata=off",
        "max,la57=off",
        "ttyS0",
        # On a busy host, the kernel waits for the first interrupts in vain, and panics.
        ("no_timer_check",),
    ),
    # A message of MSI-X reaches its processor through the ITS.
    arch.ARM64: Board("qemu-system-aarch64", "virt,gic-version=3,its=on", "neoverse-n1", "ttyAMA0"),
    # Everything below 4 GiB, as the kernel has no LPAE.
    arch.ARM: Board("qemu-system-arm", "virt,highmem=off", "cortex-a15", "ttyAMA0"),
}


def of(config: str) -> Board:
    """The board for the kernel of a configuration."""
    return _BOARDS[arch.of(config)]
