# SPDX-License-Identifier: GPL-2.0
"""Values of variables that make no sense together, or on this machine.

As in settings.py, the standard library of Python 3.9 has to do.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.boot.card import CARDS
from testbed.catalogue import BENCHES, DEB_PARTS, IN_PARTS, LINTERS, MUTANTS_FEW, SUITES
from testbed.host.ui import Failure
from testbed.selftests import kinds

if TYPE_CHECKING:
    from testbed.settings import Settings

KVM = Path("/dev/kvm")
# The interfaces of this machine.
NET = Path("/sys/class/net")
# The network namespaces with a name.
NAMESPACES = Path("/run/netns")
_CLONE = Path(__file__).resolve().parents[3]


def together(settings: Settings) -> None:
    """Refuse combinations that make no sense."""
    config, uml = settings.text("CONFIG"), settings.text("MACHINE") == "uml"
    if uml and settings.given("CONFIG"):
        raise Failure(f"CONFIG={config}: User-Mode Linux has one kernel only",
                      "leave CONFIG out, or MACHINE=uml")  # fmt: skip
    if settings.verb == "demo" and config != "perf":
        raise Failure(f"CONFIG={config}: the demo measures, and that kernel is slow",
                      "leave CONFIG out; make run takes it")  # fmt: skip
    card = settings.text("CARD")
    if uml and not CARDS[card].is_modelled:
        raise Failure(f"CARD={card}: only QEMU models that card",
                      "leave MACHINE=uml out, or CARD")  # fmt: skip
    if settings.switch("JUDGE") and not CARDS[card].is_modelled:
        raise Failure(f"JUDGE=1: there is no judge of the card {card}, which QEMU models",
                      "leave JUDGE out, or CARD")  # fmt: skip
    if settings.switch("RECORD") and card != "82599":
        raise Failure(f"RECORD=1: the record is of the card 82599, not of {card}",
                      "leave RECORD out, or CARD")  # fmt: skip
    _accel(settings, uml=uml, config=config)
    _overlay(settings, uml=uml)
    rust = settings.given("DRIVER") and settings.text("DRIVER") == "rust"
    # A tree of the user's own may have the driver.
    if rust and not settings.switch("OVERLAY") and not settings.given("KDIR"):
        raise Failure("DRIVER=rust: with OVERLAY=0 there is no Rust driver",
                      "DRIVER=c is the default then")  # fmt: skip
    if settings.switch("TRACE"):
        _trace(settings)
    elif settings.verb == "run" and not settings.given("SCRIPT"):
        raise Failure("no script to run",
                      "make run SCRIPT=path [DRIVER=rust|c] [CONFIG=perf|debug]",
                      "make shell gives a prompt instead")  # fmt: skip
    _only(settings)
    if settings.switch("COVERAGE"):
        _coverage(settings)


def _accel(settings: Settings, *, uml: bool, config: str) -> None:
    """The accelerator is QEMU's, and KVM runs this machine's own architecture."""
    accel = settings.text("ACCEL")
    if accel and uml:
        raise Failure(f"ACCEL={accel}: User-Mode Linux has no accelerator",
                      "leave ACCEL out, or MACHINE=uml")  # fmt: skip
    if accel == "kvm" and config.startswith("arm"):
        raise Failure(f"ACCEL=kvm: CONFIG={config} is emulated", "leave ACCEL out, or CONFIG")
    if accel == "kvm" and not os.access(KVM, os.R_OK | os.W_OK):
        raise Failure(f"ACCEL=kvm: {KVM} is missing or not accessible",
                      "leave ACCEL out: without KVM it is tcg")  # fmt: skip


def _overlay(settings: Settings, *, uml: bool) -> None:
    """Without the series the demo has one driver and no switches of ours."""
    if settings.verb != "demo":
        return
    if settings.switch("XMIT_LLIST") and not settings.switch("OVERLAY"):
        raise Failure("XMIT_LLIST=1: with OVERLAY=0 the kernel has no such code",
                      "leave XMIT_LLIST out, or OVERLAY=0")  # fmt: skip
    if settings.switch("RECORD") and (uml or not settings.switch("OVERLAY")):
        other = "MACHINE=uml" if uml else "OVERLAY=0"
        raise Failure("RECORD=1: the record of the demo takes both drivers, in QEMU",
                      f"leave RECORD out, or {other}")  # fmt: skip


def _trace(settings: Settings) -> None:
    """A trace is of the life of a port in User-Mode Linux, of another driver beside ixgbe."""
    for name in ("SCRIPT", "MACHINE", "CARD", "CONFIG", "JUDGE", "CPUS", "ACCEL", "TIMEOUT",
                 "KERNEL_ARGS"):  # fmt: skip
        fixed = {"MACHINE": "uml", "CARD": "82599", "JUDGE": "0", "CPUS": "2"}.get(name)
        if settings.given(name) and settings.text(name) != fixed:
            raise Failure(f"{name}={settings.text(name)}: a trace has its own script, and is made"
                          " in User-Mode Linux with 2 CPUs, without the judge",
                          f"leave {name} out, or TRACE")  # fmt: skip
    if settings.text("DRIVER") in ("c", "none") or not settings.switch("OVERLAY"):
        raise Failure("TRACE=1: there is no driver to compare ixgbe with",
                      "DRIVER is rust, or the folder of one of your own")  # fmt: skip


def _only(settings: Settings) -> None:
    known = {"test": SUITES, "bench": BENCHES}.get(settings.verb, {})
    what = "suite" if settings.verb == "test" else "benchmark"
    names = settings.names("ONLY")
    for name in names:
        first, slash, program = name.partition("/")
        if name != "list" and (first not in known or (slash and settings.verb == "bench")):
            near = difflib.get_close_matches(name, known, 1)
            raise Failure(
                f"ONLY={name}: there is no such {what}",
                *([f"did you mean {near[0]}?"] if near else []),
                f"there are {', '.join(known)}",
            )
        if slash:
            _program(first, program)
    if names and settings.given("ALL"):
        raise Failure(f"ALL={settings.text('ALL')}: ONLY={settings.text('ONLY')} says what runs",
                      "leave ALL out, or ONLY")  # fmt: skip
    if settings.verb == "test" and "bisect" in names and len(names) > 1:
        raise Failure(f"ONLY={settings.text('ONLY')}: bisect goes alone",
                      "it changes the kernel tree that the others use")  # fmt: skip
    if settings.verb == "test" and settings.given("SERIES") and names != ["bisect"]:
        raise Failure(f"SERIES={settings.text('SERIES')}: only the suite bisect takes a series",
                      "add ONLY=bisect, or leave SERIES out")  # fmt: skip
    _ports(settings, names)
    if settings.given("CASES") and names and not {"forward", "tcp"} & {*names}:
        raise Failure(f"CASES={settings.text('CASES')}: only the benchmarks forward and tcp have "
                      "such cases", "add forward or tcp to ONLY, or leave CASES out")  # fmt: skip


def _parts(suite: str) -> list[str]:
    """The parts of a suite that has others than selftests; those of the tree are not known yet."""
    if suite == "ports":
        return [Path(one).stem for one in kinds.programs(_CLONE)]
    if suite == "mutants":
        return sorted(path.stem for path in (_CLONE / "tools/testbed/mutants").glob("*.patch"))
    parts = {"deb": DEB_PARTS, "lint": LINTERS, "mutants-few": MUTANTS_FEW}
    return [*parts.get(suite, ())]


def _program(suite: str, program: str) -> None:
    """The program is one of its suite."""
    name = f"{suite}/{program}"
    if not program and suite in IN_PARTS:
        raise Failure(f"ONLY={name}: the name of a part of {suite} is missing",
                      f"all of it runs as ONLY={suite}")  # fmt: skip
    known = _parts(suite) or [Path(one).stem for one in kinds.programs_of(_CLONE, suite)]
    if known and program.removesuffix(".py") not in known:
        near = difflib.get_close_matches(program, known, 1)
        raise Failure(
            f"ONLY={name}: the suite {suite} runs no program of that name",
            *([f"did you mean {suite}/{near[0]}?"] if near else []),
            f"it runs {', '.join(known)}",
        )
    if not known and suite not in IN_PARTS:
        raise Failure(f"ONLY={name}: the suite {suite} runs as a whole", f"call it ONLY={suite}")


def _coverage(settings: Settings) -> None:
    """Only programs in User-Mode Linux: it and the model are processes whose memory is read."""
    covered = " and ".join(kinds.COVERED)
    names = settings.names("ONLY")
    if other := [name for name in names if name.partition("/")[0] not in kinds.COVERED]:
        raise Failure(
            f"COVERAGE=1: {other[0]} has no programs that can count functions",
            f"ONLY takes {covered}, or programs of them; without ONLY both run",
        )
    for name in ("ALL", "NETIF"):
        if settings.given(name):
            raise Failure(f"{name}={settings.text(name)}: COVERAGE=1 runs {covered}",
                          f"leave {name} out, or COVERAGE")  # fmt: skip
    if settings.switch("RECORD") and names and {*names} != {*kinds.COVERED}:
        raise Failure("RECORD=1: the record takes all that COVERAGE=1 runs, not a part of it",
                      "leave ONLY out, or RECORD")  # fmt: skip


def _ports(settings: Settings, names: Sequence[str]) -> None:
    """The suite on ports of this machine goes with NETIF and REMOTE, and alone."""
    netif = settings.text("NETIF")
    example = "an example: make test NETIF=eth2 REMOTE=ssh:root@192.168.1.2"
    if settings.given("NETIF") != settings.given("REMOTE"):
        lacking = "REMOTE" if netif else "NETIF"
        raise Failure(f"{lacking} is missing: NETIF and REMOTE are both ends of a cable", example)
    if netif and not (NET / netif).exists():
        raise Failure(f"NETIF={netif}: this machine has no such interface",
                      "ip link shows the names")  # fmt: skip
    kind, _, there = settings.text("REMOTE").partition(":")
    if kind == "netns" and not (NAMESPACES / there).exists():
        raise Failure(f"REMOTE=netns:{there}: there is no such network namespace",
                      "ip netns list shows the names")  # fmt: skip
    if netif and os.geteuid() != 0:
        raise Failure(f"NETIF={netif}: the tests change interfaces of this machine",
                      "call make as root")  # fmt: skip
    others = [name for name in names if name.partition("/")[0] != "ports"]
    if netif and others:
        raise Failure(f"ONLY={settings.text('ONLY')}: {others[0]} does not run on NETIF={netif}",
                      "leave ONLY out, or take ports or ports/program")  # fmt: skip
    if not netif and len(others) < len(names):
        raise Failure(f"ONLY={settings.text('ONLY')}: which port?", example)
