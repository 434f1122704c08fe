# SPDX-License-Identifier: GPL-2.0
"""make run TRACE=1: boots User-Mode Linux with each driver in turn, and compares their accesses."""

import json

from testbed.bench.guest import measure
from testbed.boot.nicmodel import Model
from testbed.build.driver import Driver
from testbed.build.kernel import UML
from testbed.env import Env
from testbed.host.ui import Failure, say
from testbed.trace import accesses, reasons, table
from testbed.workshop import Built, built, chosen_driver


def trace(ready: Built, driver: Driver) -> accesses.Trace:
    """The accesses of a driver, from probe to remove, with two CPUs: further queues show then."""
    answers = []

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
    return accesses.read(driver.name, answers[0])


def compare(ready: Built, driver: Driver) -> list[accesses.Trace]:
    """The traces of ixgbe and of a driver, written to out/trace.json."""
    traces = [trace(ready, one) for one in (Driver("c"), driver)]
    path = ready.env.out / "trace.json"
    path.write_text(json.dumps(table.record(traces), indent=1) + "\n")
    return traces


def main(env: Env) -> int:
    """Print and write the tables; 1 if an access of only one driver is not explained."""
    with built(env, UML) as ready:
        driver = chosen_driver(ready, UML)
        traces = compare(ready, driver)
    lines = table.text(traces)
    # The explanations are of ixgbe_rust.
    found = reasons.explain(env, traces) if driver.name == "rust" else None
    if found:
        lines += ["", *found.text()]
    say(*lines)
    path = env.out / "trace.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    say(f"written: {path}, {path.with_suffix('.json')}")
    return 1 if found and found.unexplained else 0
