# SPDX-License-Identifier: GPL-2.0
"""DRIVER=path: builds a driver of the user's own as an external module."""

from dataclasses import dataclass
from pathlib import Path

from testbed.build.kernel import BUILD_ENV, Kernel, make_command
from testbed.env import Env, short_hash
from testbed.host import proc
from testbed.host.ui import Failure, Step


@dataclass(frozen=True)
class Driver:
    """A driver to load: one of the kernel's, by its word, or modules of the user's own."""

    # An argument of load-driver: rust, c, none, or the name of a module.
    name: str
    # In the order of loading; the last one is the driver.
    modules: tuple[Path, ...] = ()


def build(env: Env, kernel: Kernel, folder: Path) -> Driver:
    """Build the folder against a kernel. Nothing is written into the folder."""
    out = kernel.build.parent / f"driver-{short_hash(str(folder))}-{kernel.config}"
    out.mkdir(exist_ok=True)
    log = proc.fresh(env.logs / f"driver-{folder.name}.log")
    (out / "modules.order").unlink(missing_ok=True)
    make = make_command(env, kernel.tree.work, kernel.build)
    with Step(f"driver: {folder}, {kernel.config} configuration"):
        proc.run(
            [*make, f"M={folder}", f"MO={out}", "modules"],
            log,
            what=f"the build of {folder}",
            env=BUILD_ENV,
        )
    found = modules(folder, out)
    return Driver(found[-1].stem.replace("-", "_"), found)


def modules(folder: Path, out: Path) -> tuple[Path, ...]:
    """The modules that were built from a folder, in their order."""
    names = proc.text_of(out / "modules.order").split()
    # Their paths may be those of the sources; the modules are in the output folder.
    paths = [out / Path(name).relative_to(folder) if Path(name).is_absolute() else out / name
             for name in names]  # fmt: skip
    found = tuple(path.with_suffix(".ko") for path in paths)
    if not found or not all(path.exists() for path in found):
        raise Failure(
            f"DRIVER={folder}: its Makefile builds no module",
            "it needs a line as in: obj-m += my_driver.o",
            "samples/rust/driver_net is a driver to begin with",
        )
    return found
