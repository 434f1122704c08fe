# SPDX-License-Identifier: GPL-2.0
"""make bench: benchmarks in User-Mode Linux, instruction counts, tables."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

from testbed.bench import forward, in_turn, instructions, record, report, summary, tcp, xdp
from testbed.bench.ablation import measure as ablation
from testbed.bench.guest import run_modules
from testbed.bench.rows import Row, met, parse, target
from testbed.bench.xmit import measure
from testbed.build.kernel import UML
from testbed.catalogue import ALONE, BENCHES, MEMORY
from testbed.env import Env
from testbed.host.ui import clock, say, since_start
from testbed.workshop import Built, built
from txsim import prediction

_ROUNDS = 7
# Counts instructions, in QEMU, where other load on the machine matters little.
_INSN = "insn"
# Rounds of others.
_USUAL = {_INSN: instructions.ROUNDS, ablation.BENCH: ablation.ROUNDS}
# Both drivers in turn, in User-Mode Linux.
_IN_TURN = (forward.FORWARD, tcp.TCP)
# Compares states of one kernel, which has the keys for it.
_MAPLE = "maple"
# Measures senders, and then simulates more of them than there are processors.
_XMIT = measure.BENCH
# Simulates alone, with the recorded figures.
_SIMULATION = "xmit-sim"
# More than this share of other load on the machine disturbs the figures.
_BUSY = 0.10


def _is_quiet() -> bool:
    """Whether the machine is idle for two seconds; prints a note if not."""

    def times() -> list[int]:
        first = Path("/proc/stat").read_text().partition("\n")[0]
        return [int(word) for word in first.split()[1:]]

    before = times()
    time.sleep(2)
    spent = [after - one for one, after in zip(before, times(), strict=True)]
    # Idle, and idle while something waits for a disk.
    busy = 1 - sum(spent[3:5]) / max(sum(spent), 1)
    if busy > _BUSY:
        say(f"    note: {busy:.0%} of this machine is busy with other things; ratios may be off")
    return busy <= _BUSY


def run(ready: Built, names: list[str], rounds: int) -> list[Row]:
    """Boot, run the rounds, return the rows."""
    title = f"benchmarks in User-Mode Linux: {', '.join(names)}, {rounds} rounds"
    return parse(run_modules(ready, "bench", names, rounds, title))


def main(env: Env) -> int:
    """make bench: build, run, print, write out/bench.json."""
    names = env.settings.names("ONLY") or [name for name in BENCHES if name not in ALONE]
    if "list" in names:
        say(*(f"{name:<13} {text}" for name, text in BENCHES.items()))
        return 0
    both_drivers = [one for one in _IN_TURN if one.name in names]
    with_cases = both_drivers + [xdp.COUNTED] * (xdp.BENCH in names)
    if with_cases:
        # An unknown case is refused before anything is built.
        in_turn.check(with_cases, env.settings.text("CASES"))
    rounds = env.settings.number("ROUNDS", _ROUNDS)
    rows, compared = list[Row](), list[in_turn.Measured]()
    quiet, release = True, ""
    timed = [name for name in names if name in MEMORY]
    if timed or both_drivers or _XMIT in names:
        with built(env, UML) as ready:
            release, quiet = ready.kernels[UML].release, _is_quiet()
            if timed:
                rows += run(ready, timed, rounds)
            for one in both_drivers:
                compared.append(in_turn.run(one, ready, rounds))
                rows += compared[-1].rows
            if _XMIT in names:
                rows += measure.run(ready, rounds)
            quiet = _is_quiet() and quiet
    if _INSN in names:
        with built(env, "perf") as ready:
            release = ready.kernels["perf"].release
            rows += instructions.run(ready)
    if xdp.BENCH in names:
        with built(env, UML, "perf") as ready:
            release, quiet = ready.kernels[UML].release, _is_quiet() and quiet
            compared.append(xdp.run(ready, rounds))
            rows += compared[-1].rows
            quiet = _is_quiet() and quiet
    if _MAPLE in names:
        with built(ablation.with_keys(env), UML) as ready:
            release, quiet = ready.kernels[UML].release, _is_quiet() and quiet
            rows += run(ready, [_MAPLE], rounds)
            quiet = _is_quiet() and quiet
    if ablation.BENCH in names:
        with built(ablation.with_keys(env), UML, "perf") as ready:
            release, quiet = ready.kernels[UML].release, _is_quiet() and quiet
            compared.append(ablation.run(ready, env.settings.number("ROUNDS", ablation.ROUNDS)))
            rows += compared[-1].rows
            quiet = _is_quiet() and quiet
    if rows:
        _show(env, rows, quiet)
    if {_XMIT, _SIMULATION} & {*names}:
        say("\nxmit-sim")
        say(*prediction.lines(rows if _XMIT in names else _recorded(env)))
    if env.settings.switch("RECORD"):
        _record(env, names, rows, release, quiet=quiet)
    say(f"all of it took {clock(since_start())}")
    say(*(f"skipped: {text}" for one in compared for text in one.skipped))
    failed = [text for one in compared for text in one.failed]
    say(*(f"failed: {text}" for text in failed))
    return 1 if failed else 0


def _show(env: Env, rows: list[Row], quiet: bool) -> None:
    """Print the rows, and write out/bench.json."""
    say("", *summary.lines(rows, lambda _: True))
    path = env.out / "bench.json"
    records = [{**row.record(), "quiet": quiet} for row in rows]
    path.write_text(json.dumps(records, indent=1) + "\n")
    with_target = [row for row in rows if target(row.bench, row.case) is not None]
    say(f"\n{sum(map(met, with_target))} of {len(with_target)} targets met; written: {path}")


def _recorded(env: Env) -> list[Row]:
    """The recorded figures of senders."""
    rows = record.load(env.clone).get(_XMIT, {}).get("rows", ())
    return [Row.from_record(one) for one in rows]


def _record(env: Env, names: Sequence[str], rows: list[Row], release: str, *, quiet: bool) -> None:
    """Record the parts that were measured completely, and render RESULTS.md."""
    for part, why in record.refusals(names, env.settings.text("CASES"), quiet).items():
        if why:
            say(f"RESULTS.md keeps its figures of {part}: {why}")
            continue
        rounds = env.settings.number("ROUNDS", _USUAL.get(part, _ROUNDS))
        content = {"rows": record.rows_of(part, rows)}
        record.keep(env, part, content, release, rounds)
    if {_XMIT, _SIMULATION} & {*names}:
        record.keep(env, _SIMULATION, {"lines": prediction.lines(_recorded(env))})
    report.renew(env.clone)
