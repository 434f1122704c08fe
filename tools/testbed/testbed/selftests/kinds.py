# SPDX-License-Identifier: GPL-2.0
"""The end-to-end suites: which driver, in which kernel, with which programs of the selftests.

ONLY= is checked with it before anything is built, so it needs the standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.boot.card import MODELLED

FOLDER = "tools/testing/selftests/drivers/net/hw"
# The first may switch off the checker of DMA mappings, and the second looks for leaks of all
# the others.
_LAST = ("alloc_fail.py", "leaks.py")


@dataclass(frozen=True)
class Kind:
    """A suite: a driver in one of the kernels."""

    suite: str
    driver: str
    config: str
    # Only these, or all.
    programs: tuple[str, ...] = ()
    # If make test runs the suite without ALL=1: not these.
    beyond: tuple[str, ...] = ()
    # Not these.
    without: tuple[str, ...] = ()
    # A key of CARDS.
    card: str = MODELLED
    # For the kernel's command line, and a line of the console that shows their effect.
    words: tuple[str, ...] = ()
    sign: str = ""
    # Whether the model judges the driver.
    judged: bool = False
    # Whether the driver is the control, which tests the model and the tests. Its failure counts if
    # it is there in a second run, too; one that is not is listed as a skipped case.
    control: bool = False


# Programs that need nothing of a card that only the modelled one has.
GENERAL = (
    "driver_stats.py",
    "forward.py",
    "intr_modes.py",
    "leaks.py",
    "lifecycle.py",
    "reconfig_traffic.py",
    "ring_sizes.py",
    "rx_filter.py",
    "tcp_stream.py",
    "tx_features.py",
    "tx_timestamp.py",
)
# Programs that look at the data of frames, on the modelled card.
_DATA = (
    "faulty_device.py",
    "link_loss.py",
    "multiqueue.py",
    "rx_buffers.py",
    "segmentation.py",
    "vlan.py",
)
# Programs that a link without a module makes a difference for.
_BACKPLANE = ("backplane.py", "loopback.py", "self_test.py")
# Programs about queues of the stack.
_QUEUES = ("net_pair.py", "xmit_llist.py", "xmit_llist_selftests.py")
# Of these, one takes long: the others enter the same parts.
_QUEUES_LONG = ("xmit_llist_selftests.py",)
# Programs that e2e-uml runs in a fraction of the time that they take in the debug kernel.
_LONG = (
    "atr.py",
    "controls.py",
    "flow_rules.py",
    "lro.py",
    "mac_stats.py",
    "napi.py",
    "net_pair.py",
    "pci_error.py",
    "rx_queue_restart.py",
    "segmentation.py",
    "self_test.py",
    "setters_fuzz.py",
    "sfp.py",
    "vlan.py",
)
# The debug kernel has neither SCTP nor tunnels.
_NOT_DEBUG = ("sctp.py", "tunnels.py")
KINDS = (
    Kind("e2e-rust", "rust", "debug", without=(*_LONG, *_NOT_DEBUG), judged=True),
    Kind("e2e-debug", "rust", "debug", (*_LONG, "leaks.py"), judged=True),
    Kind("e2e-debug-e1000e", "rust", "debug", (*GENERAL, "alloc_fail.py"), card="e1000e"),
    Kind("e2e-uml", "rust", "uml", beyond=_QUEUES_LONG, judged=True),
    # A test of the model and its judge: the driver needs no checkers, and queues are the same
    # before each driver.
    Kind("e2e-c", "c", "uml", without=_QUEUES, judged=True, control=True),
    # Ports without a cage.
    Kind(
        "e2e-kx4", "rust", "uml", _BACKPLANE, beyond=_BACKPLANE[1:], card="82599-kx4", judged=True
    ),
    # User-Mode Linux can neither sleep nor report errors of its bus.
    Kind("e2e-sleep", "rust", "perf", ("pci_error.py", "power.py"), judged=True),
    # A board that has power for it while the machine sleeps.
    Kind("e2e-wake", "rust", "debug", ("wake_up.py",), card="82599-kx4", judged=True),
    # The general ones: of the others, each case would skip itself.
    Kind("e2e-e1000e", "rust", "perf", GENERAL, card="e1000e"),
    # A buffer that is not handed over in time keeps old data in its bounce buffer.
    Kind(
        "bounce",
        "rust",
        "perf",
        (*GENERAL, *_DATA),
        words=("swiotlb=force", "loglevel=7"),
        sign="software IO TLB: area num",
        judged=True,
    ),
    # Memory that the driver has unmapped, or never mapped, is out of the card's reach.
    Kind(
        "iommu",
        "rust",
        "debug",
        (*GENERAL, *_DATA),
        words=("intel_iommu=on", "iommu.strict=1"),
        sign="DMAR: Intel(R) Virtualization Technology for Directed I/O",
        judged=True,
    ),
    Kind("cfi", "rust", "cfi", judged=True),
    Kind("rt", "rust", "rt", judged=True),
    Kind("arm64", "rust", "arm64", GENERAL, card="e1000e"),
    Kind("arm64-82599", "rust", "arm64", (*GENERAL, *_DATA), judged=True),
)

# Suites whose kernel and model COVERAGE=1 can build to count.
COVERED = ("e2e-uml", "e2e-kx4")


def programs(clone: Path) -> list[str]:
    """The programs in their order; files that are not executable are their helpers."""
    found = [
        path.name for path in sorted((clone / FOLDER).glob("*.py")) if os.access(path, os.X_OK)
    ]
    return sorted(found, key=lambda name: _LAST.index(name) if name in _LAST else -1)


def programs_of(clone: Path, suite: str) -> list[str]:
    """The programs of a suite; none if the suite has no programs."""
    return [
        name
        for kind in KINDS
        for name in programs(clone)
        if kind.suite == suite and name in (kind.programs or (name,)) and name not in kind.without
    ]


def in_tier(clone: Path, suites: Sequence[str]) -> list[str]:
    """The programs of some suites that make test runs by itself, as ONLY= names them."""
    return [
        f"{kind.suite}/{Path(name).stem}"
        for kind in KINDS
        for name in programs_of(clone, kind.suite)
        if kind.suite in suites and name not in kind.beyond
    ]
