# SPDX-License-Identifier: GPL-2.0
"""Instructions per forwarded packet, and the record that limits them."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from insn.counts import WindowCount
from insn.symbols import KERNEL
from testbed.bench.rows import Row
from testbed.host.ui import Failure

# The record is part of the project, relative to the clone.
RECORD = Path("tools/insn/record/insn.json")
RENEW = "make bench ONLY=insn RECORD=1 renews the record; commit it with the change"
# A larger growth beyond the record is a failure.
TOLERANCE = 0.01
# Functions with fewer instructions per packet are not listed.
_LEAST = 0.05
# The minimum growth of a function to be named as a cause.
_GREW = 0.3
MODULES = {"rust": "ixgbe_rust", "c": "ixgbe"}
CASES = ("driver", "kernel crate", "memory", "all")
# Those that the record limits.
JUDGED = ("driver", "memory", "all")

# The functions that allocate, free and recycle the memory of packets, of either driver: SKBs,
# receive buffers, and the allocators below. napi_build_skb_list() also does what
# eth_type_trans() does, and the functions that fill a receive ring write its descriptors.
_MEMORY = frozenset({
    "napi_build_skb", "__napi_build_skb", "napi_build_skb_list", "napi_build_offloads",
    "napi_skb_cache_take", "napi_skb_cache_get_bulk", "__napi_alloc_frag_align",
    "napi_consume_skb", "napi_consume_skb_bulk", "napi_consume_skb_any",
    "napi_skb_cache_put", "napi_skb_cache_put_bulk", "skb_release_all", "skb_release_data",
    "skb_release_head_state", "skb_free_head", "napi_pp_put_page", "__kfree_skb", "kfree_skbmem",
    "skb_attempt_defer_free", "page_frag_free", "is_vmalloc_addr", "build_detached_freelist",
    "alloc_from_pcs_bulk", "refill_objects", "__refill_objects_node", "get_page_from_freelist",
    "__rmqueue_pcplist", "rmqueue_bulk", "prep_new_page", "__free_frozen_pages",
    "free_frozen_page_commit", "free_pcppages_bulk", "ixgbe_alloc_rx_buffers",
    "ixgbe_rust::rx::RxRing::refill",
})  # fmt: skip
_MEMORY_PREFIXES = (
    "page_pool_", "__page_pool_", "kmem_cache_alloc", "kmem_cache_free", "__kmem_cache_free",
    "__pcs_replace_", "barn_", "__slab_free", "slab_update_freelist", "alloc_pages_",
    "__alloc_frozen_pages", "alloc_frozen_pages_",
)  # fmt: skip


@dataclass(frozen=True)
class Cost:
    """Instructions per forwarded packet, with one driver."""

    cases: Mapping[str, float]
    functions: Mapping[str, float] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """As plain data, with the functions that matter, the largest first."""
        functions = sorted(self.functions.items(), key=lambda item: (-item[1], item[0]))
        return {
            **{name: round(self.cases[name], 2) for name in CASES},
            "functions": {name: round(count, 2) for name, count in functions if count >= _LEAST},
        }


def is_rust(name: str) -> bool:
    """Whether a function of the kernel is part of the `kernel` crate or one of its helpers."""
    return name.startswith(("kernel::", "core::", "alloc::", "rust_helper_"))


def is_memory(name: str) -> bool:
    """Whether a function allocates, frees or recycles the memory of packets."""
    return name in _MEMORY or name.startswith(_MEMORY_PREFIXES)


def cost(
    window: WindowCount,
    packets: int,
    modules: Mapping[str, str] = MODULES,
    without: Collection[str] = (),
) -> Cost:
    """The cost per packet in a window; user space does not count, nor modules that are left out."""
    functions: Counter[str] = Counter()
    crate = memory = 0
    for each in window.functions:
        # User space is all of one module, whose name is in brackets.
        if each.module.startswith("["):
            continue
        functions[f"{each.module} {each.function}"] += each.instructions
        if each.module == KERNEL and is_rust(each.function):
            crate += each.instructions
        if is_memory(each.function):
            memory += each.instructions
    cases = {
        "driver": window.driver(modules[window.label]) / packets,
        "kernel crate": crate / packets,
        "memory": memory / packets,
        "all": sum(n for name, n in window.by_module.items() if name not in without) / packets,
    }
    return Cost(cases, {name: count / packets for name, count in functions.items()})


def costs(
    windows: list[WindowCount],
    packets: int,
    modules: Mapping[str, str] = MODULES,
    without: Collection[str] = (),
) -> dict[str, Cost]:
    """The cost with each driver; a window that was not closed is an error."""
    for window in windows:
        if not window.complete:
            raise Failure(f"counting instructions of {window.label} ended too early")
    return {window.label: cost(window, packets, modules, without) for window in windows}


def rows(found: Mapping[str, list[Cost]]) -> list[Row]:
    """Rows for out/bench.json: ours is the Rust driver, the reference the C driver."""
    return [_row(case, case, found) for case in CASES]


def transmit_rows(found: Mapping[str, list[Cost]]) -> list[Row]:
    """The same for packets that are sent."""
    return [_row(f"transmit {case}", case, found) for case in ("driver", "all")]


def _row(name: str, case: str, found: Mapping[str, list[Cost]]) -> Row:
    ours, reference = found.get("rust", []), found.get("c", [])
    pairs = [(a.cases[case], b.cases[case]) for a, b in zip(ours, reference, strict=False)]
    ratios = tuple(b / a for a, b in pairs if a and b)
    means = [sum(side) / len(side) for side in zip(*pairs, strict=True)] or [None, None]
    return Row("insn", name, "instructions", means[0], means[1], ratios)


def spread(found: list[Cost], case: str) -> float:
    """The spread of the runs, as a share of the minimum."""
    values = [one.cases[case] for one in found]
    least = min(values, default=0.0)
    return max(values) / least - 1 if least else 0.0


def worst(found: list[Cost]) -> Cost:
    """The maximum of each case over the runs, with the functions of the most expensive run."""
    most = max(found, key=lambda one: one.cases["all"])
    cases = {case: max(one.cases[case] for one in found) for case in most.cases}
    return Cost(cases, most.functions)


def typical(found: list[Cost]) -> Cost:
    """The median of each case over the runs, with the functions of the run in the middle."""
    cases = {case: statistics.median(one.cases[case] for one in found) for case in found[0].cases}
    middle = sorted(found, key=lambda one: one.cases["all"])[len(found) // 2]
    return Cost(cases, middle.functions)


def top(found: Cost, name: str, count: int = 20) -> list[str]:
    """The most expensive functions, as lines of text."""
    lines = [f"{name}: the {count} functions with most instructions per packet"]
    order = sorted(found.functions.items(), key=lambda item: -item[1])[:count]
    for function, instructions in order:
        module, _, rest = function.partition(" ")
        lines.append(f"{instructions:>10.1f}  {module:<11} {short(rest)}")
    return lines


def short(function: str, width: int = 60) -> str:
    """The end of a long path, which identifies the function."""
    return function if len(function) <= width else "…" + function[1 - width :]


def load(path: Path) -> dict[str, Any]:
    """The record."""
    return dict(json.loads(path.read_text(encoding="utf-8")))


def save(path: Path, found: Mapping[str, Cost], kernel: str, frames: int) -> None:
    """Write the record."""
    record = {
        "kernel": kernel,
        "frames": frames,
        "drivers": {name: found[name].record() for name in sorted(found)},
    }
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def judge(record: Mapping[str, Any], found: Cost) -> dict[str, str | None]:
    """For each case of the Rust driver, growth beyond the record, with its causes.

    A machine that is short of processor time adds to a count: packets pile up until the caches of
    SKBs overflow, and timer interrupts come. Only counts of a quiet machine prove something.
    """
    known = record["drivers"]["rust"]
    verdicts: dict[str, str | None] = {}
    for case in JUDGED:
        before, now = float(known[case]), found.cases[case]
        verdicts[case] = None
        if now > before * (1 + TOLERANCE):
            grown = _grown(known["functions"], found, case)
            verdicts[case] = (
                f"{now:.1f} instructions per packet, {100 * (now / before - 1):.1f} % more than "
                f"the record's {before:.1f}; grew: {', '.join(grown) or 'no single function'}; "
                f"{RENEW}"
            )
    return verdicts


def _grown(known: Mapping[str, float], found: Cost, case: str) -> list[str]:
    """The functions of a case that have grown, the worst first."""
    growth = {
        name: now - float(known.get(name, 0.0))
        for name, now in found.functions.items()
        if _belongs(name, case)
    }
    worst = sorted(growth.items(), key=lambda item: -item[1])[:5]
    return [f"{short(name)} (+{more:.1f})" for name, more in worst if more >= _GREW]


def _belongs(name: str, case: str) -> bool:
    module, _, function = name.partition(" ")
    if case == "driver":
        return module == MODULES["rust"]
    return case != "memory" or is_memory(function)
