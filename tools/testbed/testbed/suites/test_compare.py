# SPDX-License-Identifier: GPL-2.0
"""The demo in small, with its limits."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from insn import cost as insn_cost
from testbed.bench import instructions
from testbed.bench.results import problems
from testbed.boot.card import CARDS, MODELLED
from testbed.build import needs
from testbed.build.kernel import UML
from testbed.harness.results import Results
from testbed.host import proc
from testbed.host.ui import say
from testbed.suites.conftest import Ready
from testbed.verbs import demo
from testbed.workshop import Built

_FRAMES = 100_000
_MOST = 1.1
# Boots at most, and those on a quiet machine that prove a growth.
_BOOTS = 5
_PROOF = 3
# The share of waiting up to which a machine is quiet. On two processors, which QEMU and the model
# keep busy, it is 0.08 without other load, and 0.27 beside a busy process.
_QUIET = 0.15
# Modules of the User-Mode Linux kernel that drivers need, and the perf kernel has not as modules.
_OTHERS = {
    "drivers/pps/pps_core.ko": "the clocks of NICs need it",
    "drivers/ptp/ptp.ko": "the abstractions need it: it is built in",
    "lib/dim/dimlib.ko": "the abstractions need it: it is built in",
    "lib/kunit/kunit.ko": "there is no KUnit",
    "lib/glob.ko": "of KUnit",
}


@pytest.mark.suite("compare")
def test_compare(ready: Ready, results: Results) -> None:
    """All frames are forwarded, within the limit on instructions relative to C."""
    built = ready("perf")
    record, complaints = demo.measure(built, _FRAMES, repeats=1)
    for name in record["drivers"]:
        wrong = problems(name, record["drivers"][name], _FRAMES)
        results.none(f"{name}: {_FRAMES:,} frames forwarded intact", wrong)
    results.none("no kernel complaint", complaints)
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
    """The modules that make demo builds are enough."""
    built = ready("perf")
    results.none("make demo builds all modules that the drivers need", _lacking(built))


@pytest.mark.suite("objects")
def test_modules_by_symbols(ready: Ready, results: Results) -> None:
    """The same as far as symbols tell, of a kernel that has most of these modules built in."""
    built, card = ready(UML), CARDS[MODELLED]
    needed = needs.of(built.kernels[UML].build, card.paths.values())
    lacking = sorted(needed - set(card.modules) - _OTHERS.keys())
    results.none("cards.ini has all modules that the drivers need", lacking)
    listed = sorted(set(card.needs) - needed)
    results.none("cards.ini has no other modules", listed)


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
    known = insn_cost.load(built.env.clone / insn_cost.RECORD)
    release = record["conditions"]["kernel"]
    if known.get("kernel") != release:
        why = f"the record is of {known.get('kernel')}, this is {release}"
        results.skip_all(names.values(), why)
        return
    verdicts = compared(lambda boot: instructions.count(built, f"count-{boot}"), known)
    for case, (wrong, why) in verdicts.items():
        if why:
            results.skip(names[case], why)
        else:
            results.add(names[case], wrong)


def compared(
    count: Callable[[int], instructions.Counted], known: Mapping[str, Any]
) -> dict[str, tuple[str | None, str]]:
    """Of each case the growth beyond the record, or the reason why nothing is proven.

    A count within the record settles a case. Growth is proven by a number of boots that all have
    it and in which the machine did not wait for a processor.
    """
    verdicts: dict[str, tuple[str | None, str]] = {}
    grown = dict.fromkeys(insn_cost.JUDGED, 0)
    for boot in range(1, _BOOTS + 1):
        found = count(boot)
        say(f"    boot {boot}: {found.waited:.1%} of the time waiting for a processor")
        judged = insn_cost.judge(known, found.costs["rust"])
        for case in list(grown):
            now, before = found.costs["rust"].cases[case], known["drivers"]["rust"][case]
            say(f"    instructions per packet, {case}: {now:,.1f}, record {before:,.1f}")
            grown[case] += found.waited <= _QUIET
            if judged[case] is None or grown[case] == _PROOF:
                verdicts[case] = judged[case], ""
                del grown[case]
            else:
                verdicts[case] = judged[case], f"the machine was too busy to tell: {judged[case]}"
        if not grown:
            break
    return verdicts
