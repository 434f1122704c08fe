# SPDX-License-Identifier: GPL-2.0
"""make run TRACE=1: boots User-Mode Linux with each driver in turn, and compares their accesses."""

import json
from typing import Any

from testbed.bench.guest import measure
from testbed.boot.nicmodel import Model
from testbed.build.driver import Driver
from testbed.build.kernel import UML
from testbed.env import Env
from testbed.host.ui import Failure, say
from testbed.trace import accesses, reasons
from testbed.workshop import Built, built, chosen_driver


def _ask(ready: Built, driver: Driver) -> dict[str, Any]:
    """The accesses of a driver, from probe to remove, with two CPUs: further queues show then."""
    answers: list[dict[str, Any]] = []

    def fetch(model: Model) -> None:
        answers.append(model.ask({"cmd": "accesses", "port": 0}))

    outcome = measure(
        ready.uml(f"trace-{driver.name}"),
        "trace",
        f"register accesses of the {driver.name} driver in User-Mode Linux",
        timeout=180,
        accel=ready.accel(UML),
        variables={"TRACED": driver.name},
        kernel_words=["kunit.enable=0"],
        # The model sees every access then.
        shared_tails=False,
        modules=driver.modules,
        on_end=fetch,
    )
    if outcome.complaints:
        raise Failure(f"the port's life with the {driver.name} driver did not go as it should",
                      *[str(one) for one in outcome.complaints[:3]])  # fmt: skip
    return answers[0]


def main(env: Env) -> int:
    """Print the phases of both drivers; 1 if an access of only one driver is not explained."""
    with built(env, UML) as ready:
        driver = chosen_driver(ready, UML)
        traces = compare(ready, driver)
    say(*accesses.text(traces))
    # The explanations are of ixgbe_rust.
    if driver.name != "rust":
        return 0
    found = reasons.explain(accesses.lonely(part for one in traces for part in one.values()))
    say("in no phase of the other, and not explained:", *accesses.names(found.unexplained))
    return 1 if found.unexplained else 0


def compare(ready: Built, driver: Driver) -> list[accesses.Trace]:
    """The traces of ixgbe and of a driver; their registers and values are in out/trace.json."""
    answers = {one.name: _ask(ready, one) for one in (Driver("c"), driver)}
    path = ready.env.out / "trace.json"
    path.write_text(json.dumps(answers, indent=1) + "\n")
    say(f"written: {path}")
    return [accesses.read(name, answer) for name, answer in answers.items()]
