# SPDX-License-Identifier: GPL-2.0
"""The selftests for any port with a peer, here: a real card, and a second machine."""

from pathlib import Path

import pytest

from testbed.env import Env
from testbed.harness.results import Results
from testbed.host.ui import Step
from testbed.selftests import ports
from testbed.workshop import Workshop

_CLONE = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="session")
def where(env: Env) -> dict[str, str]:
    """The kernel's variables for NETIF and REMOTE."""
    remote = ports.Remote.of(env.settings.text("REMOTE"))
    found = ports.variables(env.settings.text("NETIF"), remote)
    ports.check_way_here(remote, found)
    return found


@pytest.mark.suite("ports")
@pytest.mark.parametrize("program", ports.programs(_CLONE))
def test_ports(
    env: Env, shop: Workshop, results: Results, where: dict[str, str], program: str
) -> None:
    """A program: its cases, and that this machine's kernel does not complain."""
    selftests = shop.selftests()
    with Step(f"ports: {program} on {where['NETIF']}"):
        found = ports.run(env, selftests, program, where)
    results.cases(found.cases)
