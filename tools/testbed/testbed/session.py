# SPDX-License-Identifier: GPL-2.0
"""The way from a clone to something bootable, shared by the verbs."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
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

# What User-Mode Linux runs on, where a VM has KVM or TCG.
NATIVE = "native"


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

    def machine(self, config: str, name: str) -> Vm | Uml:
        """Whatever runs the kernel of this configuration."""
        return self.uml(name) if config == kernel.UML else self.vm(config, name)

    def accel(self, config: str) -> str:
        """KVM, TCG or neither for one of the kernels."""
        if config == kernel.UML:
            return NATIVE
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
    """The kernel that MACHINE and CONFIG name."""
    if default_machine() == "qemu":
        return choice("CONFIG", CONFIGS, "perf")
    if os.environ.get("CONFIG"):
        raise Failure(
            f"CONFIG={os.environ['CONFIG']}: User-Mode Linux has one kernel only",
            "leave CONFIG out, or MACHINE=uml",
        )
    return kernel.UML


def default_machine() -> str:
    """The machine that MACHINE names."""
    return choice("MACHINE", ("qemu", "uml"), "qemu")


class Workshop:
    """Builds kernels and tools, each once, under a lock on the kernel tree.

    Its methods may be called by several threads: the second one that wants a
    kernel waits until the first one has built it.
    """

    def __init__(self, env: Env, lock: Lock, configs: Sequence[str]) -> None:
        self.env = env
        self.lock = lock
        self._work = kernel.prepare_tree(env)
        self._missing = set(configs)
        self._guard = threading.Lock()
        self._making = {config: threading.Lock() for config in configs}
        self._made: dict[str, Kernel | Failure] = {}
        self._tools: Path | None = None

    def ready(self, *configs: str) -> Built:
        """The tools, and the kernels of some of the configurations."""
        with self._guard:
            tools = self._built_tools()
        kernels = {config: self._kernel(config) for config in configs}
        return Built(self.env, kernels, tools, self.lock)

    def _kernel(self, config: str) -> Kernel:
        with self._making[config]:
            if config not in self._made:
                try:
                    self._made[config] = kernel.build(self.env, self._work, config)
                except Failure as error:
                    self._made[config] = error
                self._done(config)
            made = self._made[config]
        if isinstance(made, Failure):
            raise made
        return made

    def _done(self, config: str) -> None:
        """After the last build others may use what is there."""
        with self._guard:
            self._missing.discard(config)
            if not self._missing:
                self.lock.share()

    def _built_tools(self) -> Path:
        if self._tools is None:
            with Lock(model.target_folder(self.env) / "skbulk.lock", "the host tools"):
                self._tools = model.build(self.env)
        return self._tools


@contextmanager
def workshop(env: Env, *configs: str) -> Iterator[Workshop]:
    """A workshop for these configurations, and no others."""
    env.out.mkdir(parents=True, exist_ok=True)
    with Lock(tree.place(env) / "lock", "this kernel tree") as lock:
        yield Workshop(env, lock, configs)


@contextmanager
def built(env: Env, *configs: str) -> Iterator[Built]:
    """Build the tree, the kernels and the tools; share the lock afterwards."""
    with workshop(env, *configs) as shop:
        yield shop.ready(*configs)
