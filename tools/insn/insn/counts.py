# SPDX-License-Identifier: GPL-2.0
"""Turns the report of the insn plugin into figures per function.

The plugin counts blocks of code by address. This module resolves them to the
kernel's and the modules' functions: instructions in total, in a driver, and by
function, calls of functions, and SKBs per bulk free.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from insn.symbols import SymbolTable, readable
from testbed.host.ui import Failure

# Layout of the plugin's report that this module reads.
LAYOUT = 1

# The bulk free of the slab allocator: (cache, number of objects, objects).
BULK_FREE = "kmem_cache_free_bulk"

# The bulk free of SKBs that patches/ adds: (SKBs, their number, NAPI budget).
SKB_BULK_FREE = "napi_consume_skb_bulk"

# The free of a single SKB.
SKB_FREE = "napi_consume_skb"

# Functions of the networking core that call BULK_FREE for SKBs only: they identify
# the slab cache of SKBs.
SKB_FREERS = frozenset(
    {
        "napi_skb_cache_put",
        "napi_skb_free_stolen_head",
        "__napi_kfree_skb",
        "kfree_skb_list_reason",
        "skb_defer_free_flush",
        "napi_skb_cache_put_bulk",
        SKB_FREE,
        SKB_BULK_FREE,
    }
)


@dataclass
class FunctionCount:
    """The instructions and calls of a function."""

    module: str
    function: str
    instructions: int = 0
    entered: int = 0


@dataclass
class WindowCount:
    """The counts between two marks."""

    label: str
    complete: bool
    seconds: float
    total: int
    user: int
    by_module: dict[str, int]
    functions: list[FunctionCount]
    bulk_frees: list[BulkFree] = field(default_factory=list)
    consumed_bulks: dict[int, int] = field(default_factory=dict)

    def driver(self, module: str) -> int:
        """Instructions in the text of a module."""
        return self.by_module.get(module, 0)

    def calls(self, function: str) -> int:
        """The number of calls of a function."""
        return sum(each.entered for each in self.functions if each.function == function)

    def skb_bulk_histogram(self) -> dict[int, int]:
        """Calls of the slab's bulk free for SKBs, by the number of SKBs."""
        histogram: Counter[int] = Counter()
        for each in self.bulk_frees:
            if each.skbs:
                histogram[each.objects] += each.calls
        return dict(sorted(histogram.items()))

    def consume_histogram(self) -> dict[int, int]:
        """Calls that freed completed SKBs, by the number of SKBs."""
        histogram: Counter[int] = Counter(self.consumed_bulks)
        if singles := self.calls(SKB_FREE):
            histogram[1] += singles
        return dict(sorted(histogram.items()))

    def as_json(self, packets: int | None = None, top: int = 30) -> dict[str, Any]:
        """The figures as plain data; per packet too, if their number is given."""
        functions = sorted(self.functions, key=lambda each: -each.instructions)[:top]
        result: dict[str, Any] = {
            "label": self.label,
            "complete": self.complete,
            "seconds": round(self.seconds, 6),
            "total": self.total,
            "user": self.user,
            "by_module": dict(sorted(self.by_module.items())),
            "by_function": [asdict(each) for each in functions],
            "skb_bulk_free_histogram": self.skb_bulk_histogram(),
            "skb_consume_histogram": self.consume_histogram(),
        }
        if packets:
            result["per_packet"] = {
                "total": round(self.total / packets, 2),
                "by_module": {
                    name: round(count / packets, 2)
                    for name, count in sorted(self.by_module.items())
                },
            }
        return result


@dataclass
class BulkFree:
    """Calls of the bulk free that are alike."""

    caller: str
    cache: int
    objects: int
    calls: int
    skbs: bool = False


def plugin_arguments(plugin: Path, out: Path, system_map: Path) -> list[str]:
    """The words for QEMU's command line."""
    table = SymbolTable()
    table.add_kernel(system_map)
    parts = [_escape(plugin), f"out={_escape(out)}"]
    # An unpatched kernel has no bulk free of SKBs.
    for function in (BULK_FREE, SKB_BULK_FREE):
        if (address := table.address(function)) is not None:
            parts.append(f"calls={function}@{address:x}")
    return ["-plugin", ",".join(parts)]


def _escape(path: Path) -> str:
    """QEMU ends an option at a comma unless it is doubled."""
    return str(path).replace(",", ",,")


def analyse(
    report: Path, system_map: Path, modules: Mapping[str, Path] | None = None
) -> list[WindowCount]:
    """Reads a report; modules maps the names of modules to their files.

    A module of the guest without a file is an error: its instructions would
    silently belong to no module.
    """
    document = _load(report)
    tables: dict[str, SymbolTable] = {}
    counts = []
    for raw in document["windows"]:
        try:
            text = json.loads(raw["text"])
            label, loaded = str(text["label"]), dict(text["modules"])
        except (ValueError, KeyError, TypeError) as error:
            raise Failure(
                f"{report}: a window is described by {raw['text']!r}, "
                "which insn-mark did not write; was it run twice at once?"
            ) from error
        key = json.dumps(loaded, sort_keys=True)
        if key not in tables:
            tables[key] = _table(system_map, modules or {}, loaded)
        counts.append(_count(label, raw, tables[key]))
    _find_skbs(counts)
    return counts


def _load(report: Path) -> dict[str, Any]:
    try:
        document = json.loads(report.read_text(encoding="utf-8"))
    except OSError as error:
        raise Failure(f"cannot read {report}: {error.strerror}") from error
    except ValueError as error:
        raise Failure(f"{report}: no JSON: {error}") from error
    layout = document.get("layout") if isinstance(document, dict) else None
    if layout != LAYOUT:
        raise Failure(f"{report}: layout {layout!r}, expected {LAYOUT}; rebuild tools/insn/plugin")
    return dict(document)


def _table(
    system_map: Path, files: Mapping[str, Path], loaded: Mapping[str, Mapping[str, str]]
) -> SymbolTable:
    table = SymbolTable()
    table.add_kernel(system_map)
    for name, sections in loaded.items():
        if name not in files:
            raise Failure(f"module {name} was measured, but its file was not given")
        table.add_module(name, files[name], {key: int(at, 16) for key, at in sections.items()})
    return table


def _count(label: str, raw: Mapping[str, Any], table: SymbolTable) -> WindowCount:
    functions: dict[tuple[str, str], FunctionCount] = {}
    by_module: Counter[str] = Counter()
    for address, insns, count in raw["rows"]:
        place = table.find(address)
        name = readable(place.function)
        entry = functions.setdefault(
            (place.module, place.function), FunctionCount(place.module, name)
        )
        entry.instructions += insns * count
        by_module[place.module] += insns * count
        if place.offset == 0:
            entry.entered += count
    bulk_frees = [
        BulkFree(readable(table.find(caller).function), cache, objects, calls)
        for caller, cache, objects, calls in raw["calls"].get(BULK_FREE, [])
    ]
    consumed: Counter[int] = Counter()
    for _, _, objects, calls in raw["calls"].get(SKB_BULK_FREE, []):
        consumed[objects] += calls
    return WindowCount(
        label=label,
        complete=bool(raw["complete"]),
        seconds=raw["nanoseconds"] / 1e9,
        total=raw["instructions"],
        user=by_module.pop("[user]", 0),
        by_module=dict(by_module),
        functions=list(functions.values()),
        bulk_frees=bulk_frees,
        consumed_bulks=dict(consumed),
    )


def _find_skbs(counts: Sequence[WindowCount]) -> None:
    """Marks the bulk frees of SKBs: those to a cache that the core uses for them.

    All drivers of a boot share the cache, so a window of one driver identifies it
    for the others.
    """
    frees = [each for count in counts for each in count.bulk_frees]
    caches = {each.cache for each in frees if each.caller in SKB_FREERS}
    for each in frees:
        each.skbs = each.cache in caches


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the figures of a report."""
    parser = argparse.ArgumentParser(
        prog="insn.counts",
        description="Says in which functions the instructions of a report ran.",
    )
    parser.add_argument("report", type=Path, help="file that the plugin wrote (out=)")
    parser.add_argument("--system-map", type=Path, required=True, help="System.map of the kernel")
    parser.add_argument(
        "--module",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="file of a module that was measured, e.g. ixgbe=drivers/.../ixgbe.ko",
    )
    parser.add_argument("--packets", type=int, help="packets per window, for figures per packet")
    parser.add_argument("--top", type=int, default=30, help="functions to list (%(default)s)")
    options = parser.parse_args(arguments)
    modules = {}
    for pair in options.module:
        name, separator, file = pair.partition("=")
        if not separator:
            parser.error(f"--module {pair}: write NAME=FILE")
        modules[name] = Path(file)
    try:
        counts = analyse(options.report, options.system_map, modules)
    except Failure as error:
        print(f"insn.counts: {error}", file=sys.stderr)
        return 1
    json.dump([each.as_json(options.packets, options.top) for each in counts], sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
