# SPDX-License-Identifier: GPL-2.0
"""Describes the machine and the kernel of a measurement, so that figures can be compared."""

import os
import platform
import re
from pathlib import Path
from typing import Any

from testbed.build.kernel import Kernel
from testbed.env import Env
from testbed.host import proc


def _first_line(text: str | None) -> str | None:
    return text.splitlines()[0].strip() if text and text.strip() else None


def _field(path: str, name: str) -> str | None:
    try:
        text = Path(path).read_text(errors="replace")
    except OSError:
        return None
    found = re.search(rf"^{name}\s*:\s*(.+)$", text, re.M)
    return found[1].strip() if found else None


def describe_machine(accel: str) -> dict[str, Any]:
    """The properties of the host that matter for speed."""
    return {
        "cpu": _field("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "memory": _field("/proc/meminfo", "MemTotal"),
        "host_kernel": platform.release(),
        "load": round(os.getloadavg()[0], 2),
        "qemu": _first_line(proc.output(["qemu-system-x86_64", "--version"])),
        "accel": accel,
    }


def describe_kernel(env: Env, kernel: Kernel) -> dict[str, Any]:
    """The kernel and the tools that compiled it."""
    return {
        "release": kernel.release,
        "config": kernel.config,
        "clang": _first_line(proc.output([f"clang{env.llvm}", "--version"])),
        "rustc": _first_line(proc.output(["rustc", "--version"])),
        "overlay": not env.overlay_off,
    }
