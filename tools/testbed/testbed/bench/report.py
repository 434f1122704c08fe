# SPDX-License-Identifier: GPL-2.0
"""RESULTS.md and the generated parts of README.md, from the recorded results.

make results renders both; make bench and make demo do so with RECORD=1.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from testbed.bench import forward, results
from testbed.bench.about import ABOUT, HEAD, TITLES
from testbed.bench.record import PARTS, Circumstances, Content, load
from testbed.bench.rows import Row, table
from testbed.coverage import summary as coverage
from testbed.host.ui import Failure, clock, say
from testbed.selftests import reasons
from testbed.selftests import record as selftests

RESULTS, README = "RESULTS.md", "README.md"


def _fenced(lines: list[str]) -> str:
    text = "\n".join(line.rstrip() for line in lines).strip("\n")
    return f"```\n{text}\n```\n"


def about(name: str) -> str:
    """The comparison that a table makes, as a paragraph."""
    return textwrap.fill(ABOUT[name], 100) + "\n\n"


def _benchmarks(content: Content) -> str:
    """A table for each benchmark, with its paragraph."""
    parts = []
    rows = [Row.from_record(one) for one in content["rows"]]
    for bench, group in groupby(rows, key=lambda row: row.bench):
        parts.append(f"### {bench}\n\n{about(bench)}{_fenced(table(list(group)))}")
    return "\n".join(parts)


def demo(content: Content) -> str:
    """The table that make demo has printed."""
    return _fenced(results.table(content["drivers"], content["ratio"]))


def _simulation(content: Content) -> str:
    return _fenced(content["lines"])


def _notes(content: Content) -> str:
    items = [f"- {one['title']} ({one['date']}, commit {one['commit']}): {one['text']}"
             for one in content["notes"]]  # fmt: skip
    return "\n".join(textwrap.fill(one, 100, subsequent_indent="  ") for one in items) + "\n"


def _selftests(content: Content) -> str:
    """Programs of the kernel's selftests with each driver, C beside Rust; causes, of the latter."""
    causes = "Cases that fail or are skipped with the Rust driver, by their cause:"
    lines = [
        *selftests.table(content), "", textwrap.fill(selftests.share(content), 100),
        "", causes, "", *reasons.table(content),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _checks(content: Content) -> str:
    lines = ["| suite | checks |", "| --- | --- |"]
    lines += [f"| {name} | {count:,} |" for name, count in sorted(content["suites"].items())]
    lines.append(f"| all | {sum(content['suites'].values()):,} |")
    return "\n".join(lines) + "\n"


def durations(content: Content) -> str:
    """Commands, and their durations with an empty and with a filled cache."""
    lines = ["| command | cold cache | warm cache |", "| --- | --- | --- |"]
    for command, one in content["commands"].items():
        cells = [clock(one[kind]) if one.get(kind) else "not measured"
                 for kind in ("cold", "warm")]  # fmt: skip
        lines.append(f"| `{command}` | {cells[0]} | {cells[1]} |")
    return "\n".join(lines) + "\n"


def _windows(content: Content) -> str:
    """The tables, behind the curve of the rates."""
    rows = [Row.from_record(one) for one in content["rows"]]
    return f"{_fenced(forward.curve(rows))}\n{_benchmarks(content)}"


_RENDER = {
    "demo": demo,
    "window": _windows,
    "xmit-sim": _simulation,
    "selftests": _selftests,
    "checks": _checks,
    "coverage": coverage.render,
    "durations": durations,
    "notes": _notes,
}
# The records that README.md shows.
_IN_README = {"demo": demo, "durations": durations}


def render(records: Mapping[str, Content]) -> str:
    """RESULTS.md."""
    parts = [HEAD]
    for name, title in TITLES.items():
        if name not in records:
            continue
        content = records[name]
        body = _RENDER.get(name, _benchmarks)(content)
        # A part of make bench has a sentence for each of its tables.
        first = about(name) if name in ABOUT and name not in PARTS else ""
        parts.append(f"## {title}\n\n{Circumstances.of(content).sentence()}\n\n{first}{body}")
    return "\n".join(parts)


def readme(text: str, records: Mapping[str, Content]) -> str:
    """README.md with its generated parts renewed."""
    for name, render_part in _IN_README.items():
        first, last = f"<!-- recorded: {name} -->\n", "<!-- end of recorded -->\n"
        place = re.compile(f"^{first}.*?^{last}", re.M | re.S)
        if (count := len(place.findall(text))) != 1:
            raise Failure(
                f"{README} has {count} places for the {name} record",
                f"one is needed: {first.strip()}, and {last.strip()} behind it, each on a line of "
                "its own",
            )
        if name in records:
            sentence = Circumstances.of(records[name]).sentence()
            head, _, rest = text.partition(first)
            part = f"{first}{sentence}\n\n{render_part(records[name])}{last}"
            text = f"{head}{part}{rest.partition(last)[2]}"
    return text


def rendered(clone: Path) -> dict[Path, str]:
    """The files generated from the records, and their contents."""
    records = load(clone)
    text = readme((clone / README).read_text(), records)
    return {clone / RESULTS: render(records), clone / README: text}


def renew(clone: Path) -> list[Path]:
    """Write the files that changed; returns them."""
    written = []
    for path, text in rendered(clone).items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            written.append(path)
            say(f"written: {path}")
    return written
