# SPDX-License-Identifier: GPL-2.0
"""The demo in small, with its limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from insn import cost as insn_cost
from testbed.bench import instructions
from testbed.bench.results import problems
from testbed.boot.card import CARDS, MODELLED
from testbed.build import kernel
from testbed.harness.results import Results
from testbed.host import proc
from testbed.host.ui import Failure, say
from testbed.suites.conftest import Ready
from testbed.verbs import demo
from testbed.workshop import Built

_FRAMES = 100_000
_MOST = 1.1
# Further counts before a driver is judged slower.
_RECOUNTS = 2


@pytest.mark.suite("compare")
def test_compare(ready: Ready, results: Results) -> None:
    """All frames are forwarded, within the limit on instructions relative to C."""
    built = ready("perf")
    record, complaints = demo.measure(built, _FRAMES, repeats=1)
    for name in record["drivers"]:
        wrong = problems(name, record["drivers"][name], _FRAMES)
        results.add(f"{name}: {_FRAMES:,} frames forwarded intact", "; ".join(wrong) or None)
    results.add("no kernel complaint", "; ".join(str(one) for one in complaints[:3]) or None)
    ratio = record["ratio"]["instructions_per_packet"]
    name = f"instructions per packet, Rust/C, at most {_MOST}"
    if ratio is None:
        results.add(name, "they could not be counted")
    else:
        say(f"    instructions per packet, Rust/C: {ratio:.3f}")
        results.add(name, None if ratio <= _MOST else f"{ratio:.3f}")
    _judge_cost(built, record, results)
    (built.env.out / "compare.json").write_text(json.dumps(record, indent=2) + "\n")


@pytest.mark.suite("compare")
def test_demo_modules(ready: Ready, results: Results) -> None:
    """The modules that make demo builds are enough, and can be built without the others."""
    built = ready("perf")
    lacking = ", ".join(_lacking(built))
    results.add("make demo builds all modules that the drivers need", lacking or None)
    missing = kernel.make_again(built.env, built.kernels["perf"], CARDS[MODELLED].modules)
    results.add("they are made without the others", ", ".join(missing) or None)


def _lacking(built: Built) -> list[str]:
    """Modules that those of the demo depend on, and that it does not build."""
    found: set[str] = set()
    for card in CARDS.values():
        files = [built.kernels["perf"].build / name for name in card.modules]
        words = proc.output(["modinfo", "-F", "depends", *files])
        if words is None:
            return ["modinfo failed"]
        found |= set(words.replace(",", " ").split()) - {path.stem for path in files}
    return sorted(found)


def _judge_cost(built: Built, record: dict[str, Any], results: Results) -> None:
    """The Rust driver takes no more instructions than in the committed record."""
    names = {case: f"instructions per packet, {case}, against the record"
             for case in insn_cost.JUDGED}  # fmt: skip
    try:
        known = insn_cost.load(built.env.clone / insn_cost.RECORD)
    except Failure as error:
        for name in names.values():
            results.add(name, error.on_one_line)
        return
    release = record["kernel"]["release"]
    if known.get("kernel") != release:
        for name in names.values():
            results.skip(name, f"the record is of {known.get('kernel')}, this is {release}")
        return
    costs = {
        name: insn_cost.Cost({case: cost[case] for case in insn_cost.CASES}, cost["functions"])
        for name, cost in record["cost"].items()
    }
    verdicts = _verdicts(known, costs)
    # Disturbances add to a count, and rarely twice: only a count that is too high in
    # each of several boots is a failure.
    for again in range(_RECOUNTS):
        if not any(verdicts.values()):
            break
        costs = instructions.count(built, f"count-{again + 2}").costs
        verdicts = {
            case: wrong and verdicts[case] for case, wrong in _verdicts(known, costs).items()
        }
    for case, wrong in verdicts.items():
        results.add(names[case], wrong)


def _verdicts(
    known: Mapping[str, Any], costs: Mapping[str, insn_cost.Cost]
) -> dict[str, str | None]:
    found = costs["rust"]
    for case in insn_cost.JUDGED:
        say(f"    instructions per packet, {case}: {found.cases[case]:,.1f}, "
            f"record {known['drivers']['rust'][case]:,.1f}")  # fmt: skip
    return insn_cost.judge(known, found, costs["c"])
