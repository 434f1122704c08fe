# SPDX-License-Identifier: GPL-2.0
"""Modules of the selftests' library that need nothing of the kernel's, for tests here."""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path

_FOLDER = Path(__file__).parents[3] / "testing/selftests/drivers/net/hw/lib/py"
_PACKAGE = "hw_library"


def library(name: str) -> types.ModuleType:
    """A module of the library, in a package of another name: `lib.py` is the kernel's."""
    if _PACKAGE not in sys.modules:
        package = types.ModuleType(_PACKAGE)
        package.__path__ = [str(_FOLDER)]
        sys.modules[_PACKAGE] = package
    return importlib.import_module(f"{_PACKAGE}.{name}")
