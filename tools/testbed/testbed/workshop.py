# SPDX-License-Identifier: GPL-2.0
"""The builds that the verbs share, from a clone to a bootable kernel."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

from testbed.boot import accel, nicmodel
from testbed.boot.machine import Machine
from testbed.boot.uml import Uml
from testbed.boot.vm import Vm
from testbed.build import arch, driver, kernel, selftests
from testbed.build.selftests import Selftests
from testbed.env import Env
from testbed.host.aside import Watch, beside, check
from testbed.host.lock import Lock
from testbed.host.ui import Failure
from testbed.source import tree

# The accelerator of User-Mode Linux, where a VM has KVM or TCG.
NATIVE = "native"
T = TypeVar("T")


@dataclass(frozen=True)
class Built:
    """The builds, under locks that keep other processes from changing them."""

    env: Env
    kernels: dict[str, kernel.Kernel]
    tools: Path
    locks: Sequence[Lock]
    # Only on request.
    selftests: Selftests | None = None

    def vm(self, config: str, name: str) -> Vm:
        """A VM of one of the kernels."""
        return Vm(self.env, self.kernels[config], self.tools, name)

    def uml(self, name: str, config: str = kernel.UML) -> Uml:
        """The kernel that is a process."""
        return Uml(self.env, self.kernels[config], self.tools, name)

    def machine(self, config: str, name: str) -> Machine:
        """The machine that runs the kernel of this configuration."""
        if config in kernel.NATIVE:
            return self.uml(name, config)
        return self.vm(config, name)

    def accel(self, config: str) -> str:
        """KVM, TCG or neither for one of the kernels."""
        if config in kernel.NATIVE:
            return NATIVE
        # KVM runs the machine's own architecture only.
        if arch.of(config) in arch.FOREIGN:
            return "tcg"
        return accel.choose(self.env, self.kernels[config], self.tools)

    def release(self) -> None:
        """Allow other builds: the running machine has its own copies."""
        for lock in self.locks:
            lock.release()


def chosen_driver(ready: Built, config: str) -> driver.Driver:
    """The driver that DRIVER names, built if it is a folder; rust unless there is no overlay."""
    env = ready.env
    folder = env.settings.driver_folder()
    if folder is not None:
        return driver.build(env, ready.kernels[config], folder)
    if env.overlay_off and not env.settings.given("DRIVER"):
        return driver.Driver("c")
    return driver.Driver(env.settings.text("DRIVER"))


def default_config(env: Env) -> str:
    """The kernel that MACHINE and CONFIG name."""
    uml = env.settings.text("MACHINE") == "uml"
    return kernel.UML if uml else env.settings.text("CONFIG")


class Workshop(ExitStack):
    """Builds kernels, tools and selftests on demand, each once; the locks are held to its end.

    It shares the kernel tree with other processes of the same clone, so that they can
    build other kernels at the same time; a kernel is built by one of them, and shared
    from then on.
    """

    def __init__(self, env: Env) -> None:
        super().__init__()
        self.env = env
        self._locks: list[Lock] = []
        self._made: dict[str, object] = {}

    def ready(
        self, *configs: str, with_selftests: bool = False, modules: Sequence[str] = ()
    ) -> Built:
        """The tools, the kernels of some of the configurations, the kernel's selftests.

        `modules` are those that the caller needs of the kernels: all by default.
        """
        # A good part of a kernel's build, its Rust crates, keeps a single CPU busy.
        with beside(lambda watch: self._once("tools", partial(self._build_tools, watch))) as tools:
            programs = self.selftests() if with_selftests else None
            kernels = {
                config: self._once(
                    f"kernel {config} {modules}",
                    partial(self._build_kernel, config, partial(check, tools), modules),
                )
                for config in configs
            }
            return Built(self.env, kernels, tools.result(), self._locks, programs)

    def selftests(self) -> Selftests:
        """The kernel's selftests alone, for this machine's own kernel."""
        return self._once("programs", self._build_selftests)

    def _once(self, name: str, make: Callable[[], T]) -> T:
        """Make something once. A failure is not retried, as its lock is held."""
        if name not in self._made:
            try:
                self._made[name] = make()
            except Failure as error:
                self._made[name] = error
        made = self._made[name]
        if isinstance(made, Failure):
            raise made
        return cast(T, made)

    def _tree(self) -> tree.Tree:
        """The tree with the overlay, shared: no process changes it meanwhile."""
        place = tree.place(self.env) / "lock"
        return self._once(
            "tree", lambda: kernel.shared_tree(self.env, self._share(place, "this kernel tree"))
        )

    def _build_kernel(self, config: str, watch: Watch, modules: Sequence[str]) -> kernel.Kernel:
        work, place = self._tree(), kernel.build_lock(self.env, config)
        # One lock for all that is built of a kernel: a second one would wait for the first.
        lock = self._once(
            f"lock of {config}", lambda: self._share(place, f"the {config} kernel of this tree")
        )
        if found := kernel.finished(self.env, work, config, modules):
            return found
        lock.own()
        try:
            # Another process may have built it meanwhile.
            return kernel.finished(self.env, work, config, modules) or kernel.build(
                self.env, work, config, watch, modules
            )
        finally:
            lock.share()

    def _build_selftests(self) -> Selftests:
        # Always the tree first: its holder must not wait for a process that waits for it.
        work = self._tree()
        with Lock(kernel.build_lock(self.env, "programs"), "the kernel's selftests"):
            return selftests.build(self.env, work)

    def _build_tools(self, watch: Watch) -> Path:
        with Lock(nicmodel.target_folder(self.env) / "skbulk.lock", "the host tools"):
            return nicmodel.build(self.env, watch)

    def _share(self, place: Path, what: str) -> Lock:
        self._locks.append(self.enter_context(Lock(place, what, shared=True)))
        return self._locks[-1]


@contextmanager
def built(
    env: Env, *configs: str, with_selftests: bool = False, modules: Sequence[str] = ()
) -> Iterator[Built]:
    """Build the tree, the kernels with these modules or all, and the tools."""
    with Workshop(env) as shop:
        yield shop.ready(*configs, with_selftests=with_selftests, modules=modules)
