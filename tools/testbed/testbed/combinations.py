# SPDX-License-Identifier: GPL-2.0
"""Values of variables that make no sense together, or on this machine.

As in settings.py, the standard library of Python 3.9 has to do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.boot.card import CARDS
from testbed.catalogue import BENCHES, SUITES
from testbed.host.ui import Failure, similar

if TYPE_CHECKING:
    from testbed.settings import Settings

KVM = Path("/dev/kvm")
# Whether something is wrong, the variable, the other way out than to leave it out, and why.
Rule = tuple[object, str, str, str]


def together(settings: Settings) -> None:
    """Refuse combinations that make no sense."""
    _names(settings)
    for rules in (_machine, _only, _ports, _fuzz):
        for wrong, name, other, why in rules(settings):
            if wrong:
                raise Failure(f"{name}={settings.text(name)}: {why}",
                              f"leave {name} out, or {other}")  # fmt: skip
    if settings.verb == "run" and not settings.given("SCRIPT"):
        raise Failure("no script to run",
                      "make run SCRIPT=path [DRIVER=rust|c] [CONFIG=perf|debug]",
                      "make shell gives a prompt instead")  # fmt: skip


def _machine(settings: Settings) -> Iterator[Rule]:
    """The guest, its card and its kernel."""
    text, given, switch = settings.text, settings.given, settings.switch
    demo, uml, plain = settings.verb == "demo", text("MACHINE") == "uml", not switch("OVERLAY")
    card, config, kvm = text("CARD"), text("CONFIG"), text("ACCEL") == "kvm"
    modelled, one = CARDS[card].is_modelled, "MACHINE=uml" if uml else "OVERLAY=0"
    # A tree of the user's own may have the driver.
    rust = given("DRIVER") and text("DRIVER") == "rust" and not given("KDIR")
    yield uml and given("CONFIG"), "CONFIG", "MACHINE=uml", "User-Mode Linux has one kernel only"
    yield (demo and config != "perf", "CONFIG", "take make run",
           "the demo measures, and that kernel is slow")  # fmt: skip
    yield uml and not modelled, "CARD", "MACHINE=uml", "only QEMU models that card"
    yield (switch("JUDGE") and not modelled, "JUDGE", "CARD",
           f"there is no judge of the card {card}, which QEMU models")  # fmt: skip
    yield (switch("RECORD") and card != "82599", "RECORD", "CARD",
           f"the record is of the card 82599, not of {card}")  # fmt: skip
    yield uml and text("ACCEL"), "ACCEL", "MACHINE=uml", "User-Mode Linux has no accelerator"
    # KVM runs this machine's own architecture.
    yield kvm and config.startswith("arm"), "ACCEL", "CONFIG", f"CONFIG={config} is emulated"
    yield (kvm and not os.access(KVM, os.R_OK | os.W_OK), "ACCEL", "take tcg",
           f"{KVM} is missing or not accessible")  # fmt: skip
    yield (demo and switch("RECORD") and (uml or plain), "RECORD", one,
           "the record of the demo takes both drivers, in QEMU")  # fmt: skip
    yield plain and rust, "DRIVER", "OVERLAY=0", "with OVERLAY=0 there is no Rust driver"


def _only(settings: Settings) -> Iterator[Rule]:
    """ONLY, and variables of some suites and benchmarks."""
    names, only = settings.names("ONLY"), f"ONLY={settings.text('ONLY')}"
    yield names and settings.given("ALL"), "ALL", "ONLY", f"{only} says what runs"
    yield ("bisect" in names and len(names) > 1, "ONLY", "name bisect alone",
           "bisect goes alone: it changes the kernel tree that the others use")  # fmt: skip
    yield (settings.verb == "test" and settings.given("SERIES") and names != ["bisect"], "SERIES",
           "add ONLY=bisect", "only the suite bisect takes a series")  # fmt: skip
    nodes = settings.text("NODES") != "1"
    yield nodes and names != ["insn"], "NODES", "take ONLY=insn", "only insn has such a machine"
    yield nodes and settings.switch("RECORD"), "RECORD", "NODES", "the record is of one node"
    yield (settings.given("CASES") and names and not {"forward", "tcp"} & {*names}, "CASES",
           "add forward or tcp to ONLY",
           "only the benchmarks forward and tcp have such cases")  # fmt: skip


def _fuzz(settings: Settings) -> Iterator[Rule]:
    """The kernel with the card inside has both drivers built in."""
    fuzz, text = settings.verb == "fuzz", settings.text
    yield (fuzz and text("DRIVER") not in ("rust", "c"), "DRIVER", "take rust or c",
           "the kernel with the card inside has no modules")  # fmt: skip
    yield (fuzz and text("CONFIG") not in ("perf", "debug"), "CONFIG", "take debug",
           "the card is inside of two kernels, with checkers (debug) and without")  # fmt: skip


def _names(settings: Settings) -> None:
    """The suites and benchmarks that ONLY names are there; pytest knows the programs."""
    known = {"test": SUITES, "bench": BENCHES}.get(settings.verb, {})
    for name in settings.names("ONLY"):
        suite, slash, _ = name.partition("/")
        if name != "list" and (suite not in known or (slash and settings.verb == "bench")):
            kind = "suite" if settings.verb == "test" else "benchmark"
            raise Failure(f"ONLY={name}: there is no such {kind}",
                          *similar(name, known), f"there are {', '.join(known)}")  # fmt: skip


def _ports(settings: Settings) -> Iterator[Rule]:
    """The suite on ports of this machine goes with NETIF and REMOTE, and alone."""
    netif, names = settings.text("NETIF"), settings.names("ONLY")
    example = "make test NETIF=eth2 REMOTE=ssh:root@192.168.1.2"
    if settings.given("NETIF") != settings.given("REMOTE"):
        lacking = "REMOTE" if netif else "NETIF"
        raise Failure(f"{lacking} is missing: NETIF and REMOTE are both ends of a cable",
                      f"an example: {example}")  # fmt: skip
    yield (netif and os.geteuid() != 0, "NETIF", "call make as root",
           "the tests change interfaces of this machine")  # fmt: skip
    others = [name for name in names if name.partition("/")[0] != "ports"]
    yield (netif and others, "ONLY", "take ports or ports/program",
           f"{', '.join(others)} does not run on NETIF={netif}")  # fmt: skip
    yield not netif and len(others) < len(names), "ONLY", f"say it: {example}", "which port?"
