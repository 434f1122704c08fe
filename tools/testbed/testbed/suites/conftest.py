# SPDX-License-Identifier: GPL-2.0
"""Fixtures: builds that are shared between tests."""

from collections.abc import Callable, Iterator

import pytest

from testbed.env import Env
from testbed.workshop import Built, Workshop

Ready = Callable[..., Built]


@pytest.fixture(scope="session")
def shop(env: Env) -> Iterator[Workshop]:
    """The workshop, which builds each kernel once, on demand."""
    with Workshop(env) as made:
        yield made


@pytest.fixture(scope="session")
def ready(shop: Workshop) -> Ready:
    """A function that builds on demand: ready("uml") builds the kernel of that name."""
    return shop.ready
