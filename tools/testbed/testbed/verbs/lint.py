# SPDX-License-Identifier: GPL-2.0
"""make lint: the linters alone."""

from testbed.env import Env
from testbed.harness.summary import Summary
from testbed.verbs import test


def main(env: Env) -> int:
    """The suite of that name."""
    return test.run(env, ["lint"], Summary())
