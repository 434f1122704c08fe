# SPDX-License-Identifier: GPL-2.0
"""The probe of KVM."""

from __future__ import annotations

import threading
from pathlib import Path

from testbed.boot.accel import stop_if_silent


def test_a_boot_that_has_printed_nothing_ends(tmp_path: Path) -> None:
    for content, ends in ((None, True), ("", True), ("Linux version", False)):
        console, stop = tmp_path / "console", threading.Event()
        if content is not None:
            console.write_text(content)
        stop_if_silent(console, stop)
        assert stop.is_set() == ends
