# SPDX-License-Identifier: GPL-2.0
"""Tables of make bench and of RESULTS.md, processor time beside time.

The records have all rows. Events, and the cases that about.toml leaves out, have no line in
RESULTS.md, unless a row misses its target, or is slower in each of its rounds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from testbed.bench.about import LEFT_OUT, REFERENCES
from testbed.bench.rows import RATES, Row, figure, met, target

_COST, _EVENTS = "-cost", "-events"
# A case with its time, and with its processor time.
Cells = tuple[Row | None, Row | None]


def is_shown(row: Row) -> bool:
    """Whether a row is worth a line."""
    if not met(row) or max(row.ratios, default=1) < 1:
        return True
    pattern = LEFT_OUT.get(row.bench)
    return not row.bench.endswith(_EVENTS) and not (pattern and re.search(pattern, row.case))


def table_of(bench: str) -> str:
    """The table that has the rows of a benchmark."""
    return bench.removesuffix(_COST)


def shown(
    rows: Iterable[Row], is_wanted: Callable[[Row], bool] = is_shown
) -> dict[str, dict[str, Cells]]:
    """Cases with a line, by table."""
    every: dict[str, dict[str, Cells]] = {}
    for row in rows:
        table = every.setdefault(table_of(row.bench), {})
        time, cost = table.get(row.case, (None, None))
        table[row.case] = (time, row) if row.bench.endswith(_COST) else (row, cost)
    found = {
        bench: {case: cells for case, cells in table.items()
                if any(row and is_wanted(row) for row in cells)}
        for bench, table in every.items()
    }  # fmt: skip
    return {bench: table for bench, table in found.items() if table}


def lines(rows: Iterable[Row], is_wanted: Callable[[Row], bool] = is_shown) -> list[str]:
    """The tables as text, one below the other."""
    found: list[str] = []
    for bench, table in shown(rows, is_wanted).items():
        costs = any(cost for _, cost in table.values())
        unit = next((row.unit for cells in table.values() for row in cells
                     if row and row.unit in RATES), "")  # fmt: skip
        title = f"{bench}: ours against {REFERENCES.get(bench, 'the reference')}"
        title += f", {unit}" if unit else ""
        width = max(len(title), *(len(case) for case in table)) + 1
        head = f"{title:<{width}}{'ours':>9}{'reference':>10}{'ratio':>7}{'(min - max)':>16}"
        head += f"{'processor time':>19}{'ratio':>7}{'(min - max)':>16}" if costs else ""
        found.append(head)
        found += [_line(case, cells, width, costs) for case, cells in table.items()]
    return found


def _line(case: str, cells: Cells, width: int, costs: bool) -> str:
    text = f"{case:<{width}}{_side(cells[0])}"
    text += _side(cells[1]) if costs else ""
    wanted = [target(row.bench, row.case) for row in cells
              if row and row.ratios and not met(row)]  # fmt: skip
    return text.rstrip() + "".join(f"  below {one:.3g}" for one in wanted)


def _side(row: Row | None) -> str:
    if row is None:
        return f"{'':42}"
    text = f"{figure(row.ours, row.unit):>9}{figure(row.reference, row.unit):>10}"
    if row.ratio is None:
        unit = row.unit if row.unit not in ("ns", "times", *RATES) else ""
        return f"{text}  {unit:<21}"
    spread = f"({min(row.ratios):.2f} - {max(row.ratios):.2f})"
    return f"{text}{row.ratio:>7.2f}{spread:>16}"
