# SPDX-License-Identifier: GPL-2.0
"""The way from a clone to something bootable, shared by the verbs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.boot import accel, nicmodel
from testbed.boot.uml import Uml
from testbed.boot.vm import Vm
from testbed.build import driver, kernel, selftests
from testbed.build.driver import Driver
from testbed.build.kernel import Kernel
from testbed.build.selftests import Selftests
from testbed.env import Env
from testbed.host.lock import Lock
from testbed.host.ui import Failure
from testbed.source import tree

# What User-Mode Linux runs on, where a VM has KVM or TCG.
NATIVE = "native"


@dataclass(frozen=True)
class Built:
    """What was built, under a lock that keeps others from changing it."""

    env: Env
    kernels: dict[str, Kernel]
    tools: Path
    lock: Lock
    # Only where the workshop was asked for them.
    selftests: Selftests | None = None

    def vm(self, config: str, name: str) -> Vm:
        """A VM of one of the kernels."""
        return Vm(self.env, self.kernels[config], self.tools, name)

    def uml(self, name: str, config: str = kernel.UML) -> Uml:
        """The kernel that is a process."""
        return Uml(self.env, self.kernels[config], self.tools, name)

    def machine(self, config: str, name: str) -> Vm | Uml:
        """Whatever runs the kernel of this configuration."""
        if config in kernel.NATIVE:
            return self.uml(name, config)
        return self.vm(config, name)

    def accel(self, config: str) -> str:
        """KVM, TCG or neither for one of the kernels."""
        if config in kernel.NATIVE:
            return NATIVE
        return accel.choose(self.env, self.kernels[config], self.tools)


def chosen_driver(ready: Built, config: str) -> Driver:
    """The driver that DRIVER names, built if it is a folder; rust unless there is no overlay."""
    env = ready.env
    folder = env.settings.driver_folder()
    if folder is not None:
        return driver.build(env, ready.kernels[config], folder)
    if env.overlay_off and not env.settings.given("DRIVER"):
        return Driver("c")
    return Driver(env.settings.text("DRIVER"))


def default_config(env: Env) -> str:
    """The kernel that MACHINE and CONFIG name."""
    uml = env.settings.text("MACHINE") == "uml"
    return kernel.UML if uml else env.settings.text("CONFIG")


class Workshop:
    """Builds kernels and tools, each once, under a lock on the kernel tree.

    Its methods may be called by several threads: the second one that wants a
    kernel waits until the first one has built it.
    """

    def __init__(
        self, env: Env, lock: Lock, configs: Sequence[str], *, with_selftests: bool = False
    ) -> None:
        self.env = env
        self.lock = lock
        self._work = kernel.prepare_tree(env)
        # Others may use the tree after its last kernel is built, so these come first.
        self._selftests = selftests.build(env, self._work) if with_selftests else None
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
        return Built(self.env, kernels, tools, self.lock, self._selftests)

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
            with Lock(nicmodel.target_folder(self.env) / "skbulk.lock", "the host tools"):
                self._tools = nicmodel.build(self.env)
        return self._tools


@contextmanager
def workshop(env: Env, *configs: str, with_selftests: bool = False) -> Iterator[Workshop]:
    """A workshop for these configurations, and no others."""
    env.out.mkdir(parents=True, exist_ok=True)
    with Lock(tree.place(env) / "lock", "this kernel tree") as lock:
        yield Workshop(env, lock, configs, with_selftests=with_selftests)


@contextmanager
def built(env: Env, *configs: str, with_selftests: bool = False) -> Iterator[Built]:
    """Build the tree, the kernels and the tools; share the lock afterwards."""
    with workshop(env, *configs, with_selftests=with_selftests) as shop:
        yield shop.ready(*configs)
