# SPDX-License-Identifier: GPL-2.0
"""Fixtures: what was built, and guests that stay between tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from testbed.env import Env
from testbed.workshop import Built, Workshop, workshop

Ready = Callable[..., Built]


@pytest.fixture(scope="session")
def shop(env: Env) -> Iterator[Workshop]:
    """Builds kernels when a test asks for them, each once."""
    with workshop(env) as made:
        yield made


@pytest.fixture(scope="session")
def ready(shop: Workshop) -> Ready:
    """What was built: ready("uml") builds the kernel that it names."""
    return shop.ready
