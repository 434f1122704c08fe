# SPDX-License-Identifier: GPL-2.0
"""make demo: the modules that it builds."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.boot.card import CARDS
from testbed.verbs import demo


def _env(kdir: Path | None = None, overlay_off: bool = False, **given: str) -> Any:
    texts = {"CARD": "82599", "CONFIG_EXTRA": "", **given}
    return SimpleNamespace(
        kdir=kdir, overlay_off=overlay_off, settings=SimpleNamespace(text=texts.__getitem__)
    )


@pytest.mark.parametrize("card", CARDS)
def test_it_builds_the_modules_of_both_drivers(card: str) -> None:
    modules = demo._modules(_env(CARD=card), "perf")
    assert {*CARDS[card].paths.values()} <= {*modules}


@pytest.mark.parametrize(
    ("env", "config"),
    [
        (_env(), "debug"),
        (_env(), "uml"),
        (_env(kdir=Path("/usr/src/linux")), "perf"),
        (_env(overlay_off=True), "perf"),
        (_env(CONFIG_EXTRA="my.config"), "perf"),
    ],
)
def test_it_builds_all_where_modules_may_be_others(env: Any, config: str) -> None:
    assert demo._modules(env, config) == ()
