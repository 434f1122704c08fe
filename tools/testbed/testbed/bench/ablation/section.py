# SPDX-License-Identifier: GPL-2.0
"""The section of RESULTS.md: a row for each mechanism, which ends with a sentence."""

from collections.abc import Iterable, Mapping, Sequence

from testbed.bench.ablation.figures import ADDED, BENCH, CASES, COUNTS, EVENTS, INTERRUPT, TCP
from testbed.bench.ablation.settings import BASE, MECHANISMS, OTHERS, PLAINEST, cells
from testbed.bench.rows import Row

_LOADS = tuple(cell["case"] for cell in cells())
_HEADS = {"TCP 1 flow": "TCP", "TCP window 16 KiB": "16 KiB", "TCP 1 flow TSO off": "no TSO"}
_STEP = "window 256"
_WIDTH = max(map(len, (*MECHANISMS, *OTHERS, PLAINEST))) + 1
# Fewer instructions are none, nor are fewer than two counts of the driver as it is differ by.
_LEAST = 1.0
# If the interrupts that one side has more take this share of the time that is left, the
# estimate of an interrupt decides the figure.
_FEW = 0.25
# Such a figure.
_INTERRUPTS = "irqs"

Found = Mapping[tuple[str, str], Row]


def lines(rows: Iterable[Row]) -> list[str]:
    """The table. A figure that was not measured is a dash."""
    found = {(row.bench, row.case): row for row in rows}
    loads = [_HEADS.get(one, one.removeprefix("window ")) for one in _LOADS]
    head = f"{'saved by':<{_WIDTH}}{'driver':>8}{'memory':>8}{'all':>8}"
    head += "".join(f"{one:>7}" for one in loads)
    head += f" |{'added: all':>11}{'256':>6} |"
    return [head, *(_line(found, name) for name in (BASE, *MECHANISMS, *OTHERS, PLAINEST))]


def _line(found: Found, name: str) -> str:
    counts = [found.get((COUNTS, f"{name}, {part}")) for part in CASES]
    times = [_time(found, name, load) for load in _LOADS]
    noise = [_time(found, BASE, load) for load in _LOADS]
    text = f"{name:<{_WIDTH}}{''.join(f'{_saved(one):>8}' for one in counts)}"
    shares = [_INTERRUPTS if _more_interrupts(found, name, load) else _share(one)
              for load, one in zip(_LOADS, times, strict=True)]  # fmt: skip
    text += "".join(f"{one:>7}" for one in shares)
    step = f"{ADDED}{name}"
    text += f" |{_saved(found.get((COUNTS, f'{step}, all'))):>11}"
    text += f"{_share(_time(found, step, _STEP)):>6} | "
    if name == BASE:
        return text + _noise(noise)
    times = [None if share == _INTERRUPTS else one
             for share, one in zip(shares, times, strict=True)]  # fmt: skip
    return text + sentence(counts[-1], found.get((COUNTS, f"{BASE}, all")), times, noise)


def _time(found: Found, name: str, load: str) -> Row | None:
    return found.get((TCP if load.startswith("TCP") else BENCH, f"{load}, {name}"))


def _more_interrupts(found: Found, name: str, load: str) -> bool:
    """Whether one side has so many more interrupts than the other that the rest tells nothing."""
    time, each = _time(found, name, load), found.get((EVENTS, INTERRUPT))
    events = found.get((EVENTS, f"{load}, {name}"))
    if not (time and each and events) or None in (time.ours, time.reference, events.reference):
        return False
    # Times are per packet or per KiB, events per 1000 packets or per MiB.
    per = 1024 if load.startswith("TCP") else 1000
    differ = abs((events.ours or 0) - (events.reference or 0)) * (each.ours or 0) / per
    return differ > _FEW * min(time.ours or 0, time.reference or 0)


def _instructions(row: Row | None) -> float | None:
    if row is None or row.ours is None or row.reference is None:
        return None
    return row.reference - row.ours


def _saved(row: Row | None) -> str:
    value = _instructions(row)
    return "-" if value is None else f"{value:+.1f}"


def _share(row: Row | None) -> str:
    ratio = row.ratio if row else None
    return "-" if ratio is None else f"{100 * (ratio - 1):+.0f}%"


def _noise(noise: Sequence[Row | None]) -> str:
    known = [abs(ratio - 1) for row in noise if row for ratio in row.ratios]
    return f"Noise, up to {100 * max(known):.0f}% in a pair." if known else "Not measured."


def _is_clear(row: Row | None, noise: Row | None) -> int:
    """1 if the mechanism saves time in each pair, and more than the noise; -1 if it costs time."""
    if row is None or not row.ratios or row.ratio is None:
        return 0
    least = abs(noise.ratio - 1) if noise and noise.ratio else 0.0
    if min(row.ratios) > 1 and row.ratio - 1 > least:
        return 1
    return -1 if max(row.ratios) < 1 and 1 - row.ratio > least else 0


def sentence(
    count: Row | None, apart: Row | None, times: Sequence[Row | None], noise: Sequence[Row | None]
) -> str:
    """The worth of a mechanism, from its figures and those of the driver as it is alone."""
    saved = _instructions(count)
    if saved is None:
        work = "Instructions not measured"
    elif abs(saved) <= max(_LEAST, abs(_instructions(apart) or 0)):
        work = "Instructions within the noise"
    else:
        work = f"{'Saves' if saved > 0 else 'Costs'} {abs(saved):.0f} instructions"
    verdicts = [_is_clear(*both) for both in zip(times, noise, strict=True)]
    measured = sum(1 for row in times if row and row.ratios)
    if not measured:
        return f"{work}; time not measured."
    parts = [f"{word} time in {verdicts.count(sign)} of {measured} loads"
             for word, sign in (("saves", 1), ("costs", -1)) if sign in verdicts]  # fmt: skip
    return f"{work}; {', '.join(parts) or 'no clear time'}."
