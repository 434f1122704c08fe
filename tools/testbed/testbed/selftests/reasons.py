# SPDX-License-Identifier: GPL-2.0
"""Why cases of the kernel's selftests do not pass with the Rust driver.

The rules are in reasons.txt. A case without a rule is listed as not explained. One that says the
same words with both drivers is never booked against the Rust driver, whatever its rule says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.host.tables import rows
from testbed.selftests.record import is_alike
from testbed.selftests.results import PASS

CARD, DRIVER, BOTH, TESTBED, TEST = "card", "driver", "both", "testbed", "test"
# The causes, in the order of the table.
CAUSES = {
    CARD: "the 82599 cannot",
    DRIVER: "the driver does not have it",
    BOTH: "the same words with both drivers: in neither, or the environment",
    TESTBED: "the testbed's kernel, tools or machine lack it",
    TEST: "the case itself",
}
UNKNOWN = "not explained"


@dataclass(frozen=True)
class Rule:
    """The cause for some cases of a program."""

    program: str
    cause: str
    word: str
    why: str

    def fits(self, program: str, case: str, reason: str) -> bool:
        """Whether it is about this case."""
        return self.program == program and (self.word in case or self.word in reason)


RULES = [
    Rule(program, cause, "" if word == "-" else word, why)
    for program, cause, word, why in rows(Path(__file__).with_name("reasons.txt"), 4)
]


def explained(record: Mapping[str, Any]) -> dict[tuple[str, str, str], int]:
    """The number of cases that do not pass with the Rust driver: by program, cause and reason."""
    found: dict[tuple[str, str, str], int] = {}
    for program, entry in record["rust"].items():
        for name, case in entry["cases"].items():
            if case["result"] == PASS:
                continue
            rule = next((r for r in RULES if r.fits(program, name, case["reason"])), None)
            key = (program, UNKNOWN, name)
            if rule:
                cause = rule.cause
                if cause == DRIVER and is_alike(record, program, name):
                    cause = BOTH
                key = (program, cause, rule.why)
            found[key] = found.get(key, 0) + 1
    return found


def sums(record: Mapping[str, Any]) -> str:
    """The number of cases by cause, as a part of a sentence."""
    found: dict[str, int] = {}
    for (_, cause, _), count in explained(record).items():
        found[cause] = found.get(cause, 0) + count
    return "; ".join(
        f"{CAUSES.get(cause, cause)} ({found[cause]})"
        for cause in (*CAUSES, UNKNOWN)
        if cause in found
    )


def table(record: Mapping[str, Any]) -> list[str]:
    """The reasons by program, as the lines of a Markdown table."""
    return [
        "| program | cases | cause | |",
        "| --- | ---: | --- | --- |",
        *(
            f"| {program} | {count} | {cause} | {why} |"
            for (program, cause, why), count in explained(record).items()
        ),
    ]
