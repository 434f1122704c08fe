# SPDX-License-Identifier: GPL-2.0
"""Suites that boot the kernel: KUnit, the end-to-end tests, the comparison."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from insn import cost as insn_cost
from testbed.bench import instructions
from testbed.bench import rows as bench_rows
from testbed.bench.about import MEMORY, REFERENCES
from testbed.bench.results import problems
from testbed.bench.xmit import nic, qdisc
from testbed.bench.xmit.rounds import SHORT
from testbed.boot import dmesg
from testbed.boot.job import Job, Outcome
from testbed.build.kernel import UML, Kernel
from testbed.host import proc
from testbed.host.ui import Failure, Step, say
from testbed.selftests import boots
from testbed.suites import tap
from testbed.suites.report import Report
from testbed.verbs import bench, demo
from testbed.workshop import Built

KUNIT_TOTAL = re.compile(
    r"Ran (\d+) tests?: (?:passed: (\d+))?(?:, )?(?:failed: (\d+))?(?:, )?"
    r"(?:crashed: (\d+))?(?:, )?(?:skipped: (\d+))?(?:, )?(?:errors: (\d+))?"
)
_COLOUR = re.compile(r"\033\[[0-9;]*m")
_KUNIT_BAD = re.compile(r"\[(?:FAILED|CRASHED|ERROR)\] (\S.*)$", re.M)
_SCRIPT_TIME = 3000.0
# How often instructions are counted once more before a driver counts as slower.
_RECOUNTS = 2
# From this number on, tests are for the Rust driver alone.
_ONLY_RUST = "70"
_SEGMENT = re.compile(r"skbulk: begin (\S+)$")


KUNIT_WORDS = ("kunit.enable=1", "kunit.autorun=1")


def kunit(ready: Built) -> Report:
    """KUnit and the doc examples in the debug kernel, judged by kunit.py."""
    machine = ready.vm("debug", "kunit")
    # The kernel's own examples of Rust timers lie on the stack, which the checker of
    # timers wants to be told of, and they do not.
    job = Job(nothing(ready), "none", timeout=900, ports=0, accel=ready.accel("debug"),
              kernel_words=(*KUNIT_WORDS, "no_debug_objects"))  # fmt: skip
    with Step("KUnit and doc examples in the debug kernel"):
        outcome = machine.run(job)
    return judge_kunit(ready, "kunit", ready.kernels["debug"], outcome)


def kunit_uml(ready: Built) -> Report:
    """The same natively, where two processors run at the same time at full speed."""
    machine = ready.uml("kunit-uml")
    job = Job(nothing(ready), "none", timeout=300, ports=0, cpus=2, kernel_words=KUNIT_WORDS)
    with Step("KUnit and doc examples in User-Mode Linux, 2 CPUs"):
        outcome = machine.run(job)
    return judge_kunit(ready, "kunit-uml", ready.kernels[UML], outcome)


def nothing(ready: Built) -> Path:
    """A script that does nothing: KUnit has run before it."""
    script = ready.env.logs / "kunit.sh"
    script.write_text("#!/bin/sh\ntrue\n")
    return script


def judge_kunit(
    ready: Built, name: str, kernel: Kernel, outcome: Outcome, but: tuple[str, ...] = ()
) -> Report:
    """What kunit.py makes of a console; complaints of the kinds in `but` are for others."""
    report = Report(name)
    env = ready.env
    plain = env.logs / f"{name}.log"
    plain.write_text(outcome.console.replace("\r", ""))
    tool = kernel.tree.work / "tools/testing/kunit/kunit.py"
    log = env.logs / f"test-{name}.log"
    log.unlink(missing_ok=True)
    proc.run(["python3", tool, "parse", plain], log, what="kunit.py parse", check=False)
    text = _COLOUR.sub("", log.read_text(errors="replace"))
    total = KUNIT_TOTAL.search(text)
    if not total:
        report.add("kunit.py parse", f"it found no result (log: {log})")
        return report
    say(f"    {total[0]}")
    numbers = [int(number or 0) for number in total.groups()]
    report.passed = numbers[1]
    bad = numbers[2] + numbers[3] + numbers[5]
    names = list(dict.fromkeys(_KUNIT_BAD.findall(text)))[:bad]
    report.failures = names + [f"test {n + 1}, see {log}" for n in range(bad - len(names))]
    for one in re.findall(r"\[SKIPPED\] (\S.*)$", text, re.M)[: numbers[4]]:
        report.skip(one, "skipped by KUnit")
    bad_lines = [str(one) for one in outcome.complaints if one.kind not in but]
    report.add("the kernel does not complain during KUnit", "; ".join(bad_lines[:3]) or None)
    return report


def segments(console: str) -> dict[str, str]:
    """The console cut at the marks that guest/run-tests leaves in it."""
    parts: dict[str, list[str]] = {"": []}
    name = ""
    for line in console.splitlines():
        if begin := _SEGMENT.search(line.rstrip("\r")):
            name = begin[1]
            parts[name] = []
        parts[name].append(line)
    return {key: "\n".join(lines) for key, lines in parts.items()}


def _judge_console(console: str, scripts: list[tap.Script], report: Report) -> None:
    """Every complaint counts, except those that a test says it provokes."""
    parts = segments(console)
    for name in ["", *[script.name for script in scripts]]:
        text = parts.get(name, "")
        expected = tuple(re.findall(r"skbulk: provokes (.+?)\r?$", text, re.M))
        found = dmesg.complaints(text, expected)
        report.add(
            f"no kernel complaint in {name or 'boot and probe'}",
            "; ".join(str(one) for one in found[:3]) or None,
        )


def e2e(ready: Built, driver: str, config: str = "debug") -> Report:
    """The end-to-end tests with one driver, in one of the kernels."""
    report = Report(f"e2e-{UML if config == UML else driver}")
    env = ready.env
    folder = env.clone / "tools/testbed/guest/tests"
    # Test scripts have a number that orders them; the others are their helpers.
    names = sorted(path.stem for path in folder.glob("[0-9]*.sh"))
    if driver == "c":
        # The C driver judges the model. It is not under test itself: faults and
        # a card that lies are for the driver that has to withstand them.
        names = [name for name in names if name < _ONLY_RUST]
    if not names:
        report.add("e2e", f"there is no test in {folder}")
        return report
    remaining = names
    boot = 0
    while remaining:
        boot += 1
        machine = ready.machine(config, f"{report.name}-{boot}")
        say(f"    end-to-end tests: {' '.join(remaining)}")
        with Step(f"end to end, {driver} driver, {config} kernel") as step:
            output: list[str] = []

            def follow(line: str, step: Step = step, output: list[str] = output) -> None:
                output.append(line)
                if line.startswith("# begin "):
                    step.detail = line.removeprefix("# begin ")
                elif line.startswith(("ok ", "not ok ")):
                    say(f"      {line}")

            job = Job(
                env.clone / "tools/testbed/guest/run-tests",
                driver,
                timeout=_SCRIPT_TIME,
                accel=ready.accel(config),
                kernel_words=["kunit.enable=0"],
                variables={"TESTS_TO_RUN": " ".join(remaining)},
            )
            why = "it did not end"
            try:
                console = machine.run(job, follow).console
            except Failure as error:
                why = f"{error} {' '.join(error.hints)}"
                say(f"    {why}")
                console = machine.log.read_text(errors="replace") if machine.log.exists() else ""
        scripts = tap.parse("\n".join(output))
        for script in scripts:
            tap.judge(script, report, why)
        _judge_console(console, scripts, report)
        if not scripts:
            report.add("end-to-end tests", why)
            break
        # After a crash the tests that did not get their turn run in a new VM.
        remaining = remaining[len(scripts) :]
    return report


def selftests(ready: Built) -> Report:
    """The kernel's own tests of drivers: that none does harm. What passes is a record."""
    report = Report("selftests")
    for driver, programs in boots.both(ready).items():
        for program in programs:
            problem = "; ".join(program.troubles[:3]) or None
            report.add(f"{driver}: {program.name} does no harm", problem)
    return report


def compare(ready: Built) -> Report:
    """The demo in small: everything forwarded, and no more costly than C allows."""
    report = Report("compare")
    frames = 100_000
    record, complaints = demo.measure(ready, frames, repeats=1)
    for name in record["drivers"]:
        wrong = problems(name, record["drivers"][name], frames)
        report.add(f"{name}: {frames:,} frames forwarded intact", "; ".join(wrong) or None)
    report.add("no kernel complaint", "; ".join(str(one) for one in complaints[:3]) or None)
    ratio = record["ratio"]["instructions_per_packet"]
    name = "instructions per packet, Rust/C, at most 1.1"
    if ratio is None:
        report.add(name, "they could not be counted")
    else:
        say(f"    instructions per packet, Rust/C: {ratio:.3f}")
        report.add(name, None if ratio <= 1.1 else f"{ratio:.3f}")
    _judge_cost(ready, record, report)
    out = Path(ready.env.out / "compare.json")
    out.write_text(json.dumps(record, indent=2) + "\n")
    return report


def _judge_cost(ready: Built, record: dict[str, Any], report: Report) -> None:
    """The Rust driver takes no more instructions than the committed record says."""
    names = {case: f"instructions per packet, {case}, against the record"
             for case in ("driver", "all")}  # fmt: skip
    try:
        known = insn_cost.load(ready.env.clone / insn_cost.RECORD)
    except Failure as error:
        for name in names.values():
            report.add(name, " | ".join([str(error), *error.hints]))
        return
    release = record["kernel"]["release"]
    if known.get("kernel") != release:
        for name in names.values():
            report.skip(name, f"the record is of {known.get('kernel')}, this is {release}")
        return
    costs = {
        name: insn_cost.Cost({case: cost[case] for case in insn_cost.CASES}, cost["functions"])
        for name, cost in record["cost"].items()
    }
    verdicts = _verdicts(known, costs)
    # What disturbs a count adds to it, and seldom twice: only what is too much
    # in each of several boots has grown.
    for again in range(_RECOUNTS):
        if not any(verdicts.values()):
            break
        costs = instructions.count(ready, f"count-{again + 2}").costs
        verdicts = {
            case: wrong and verdicts[case] for case, wrong in _verdicts(known, costs).items()
        }
    for case, wrong in verdicts.items():
        report.add(names[case], wrong)


def _verdicts(
    known: Mapping[str, Any], costs: Mapping[str, insn_cost.Cost]
) -> dict[str, str | None]:
    found = costs["rust"]
    for case in ("driver", "all"):
        say(f"    instructions per packet, {case}: {found.cases[case]:,.1f}, "
            f"record {known['drivers']['rust'][case]:,.1f}")  # fmt: skip
    return insn_cost.judge(known, found, c_all=costs["c"].cases["all"])


def benches(ready: Built) -> Report:
    """Every benchmark runs for one round and reports both sides of each case.

    Its ratios are printed and not judged: the machine that tests run on need
    not be quiet.
    """
    report = Report("bench")
    rows = bench.run(ready, list(MEMORY), 1)
    for make in (_qdiscs, _rings):
        try:
            rows += make(ready)
        except Failure as error:
            report.add(make.__name__.strip("_"), " | ".join([str(error), *error.hints]))
    for line in bench_rows.table(rows):
        say(f"    {line}".rstrip())
    for row in rows:
        missing = row.unit == "ns" and row.ours is not None and row.reference is None
        report.add(f"{row.bench} {row.case}", "the reference reported nothing" if missing else None)
    reported = {row.bench for row in rows}
    # Those that the modules have; instructions are judged elsewhere.
    for name in REFERENCES:
        if name.partition("-")[0] not in MEMORY:
            continue
        report.add(f"{name} has cases", None if name in reported else "it reported nothing")
    return report


def _qdiscs(ready: Built) -> list[bench_rows.Row]:
    """Queue disciplines: no packet may get lost uncounted, or this fails."""
    return qdisc.rows(qdisc.run(ready, 1, SHORT))


def _rings(ready: Built) -> list[bench_rows.Row]:
    """One ring of the modelled card: likewise."""
    return nic.rows(nic.run(ready, 1, SHORT))
