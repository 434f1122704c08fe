# SPDX-License-Identifier: GPL-2.0
"""Finds every kernel complaint in a console log."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Kernel messages about defects, by a fixed part, with a name for reports. The first
# match counts, so the general ones are at the end.
_COMPLAINTS: tuple[tuple[str, str], ...] = (
    ("panic", r"Kernel panic - not syncing"),
    ("oops", r"Oops\b|general protection fault|unable to handle (kernel|page)|double fault:"),
    ("kcsan", r"BUG: KCSAN:"),
    ("kasan", r"BUG: KASAN:|KASAN: (null-ptr|maybe wild)"),
    ("rust panic", r"rust_kernel: panicked at|panicked at "),
    ("ubsan", r"UBSAN: "),
    ("lockdep", r"possible (recursive|circular|irq) lock|INFO: possible |inconsistent lock state"
                r"|suspicious RCU usage|bad unlock balance|held lock freed"
                r"|lock held when returning|INFO: trying to register non-static key"
                r"|unsafe lock (order|detected)|lock(ing)? order detected"
                r"|\*\*\* DEADLOCK \*\*\*|turning off the locking correctness validator"),
    ("sleep in atomic", r"sleeping function called from invalid context|scheduling while atomic"),
    ("rcu stall", r"rcu:? .*(detected stalls?|self-detected stall|kthread starved)|rcu_\w+ stall"),
    ("hang", r"INFO: task .* blocked for more than|soft lockup|hard LOCKUP|workqueue lockup"
             r"|nobody cared"),
    # A checker that cannot get memory itself reports it once: where a test makes
    # allocations fail, that is no defect. Findings of a checker are another kind.
    ("checker out of memory", r"DMA-API: cacheline tracking ENOMEM|ODEBUG: Out of memory"
                              r"|ref_tracker: memory allocation failure"),
    ("dma", r"DMA-API: (?!preallocated|debugging)"),
    ("leak", r"kmemleak: \d+ new suspected|unreferenced object|page_pool_release_retry\(\) stalled"
             r"|leaked reference|Objects remaining|Slab cache still has objects"),
    ("memory", r"refcount_t: |list_(add|del) corruption|Bad page state|BUG: Bad (page|rss)"
               r"|ODEBUG: |slab-\w+: .*corrupt|Freelist corrupt|cache_from_obj: "),
    ("skb", r"skb_over_panic|skb_under_panic|skbuff: skb_"),
    ("netdev", r"NETDEV WATCHDOG|netdevice: waiting for .* to become free"
               r"|unregister_netdevice: waiting|napi .* (exceeds|weight)"
               r"|NAPI poll function .* returned"),
    ("ref tracker", r"ref_tracker: "),
    ("out of memory", r"Out of memory: |page allocation failure|oom-kill:"),
    ("bug", r"\bBUG: |kernel BUG at|Internal error:|BUG \S+ \([^)]*\): "),
    ("warning", r"WARNING: "),
    ("call trace", r"Call Trace:"),
    ("segfault", r"\bsegfault at\b|traps: "),
)  # fmt: skip

_PATTERNS = tuple((kind, re.compile(text)) for kind, text in _COMPLAINTS)
_STAMP = re.compile(r"^\[ *\d+\.\d+\](\[ *[CT]\d+\])? ?")
# Output of fault injection that a test asked for, with a trace.
_INJECTED = re.compile(r"FAULT_INJECTION: forcing a failure")
# The guest's init puts these around warnings that it provokes before any test.
_PAUSE = "skbulk: complaints do not count"
_RESUME = "skbulk: complaints count again"
# A call trace belongs to the complaint above it: not a second one.
_TRACE_REACH = 120


@dataclass(frozen=True)
class Complaint:
    """One complaint: its kind, and the line."""

    kind: str
    line: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.line}"


def complaints(text: str, ignore: tuple[str, ...] = ()) -> list[Complaint]:
    """Every complaint in the text of a console, in order.

    `ignore` holds kinds that a test provokes on purpose, for example "out of
    memory" under fault injection. Any other complaint still counts.
    """
    lines = [_STAMP.sub("", line.rstrip("\r")) for line in text.split("\n")]
    found: list[Complaint] = []
    last = -_TRACE_REACH
    skipped = -_TRACE_REACH
    counting = True
    for number, line in enumerate(lines):
        if _PAUSE in line or _RESUME in line:
            counting = _RESUME in line
        if not counting:
            continue
        if _INJECTED.search(line):
            skipped = number
            continue
        kind = _kind(line)
        if kind is None:
            continue
        if kind == "call trace" and number - max(last, skipped) < _TRACE_REACH:
            continue
        if kind in ignore:
            skipped = number
            continue
        last = number
        found.append(Complaint(kind, line.strip()))
    return found


def _kind(line: str) -> str | None:
    """The first kind, in the table's order, that a line matches."""
    return next((kind for kind, pattern in _PATTERNS if pattern.search(line)), None)
