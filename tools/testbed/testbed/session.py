# SPDX-License-Identifier: GPL-2.0
"""The way from a clone to something bootable, shared by the verbs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed import accel, kernel, model, tree
from testbed.env import Env
from testbed.kernel import CONFIGS, Kernel
from testbed.lock import Lock
from testbed.ui import Failure
from testbed.uml import Uml
from testbed.vm import Vm


@dataclass(frozen=True)
class Built:
    """What was built, under a lock that keeps others from changing it."""

    env: Env
    kernels: dict[str, Kernel]
    tools: Path
    lock: Lock

    def vm(self, config: str, name: str) -> Vm:
        """A VM of one of the kernels."""
        return Vm(self.env, self.kernels[config], self.tools, name)

    def uml(self, name: str) -> Uml:
        """The kernel that is a process."""
        return Uml(self.env, self.kernels[kernel.UML], self.tools, name)

    def accel(self, config: str) -> str:
        """KVM or TCG for one of the kernels."""
        return accel.choose(self.env, self.kernels[config], self.tools)


def choice(name: str, allowed: tuple[str, ...], default: str) -> str:
    """The value of a variable that has a few allowed values."""
    value = os.environ.get(name) or default
    if value not in allowed:
        raise Failure(f"{name}={value}: {name} is one of {', '.join(allowed)}")
    return value


def default_driver(env: Env) -> str:
    """The driver that DRIVER names; rust unless the tree has no overlay."""
    return choice("DRIVER", ("rust", "c", "none"), "c" if env.overlay_off else "rust")


def default_config() -> str:
    """The kernel that CONFIG names."""
    return choice("CONFIG", CONFIGS, "perf")


def default_machine() -> str:
    """The machine that MACHINE names."""
    return choice("MACHINE", ("qemu", "uml"), "qemu")


@contextmanager
def built(env: Env, *configs: str) -> Iterator[Built]:
    """Build the tree, the kernels and the tools; share the lock afterwards."""
    env.out.mkdir(parents=True, exist_ok=True)
    with Lock(tree.place(env) / "lock", "this kernel tree") as lock:
        work = kernel.prepare_tree(env)
        kernels = {config: kernel.build(env, work, config) for config in configs}
        with Lock(model.target_folder(env) / "skbulk.lock", "the host tools"):
            tools = model.build(env)
        lock.share()
        yield Built(env, kernels, tools, lock)
