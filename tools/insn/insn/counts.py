# SPDX-License-Identifier: GPL-2.0
"""Turns the report of the insn plugin into figures per function.

The plugin counts blocks of code by address. This module resolves them to the
kernel's and the modules' functions: instructions in total, in a driver, and by
function, calls of functions, and SKBs per bulk free.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from insn.symbols import USER, SymbolTable, readable

# The bulk free of SKBs that patches/ adds: (SKBs, their number, NAPI budget).
SKB_BULK_FREE = "napi_consume_skb_bulk"

# The free of a single SKB.
SKB_FREE = "napi_consume_skb"


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
    total: int
    by_module: dict[str, int]
    functions: list[FunctionCount]
    consumed_bulks: dict[int, int] = field(default_factory=dict)

    def driver(self, module: str) -> int:
        """Instructions in the text of a module."""
        return self.by_module.get(module, 0)

    def calls(self, function: str) -> int:
        """The number of calls of a function."""
        return sum(each.entered for each in self.functions if each.function == function)

    def consume_histogram(self) -> dict[int, int]:
        """Calls that freed completed SKBs, by the number of SKBs."""
        histogram: Counter[int] = Counter(self.consumed_bulks)
        if singles := self.calls(SKB_FREE):
            histogram[1] += singles
        return dict(sorted(histogram.items()))


def plugin_arguments(plugin: Path, out: Path, system_map: Path) -> list[str]:
    """The words for QEMU's command line."""
    table = SymbolTable()
    table.add_kernel(system_map)
    parts = [_escape(plugin), f"out={_escape(out)}"]
    # An unpatched kernel has no bulk free of SKBs.
    if (address := table.address(SKB_BULK_FREE)) is not None:
        parts.append(f"calls={address:x}")
    return ["-plugin", ",".join(parts)]


def _escape(path: Path) -> str:
    """QEMU ends an option at a comma unless it is doubled."""
    return str(path).replace(",", ",,")


def analyse(report: Path, system_map: Path, modules: Mapping[str, Path]) -> list[WindowCount]:
    """Reads a report; modules maps the names of modules to their files."""
    tables: dict[str, SymbolTable] = {}
    counts = []
    for raw in json.loads(report.read_text(encoding="utf-8"))["windows"]:
        text = json.loads(raw["text"])
        loaded = json.dumps(text["modules"], sort_keys=True)
        if loaded not in tables:
            tables[loaded] = _table(system_map, modules, text["modules"])
        counts.append(_count(text["label"], raw, tables[loaded]))
    return counts


def _table(
    system_map: Path, files: Mapping[str, Path], loaded: Mapping[str, Mapping[str, str]]
) -> SymbolTable:
    table = SymbolTable()
    table.add_kernel(system_map)
    for name, sections in loaded.items():
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
    by_module.pop(USER, None)
    return WindowCount(
        label=label,
        complete=bool(raw["complete"]),
        total=raw["instructions"],
        by_module=dict(by_module),
        functions=list(functions.values()),
        consumed_bulks=dict(raw["calls"]),
    )
