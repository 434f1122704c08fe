# SPDX-License-Identifier: GPL-2.0
"""make bench: benchmarks in User-Mode Linux, instruction counts, tables, plots."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from testbed import forward_bench, forward_plot, insn_bench, plots, readme
from testbed.bench_rows import BITS, Row, met, parse, table, target
from testbed.boot import Job
from testbed.env import Env
from testbed.kernel import UML
from testbed.machine import describe_machine
from testbed.running import run_bench
from testbed.session import Built, built, choice
from testbed.ui import Failure, clock, say, since_start
from testbed.xmit import measure, simulation

_ROUNDS = 7
# Counts instructions, in QEMU, where it matters little what else the machine does.
_INSN = "insn"
# Forwards packets in User-Mode Linux.
_FORWARD = forward_bench.BENCH
# Lets senders race, and then simulates more of them than there are processors.
_XMIT = measure.BENCH
# Simulates alone, with what was measured last.
_SIMULATION = "xmit-sim"
# More than this share of the machine in other hands disturbs the figures.
_BUSY = 0.10


def _selected() -> list[str]:
    wanted = [name.strip() for name in os.environ.get("ONLY", "").split(",") if name.strip()]
    known = [*BITS, _FORWARD, _XMIT, _INSN, _SIMULATION]
    for name in wanted:
        if name not in known:
            raise Failure(
                f"ONLY={name}: there is no such benchmark", f"there are {', '.join(known)}"
            )
    return wanted or known


def _rounds() -> int:
    text = os.environ.get("ROUNDS") or str(_ROUNDS)
    if not text.isdigit() or not 1 <= int(text) <= 1000:
        raise Failure(f"ROUNDS={text}: make bench runs 1 to 1000 rounds")
    return int(text)


def _cpu_times() -> tuple[int, int]:
    words = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    numbers = [int(word) for word in words]
    return sum(numbers), numbers[3] + numbers[4]


def busy_share(seconds: float = 2.0) -> float:
    """The share of the processors that was not idle during some seconds."""
    total, idle = _cpu_times()
    time.sleep(seconds)
    total_after, idle_after = _cpu_times()
    return 1.0 - (idle_after - idle) / max(total_after - total, 1)


def _is_quiet() -> bool:
    """Whether nobody else uses the machine much; says so if somebody does."""
    busy = busy_share()
    if busy > _BUSY:
        say(f"    note: {busy:.0%} of this machine is busy with other things; ratios may be off")
    return busy <= _BUSY


def run(ready: Built, names: list[str], rounds: int) -> list[Row]:
    """Boot, run the rounds, return what came of them."""
    variables = {"ROUNDS": str(rounds), "BENCHES": str(sum(BITS[name] for name in names))}
    script = ready.env.clone / "tools/testbed/guest/bench"
    machine = ready.uml("bench")
    job = Job(script, "none", timeout=1800, cpus=2, ports=0, variables=variables)
    title = f"benchmarks in User-Mode Linux: {', '.join(names)}, {rounds} rounds"
    outcome = run_bench(machine, job, title, "bench: ")
    return parse(outcome.results.get("bench.log", "").splitlines())


def _renew_readme(
    path: Path, names: Sequence[str], rows: list[Row], release: str, *, quiet: bool
) -> None:
    """Put the tables into the README, those parts that were measured as a whole."""
    machine = describe_machine("native")
    parts: dict[str, str] = {}
    for name, why in readme.refusals(names, os.environ.get("CASES", ""), quiet).items():
        if why:
            say(f"README.md keeps its figures of {name}: {why}")
            continue
        own = [row for row in rows if row.bench.split("-")[0] in readme.PARTS[name]]
        circumstances = readme.Circumstances(
            datetime.now(UTC).date(),
            str(machine["cpu"] or platform.machine()),
            int(machine["cores"] or 1),
            release,
            insn_bench.rounds() if name == _INSN else _rounds(),
        )
        parts[name] = readme.part([*table(own), *forward_bench.sentences(own)], circumstances)
    if parts:
        readme.renew(path, parts)
        say(f"written: {path}, the figures of {', '.join(parts)}")


def bench(env: Env) -> int:
    """make bench: build, run, print, write out/bench.json and the plots."""
    names = _selected()
    timed = [name for name in names if name in BITS]
    rows: list[Row] = []
    raced: measure.Measured | None = None
    quiet, release = True, ""
    renew = choice("RECORD", ("0", "1"), "0") == "1"
    if timed or _FORWARD in names or _XMIT in names:
        rounds = _rounds()
        with built(env, UML) as ready:
            release = ready.kernels[UML].release
            quiet = _is_quiet()
            if timed:
                rows += run(ready, timed, rounds)
            if _FORWARD in names:
                rows += forward_bench.run(ready, rounds)
            if _XMIT in names:
                raced = measure.run(ready, rounds)
                rows += raced.rows()
            quiet = _is_quiet() and quiet
    if _INSN in names:
        with built(env, "perf") as ready:
            release = ready.kernels["perf"].release
            rows += insn_bench.run(ready)
    drawn = _rows_written(env, rows, quiet) if rows else []
    if raced is not None:
        drawn += _raced_written(env, raced, quiet)
    if _XMIT in names or _SIMULATION in names:
        drawn += simulation.run(env.out)
    say("\nwritten: " + ", ".join(os.path.relpath(path, env.clone) for path in drawn))
    if renew:
        _renew_readme(env.clone / "README.md", names, rows, release, quiet=quiet)
    say(f"all of it took {clock(since_start())}")
    return 0


def _raced_written(env: Env, raced: measure.Measured, quiet: bool) -> list[Path]:
    """Print what the senders came to, write out/xmit.json, from which the simulation starts."""
    for line in raced.sentences():
        say(line)
    path = env.out / simulation.FIGURES
    path.write_text(json.dumps({"quiet": quiet, **raced.record()}, indent=1) + "\n")
    return [path, *raced.draw(env.out)]


def _rows_written(env: Env, rows: list[Row], quiet: bool) -> list[Path]:
    """Print the rows, write out/bench.json and the plots; returns the files."""
    for line in [*table(rows), *forward_bench.sentences(rows)]:
        say(line)
    path = env.out / "bench.json"
    records = [{**row.record(), "quiet": quiet} for row in rows]
    path.write_text(json.dumps(records, indent=1) + "\n")
    with_target = [row for row in rows if target(row.bench, row.case) is not None]
    reached = sum(met(row) for row in with_target)
    say(f"\n{reached} of {len(with_target)} targets met")
    return [path, *plots.draw(rows, env.out), *forward_plot.draw(rows, env.out)]
