# SPDX-License-Identifier: GPL-2.0
"""The tables of RESULTS.md, from about.toml: titles, references, targets, and sentences."""

import tomllib
from pathlib import Path

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
HEAD: str = _TEXTS["head"]
TITLES: dict[str, str] = _TEXTS["titles"]
REFERENCES: dict[str, str] = _TEXTS["references"]
# By bench: patterns of cases, of which the first one that is found counts.
TARGETS: dict[str, dict[str, float]] = _TEXTS["targets"]
# By bench: a pattern of cases.
LEFT_OUT: dict[str, str] = _TEXTS["left_out"]
ABOUT: dict[str, str] = {name: " ".join(text.split()) for name, text in _TEXTS["about"].items()}
