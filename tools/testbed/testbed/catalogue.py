# SPDX-License-Identifier: GPL-2.0
"""The names that ONLY= takes, and their descriptions."""

from __future__ import annotations

from pathlib import Path

from testbed.host.tables import rows

_ROWS = rows(Path(__file__).with_name("suites.txt"), 4)
# The suites of make test, in their order; those that it runs by itself; those that need ONLY=.
SUITES = {name: text for name, _, _, text in _ROWS}
TIER = frozenset(name for name, when, _, _ in _ROWS if when == "tier")
ON_REQUEST = frozenset(name for name, when, _, _ in _ROWS if when == "request")
# Suites that go together.
GROUPS = {name: group for name, _, group, _ in _ROWS if group != "-"}
# The parts of the suite lint.
LINTERS = ("rustfmt", "clippy", "mypy", "ruff check", "ruff format", "shellcheck")
_BENCH_ROWS = rows(Path(__file__).with_name("benches.txt"), 3)
# The benchmarks of make bench; those of bulk memory.
BENCHES = {name: text for name, _, text in _BENCH_ROWS}
# Those that need ONLY=, as they have kernels of their own.
ALONE = frozenset(name for name, kind, _ in _BENCH_ROWS if kind == "alone")
MEMORY = [name for name, kind, _ in _BENCH_ROWS if kind == "memory"]
