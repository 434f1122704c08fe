# SPDX-License-Identifier: GPL-2.0
"""The architectures that kernels are built for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Arch:
    """An architecture, as the kernel's make knows it."""

    # The value of ARCH=; none for this machine's own.
    name: str
    # The target of make that is the bootable image, and its path in the build.
    target: str
    image: str

    @property
    def words(self) -> list[str]:
        """Its words for make."""
        return [f"ARCH={self.name}"] if self.name else []


X86 = Arch("", "bzImage", "arch/x86/boot/bzImage")
UM = Arch("um", "linux", "linux")
ARM64 = Arch("arm64", "Image", "arch/arm64/boot/Image")
ARM = Arch("arm", "zImage", "arch/arm/boot/zImage")
FOREIGN = (ARM64, ARM)

# By configuration; the others are kernels for this machine's own architecture.
_ARCHES = {
    "uml": UM, "selftests": UM, "up": UM, "fuzz": UM, "fuzzcheck": UM,
    "arm64": ARM64, "arm": ARM,
}  # fmt: skip


def of(config: str) -> Arch:
    """The architecture of a configuration."""
    return _ARCHES.get(config, X86)
