# SPDX-License-Identifier: GPL-2.0
"""The names that ONLY= takes, and their descriptions."""

from __future__ import annotations

# The suites of make test, in their order; tools/testbed/suites holds them.
SUITES = {
    "python": "unit tests of the Python packages in tools/",
    "lint": "formatters and linters of tools/",
    "cargo": "unit tests of the NIC model and the other host tools",
    "orderings": "the model check fails for each memory ordering that is weakened",
    "kernel-lint": "rustfmt, clippy and checkpatch of the kernel code",
    "compile-fail": "misuse that the compiler must refuse",
    "kunit": "KUnit tests and doc examples",
    "e2e-rust": "end to end, Rust driver",
    "kunit-uml": "KUnit tests and doc examples, natively in User-Mode Linux with 2 CPUs",
    "e2e-uml": "end to end, Rust driver, natively in User-Mode Linux",
    "trace": "register accesses that only one of the two drivers makes are explained",
    "driver": "the tutorial's driver, built from its folder, in User-Mode Linux",
    "litmus": "litmus tests against the kernel's memory model (herd7)",
    "bench": "memory, TCP, qdisc and ring benchmarks, one round, not judged by speed",
    "e2e-sleep": "end to end, Rust driver: sleep, resets and errors of the bus",
    "e2e-c": "end to end, stock C driver: the control, which tests the model and the tests",
    "e2e-kx4": "end to end, the Rust driver with ports of a backplane, in User-Mode Linux",
    "e2e-wake": "end to end, Rust driver: packets wake the machine",
    "e2e-e1000e": "end to end, the sample driver of a card that QEMU models (82574L)",
    "cfi-types": "Rust code compiled for kCFI: callbacks have the types that C calls them by",
    "objects": "object code: the Rust driver has no path to a panic, and stack frames are small",
    "compare": "the demo in small, with its limits",
    "e2e-debug": "end to end, Rust driver in the debug kernel: what e2e-rust leaves out",
    "e2e-debug-e1000e": "end to end, the sample driver for the 82574L in the debug kernel",
    "bounce": "end to end, Rust driver, each DMA through a bounce buffer (swiotlb=force)",
    "iommu": "end to end, Rust driver, behind a strict IOMMU",
    "cfi": "KUnit, end to end, a million frames, in a kernel that checks calls (kCFI)",
    "rt": "KUnit and end to end, in a real-time kernel (PREEMPT_RT)",
    "arm64": "KUnit and end to end, in an emulated 64-bit Arm machine",
    "arm64-82599": "end to end, Rust driver, in that machine",
    "arm": "KUnit in an emulated 32-bit Arm machine, ARMv7",
    "up": "KUnit in a kernel for one processor (without SMP)",
    "kcsan": "KUnit with 4 CPUs in a kernel that looks for data races",
    "bisect": "the kernel builds after each patch of a series (SERIES=name, or all)",
    "mutants": "seeded defects of the Rust driver, which the selftests must refuse",
    "mutants-few": "a sample of them",
    "selftests": "the kernel's own tests of drivers, with both drivers: a record",
    "deb": "make deb in bare Debian 12 and 13, its packages on a machine, the Containerfile",
    "ports": "the selftests for any port with a peer, on one of this machine (NETIF=, REMOTE=)",
}
# Those that make test runs by itself, apart from tests that are marked as beyond it. Their only
# kernel is User-Mode Linux, and none measures. ALL=1 adds the rest.
TIER = (
    "python", "lint", "cargo", "kernel-lint", "compile-fail", "objects", "kunit-uml", "e2e-uml",
    "e2e-kx4", "driver", "litmus",
)  # fmt: skip
# Suites that run only if ONLY names them: they need a kernel of their own, or long.
ON_REQUEST = (
    "e2e-debug", "e2e-debug-e1000e", "bounce", "iommu", "cfi", "rt", "arm64", "arm64-82599",
    "arm", "up", "kcsan", "bisect", "mutants", "mutants-few", "selftests", "deb", "ports",
)  # fmt: skip
# Suites of which ONLY=suite/part runs a part, beside those of selftests/kinds.py.
IN_PARTS = ("deb", "lint", "mutants", "mutants-few", "ports", "selftests")
DEB_PARTS = ("bookworm", "trixie", "guest", "container")
LINTERS = ("rustfmt", "clippy", "mypy", "ruff check", "ruff format", "shellcheck")
# The mutants of the small suite: of each kind a cheap one.
MUTANTS_FEW = (
    "rx-tail-early", "tx-no-fcs", "tables-undefined", "crc-disagrees", "msix-single",
)  # fmt: skip

# The benchmarks of bulk memory: each has two modules in samples/rust/bulk_bench, bench_NAME.rs
# and reference/bench_NAME_reference.c.
MEMORY = {
    "slab": "objects of a slab cache in bulk",
    "alf_queue": "a lockless queue against ptr_ring",
    "qmempool": "a memory pool against the slab allocator",
}
# The benchmarks of make bench.
BENCHES = {
    **MEMORY,
    "forward": "forwarding, Rust driver against C driver",
    "tcp": "TCP over a cable, Rust driver against C driver",
    "xmit": "many senders on one queue: sink, qdiscs; 1 to 480 simulated",
    "insn": "instructions per forwarded packet",
    "xmit-sim": "the simulation alone, with what xmit has measured last",
}
