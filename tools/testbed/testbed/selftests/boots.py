# SPDX-License-Identifier: GPL-2.0
"""Runs the kernel's own tests of drivers, with one driver: in User-Mode Linux, or in QEMU if they
need features that User-Mode Linux lacks."""

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.boot import dmesg
from testbed.boot.job import Job
from testbed.build.kernel import SELFTESTS, SELFTESTS_VM, UML
from testbed.build.selftests import Selftests
from testbed.env import Env
from testbed.host import debian
from testbed.host.tables import rows
from testbed.host.ui import Failure, Step, say, similar
from testbed.selftests import record
from testbed.selftests.results import Program, parse, silent
from testbed.workshop import Built

KERNELS = (UML, SELFTESTS, SELFTESTS_VM)
COLLECTIONS = ("drivers/net", "drivers/net/hw", "bpf")
_SOURCE = "tools/testing/selftests"
# Seconds for a program, and for a guest in which that limit no longer works.
_TIME_LIMIT = 600
_BOOT_TIME = 5400.0
NO_COMPLAINT = "the kernel does not complain"
# With those of its libraries that the build root does not have.
_BPFTRACE = ("bpftrace", "libbpfcc", "libclang-cpp19")
_CALL_BPFTRACE = """#!/bin/sh
at=/mnt/job/bpftrace/usr
LD_LIBRARY_PATH=$at/lib/x86_64-linux-gnu:$at/lib/llvm-19/lib exec $at/bin/bpftrace "$@"
"""
# From a newer Debian: those of the build root's ask for tracepoints that Linux 7.3 has no more.
_XDP_TOOLS = ("xdp-tools", "libxdp1")
_CALL_XDP_TOOL = """#!/bin/sh
at=/mnt/job/xdp-tools/usr
lib=$at/lib/x86_64-linux-gnu
LD_LIBRARY_PATH=$lib LIBXDP_OBJECT_PATH=$lib/bpf exec $at/sbin/${0##*/} "$@"
"""
_MARK = re.compile(r"skbulk: (begin|end) (\S+)\r?$")


@dataclass(frozen=True)
class Setting:
    """A machine with a setup of ports, for one kind of programs."""

    name: str
    ports: int
    cpus: int
    config: str = SELFTESTS
    # Number of queues, whose interrupts go to one CPU each; 0: a queue for each CPU, with the
    # default affinity.
    directed: int = 0


# NETIF and a peer in a namespace, and as many queues as some programs ask for; interfaces on the
# command line, wired in pairs, with one that has no cable. User-Mode Linux has 32 interrupt vectors
# for all of them.
_PEER = Setting("peer", ports=2, cpus=8)
_PAIRS = Setting("pairs", ports=7, cpus=2)
# As the first, with CPUs that have no queue, for RPS.
_VM = Setting("vm", ports=2, cpus=6, config=SELFTESTS_VM, directed=4)
# As the second, for BPF programs: those that need nothing that other guests do not have, and those
# at tracepoints.
_BPF = Setting("pairs-bpf", ports=4, cpus=2, config=UML)
_BPF_VM = Setting("pairs-bpf-vm", ports=4, cpus=2, config=SELFTESTS_VM)
_SETTINGS = (_PEER, _PAIRS, _BPF, _VM, _BPF_VM)
_IN_VM = {name for name, _ in rows(Path(__file__).with_name("in_qemu.txt"), 2)}


def programs(selftests: Selftests, clone: Path) -> list[str]:
    """Upstream's programs, without those that this clone adds to the same folders."""
    found = selftests.programs(*COLLECTIONS)
    return [name for name in found if not (clone / _SOURCE / name).exists()]


def strayed(names: Sequence[str]) -> list[str]:
    """Programs that need QEMU and are not in the tree, under that name at least."""
    return sorted(_IN_VM - set(names))


def setting(selftests: Selftests, program: str) -> Setting:
    """The setup for a program, as in drivers/net/README.rst."""
    if program.startswith("bpf/"):
        return _BPF_VM if program in _IN_VM else _BPF
    if program in _IN_VM:
        return _VM
    path = selftests.folder / program
    if path.suffix == ".sh" and "DRIVER_TEST_CONFORMANT" not in path.read_text():
        return _PAIRS
    return _PEER


def run(ready: Built, driver: str, names: Sequence[str]) -> list[Program]:
    """Run programs with one driver; one that kills the guest costs a new boot."""
    assert ready.selftests is not None
    found: list[Program] = []
    for one in _SETTINGS:
        remaining = [name for name in names if setting(ready.selftests, name) == one]
        boot = 0
        while remaining:
            boot += 1
            done = _boot(ready, driver, one, remaining, f"selftests-{driver}-{one.name}-{boot}")
            found += done
            remaining = remaining[len(done) :]
    return found


def chosen(names: Sequence[str], words: Sequence[str]) -> list[str]:
    """The programs that ONLY=selftests/... names; all if it names none."""
    known = {Path(name).name: name for name in names}
    found = []
    for word in words:
        # As in other suites, .py may be left out.
        program = known.get(word) or known.get(f"{word}.py") or known.get(f"{word}.sh")
        if program is None:
            hints = *similar(word, known, "selftests/"), f"it has {', '.join(known)}"
            raise Failure(f"ONLY=selftests/{word}: the tree has no such program", *hints)
        found.append(program)
    return list(dict.fromkeys(found)) or list(names)


def configs(selftests: Selftests, names: Sequence[str]) -> list[str]:
    """The kernels in which some programs run."""
    wanted = {setting(selftests, name).config for name in names}
    return [config for config in KERNELS if config in wanted]


def both(ready: Built, names: Sequence[str]) -> tuple[dict[str, list[Program]], dict[str, Any]]:
    """Run programs with both drivers; returns them, and the record."""
    found = {driver: run(ready, driver, names) for driver in record.DRIVERS}
    results = {driver: record.of_driver(found[driver]) for driver in sorted(found, reverse=True)}
    say(*(f"    {line}" for line in record.table(results)))
    return found, results


def _boot(ready: Built, driver: str, one: Setting, names: Sequence[str], log: str) -> list[Program]:
    """One boot: the programs that ran in it, at least the first."""
    machine = ready.machine(one.config, log)
    lines: list[str] = []
    job = Job(
        ready.env.clone / "tools/testbed/guest/driver_selftests.py",
        driver,
        timeout=_BOOT_TIME,
        cpus=one.cpus,
        ports=one.ports,
        accel=ready.accel(one.config),
        selftests=ready.selftests,
        variables={
            "PORTS": one.name,
            "PROGRAMS": " ".join(names),
            "TIME_LIMIT": str(_TIME_LIMIT),
            "DIRECTED": str(one.directed),
        },
        ipv6=True,
        on_share=lambda share: _bring_programs(ready.env, one, share),
    )
    why = "the guest ended"
    with (
        (ready.env.logs / f"{log}.tap").open("w", encoding="utf-8") as tap,
        Step(f"{driver} driver, {one.name}, {one.ports} ports: {len(names)} programs") as step,
    ):

        def follow(line: str) -> None:
            lines.append(line)
            print(line, file=tap, flush=True)
            if line.startswith("# begin "):
                step.detail = line.removeprefix("# begin ")

        try:
            console = machine.run(job, follow).console
        except Failure as error:
            why = error.on_one_line
            console = machine.log.read_text(errors="replace") if machine.log.exists() else ""
        step.detail = ""
    done = parse(lines, why)
    if not done:
        say(f"    {why}")
        done = [silent(names[0], "the guest is ready", why)]
    blame(done, console)
    return done


def _bring_programs(env: Env, one: Setting, share: Path) -> None:
    """Bring programs that the tests ask for and that are not in the build root."""
    folder = share / "bin"
    folder.mkdir()
    if one == _VM:
        shutil.copytree(debian.unpacked(env, "bpftrace", _BPFTRACE, debian.OWN), share / "bpftrace")
        (folder / "bpftrace").write_text(_CALL_BPFTRACE)
        (folder / "bpftrace").chmod(0o755)
    if one in (_BPF, _BPF_VM):
        tools = debian.unpacked(env, "xdp-tools", _XDP_TOOLS)
        shutil.copytree(tools, share / "xdp-tools", symlinks=True)
        for tool in (tools / "usr/sbin").iterdir():
            (folder / tool.name).write_text(_CALL_XDP_TOOL)
            (folder / tool.name).chmod(0o755)
    # It has JSON for channels and rings.
    ethtool = debian.unpacked(env, "ethtool", ("ethtool",)) / "usr/sbin/ethtool"
    shutil.copy2(ethtool, folder / "ethtool")


def blame(done: Sequence[Program], console: str) -> None:
    """Blame kernel complaints on the programs during which they appeared."""
    parts: dict[str, list[str]] = {}
    part: list[str] = []
    for line in console.splitlines():
        match = _MARK.search(line)
        if match and match[1] == "begin":
            # A kernel log may hold earlier runs.
            part = parts[match[2]] = []
        part.append(line)
    for program in done:
        lines = parts.get(program.name)
        if lines is None:
            program.trouble(NO_COMPLAINT, "the console has no mark of the program")
        elif complaints := dmesg.complaints("\n".join(lines)):
            program.trouble(NO_COMPLAINT, str(complaints[0]))
