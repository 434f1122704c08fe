# SPDX-License-Identifier: GPL-2.0
"""The settings in which the Rust driver is measured, from settings.toml."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_TEXT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
MECHANISMS: tuple[str, ...] = tuple(_TEXT["mechanisms"])
OTHERS: tuple[str, ...] = tuple(_TEXT["others"])
_PLAIN: Mapping[str, Mapping[str, Any]] = {**_TEXT["mechanisms"], **_TEXT["others"]}
# All mechanisms on, to see the noise; and all off.
BASE, PLAINEST = "as it is", "all of them"
_TCP = {"kind": "tcp", "flows": 1, "write": 128 << 10, "reverse": False, "segmentation": True}


@dataclass(frozen=True)
class Setting:
    """The state of all mechanisms; `name` is that of a row."""

    name: str
    # Parameters of net_ablation.
    keys: tuple[str, ...] = ()
    pages: bool = False
    # A fixed interval, or the default.
    usecs: int | None = None


def without(name: str, mechanisms: Iterable[str]) -> Setting:
    """A setting in which these are off."""
    plain = [_PLAIN[one] for one in mechanisms]
    return Setting(
        name,
        tuple(key for one in plain for key in one.get("keys", ())),
        any(one.get("pages", False) for one in plain),
        next((one["usecs"] for one in plain if "usecs" in one), None),
    )


def added(name: str) -> str:
    """The name of the setting in which a mechanism was added last."""
    return f"plainest, up to {name}"


def before(name: str) -> str:
    """The setting to which a mechanism is added."""
    place = MECHANISMS.index(name)
    return added(MECHANISMS[place - 1]) if place else PLAINEST


def all_settings() -> list[Setting]:
    """All of them; the last step from the plainest form leads to the driver as it is."""
    return [
        Setting(BASE),
        *(without(name, [name]) for name in (*MECHANISMS, *OTHERS)),
        without(PLAINEST, MECHANISMS),
        *(without(added(name), MECHANISMS[place + 1 :]) for place, name in enumerate(MECHANISMS)),
    ]


def described(settings: Sequence[Setting]) -> list[dict[str, Any]]:
    """The settings for the guest."""
    return [asdict(one) for one in settings]


def cells() -> list[dict[str, Any]]:
    """The cases, for the guest."""
    return [
        {"case": name, **({} if "kind" in one else _TCP), **one}
        for name, one in _TEXT["cells"].items()
    ]
